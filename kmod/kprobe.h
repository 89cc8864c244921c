/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of kernel functions: kprobes and kretprobes. */
#ifndef WEFT_KMOD_KPROBE_H
#define WEFT_KMOD_KPROBE_H

#include "event_source.h"

extern const struct weft_event_source weft_kprobe_source;

#endif /* WEFT_KMOD_KPROBE_H */
