/* SPDX-License-Identifier: GPL-2.0-only */
/* A ring's descriptor: pread, splice, mmap, poll, and the ioctl that makes events. */
#ifndef WEFT_KMOD_CHANNEL_FILE_H
#define WEFT_KMOD_CHANNEL_FILE_H

#include "channel.h"

/* WEFT_IOCTL_CHANNEL. Returns a descriptor of the ring, or a negative errno. */
int weft_channel_file_create(struct weft_session *session, const struct weft_kernel_channel *arg);

#endif /* WEFT_KMOD_CHANNEL_FILE_H */
