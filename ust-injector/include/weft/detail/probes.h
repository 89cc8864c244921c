/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects an application's own probes to libweft.so. The public side is <weft/probe.h>.
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_PROBES_H_
#define WEFT_DETAIL_PROBES_H_

#include <errno.h>

#include "abi.h"
#include "object.h"

/* `signature`: the tracepoint's TP_ARGS as text; NULL: the type of `fn` was checked before. */
static inline __attribute__((unused)) int weft_probe_attach_checked(const char* name,
                                                                    const char* signature,
                                                                    void (*fn)(void), void* data) {
  const struct weft_library* library = WEFT_LIBRARY;
  return library ? library->probe_attach(name, signature, fn, data) : -ENOSYS;
}

static inline __attribute__((unused)) int weft_probe_detach_checked(const char* name,
                                                                    void (*fn)(void), void* data) {
  const struct weft_library* library = WEFT_LIBRARY;
  return library ? library->probe_detach(name, fn, data) : -ENOSYS;
}

#endif /* WEFT_DETAIL_PROBES_H_ */
