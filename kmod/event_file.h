/* SPDX-License-Identifier: GPL-2.0-only */
/* An event's descriptor, and the function that makes events. */
#ifndef WEFT_KMOD_EVENT_FILE_H
#define WEFT_KMOD_EVENT_FILE_H

#include "channel.h"
#include "control.h"

/* WEFT_IOCTL_EVENT. Returns a descriptor; 0: the event has none and stays until its session ends;
 * or a negative errno. */
int weft_event_file_create(struct weft_channel *channel, struct weft_request *request);

#endif /* WEFT_KMOD_EVENT_FILE_H */
