/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of user-space functions: uprobes and uretprobes. */
#ifndef WEFT_KMOD_UPROBE_H
#define WEFT_KMOD_UPROBE_H

#include "event_source.h"

extern const struct weft_event_source weft_uprobe_source;

#endif /* WEFT_KMOD_UPROBE_H */
