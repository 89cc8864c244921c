/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of tracepoints. */
#ifndef WEFT_KMOD_TRACEPOINT_H
#define WEFT_KMOD_TRACEPOINT_H

#include "event_source.h"

extern const struct weft_event_source weft_tracepoint_source;

#endif /* WEFT_KMOD_TRACEPOINT_H */
