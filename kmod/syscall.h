/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of system calls. */
#ifndef WEFT_KMOD_SYSCALL_H
#define WEFT_KMOD_SYSCALL_H

#include "event_source.h"

extern const struct weft_event_source weft_syscall_source;

#endif /* WEFT_KMOD_SYSCALL_H */
