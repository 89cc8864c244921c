/* SPDX-License-Identifier: GPL-2.0-only */
/* A session's descriptor and its ioctls. */
#ifndef WEFT_KMOD_SESSION_FILE_H
#define WEFT_KMOD_SESSION_FILE_H

#include <linux/kobject.h>

#include "control.h"

/* WEFT_IOCTL_SESSION. Returns a descriptor, or a negative errno. `device`: weft's own
 * (session.h). */
int weft_session_file_create(const struct weft_request *request, const struct kobject *device);

#endif /* WEFT_KMOD_SESSION_FILE_H */
