/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libweft.so's functions for probes of the application's own, found weakly: without the library
 * they answer -ENOSYS. (No function here is named as one of the library: in C the assembler would take
 * it for that.) The public side is <weft/probe.h>.
 */
#ifndef WEFT_DETAIL_PROBES_H_
#define WEFT_DETAIL_PROBES_H_

#include <errno.h>

#include "abi.h"
#include "compiler.h"

/* `signature`: the tracepoint's TP_ARGS as text, or NULL: `fn` is known to be right. */
static inline __attribute__((unused)) int weft_probe_attach_checked(const char* name,
                                                                    const char* signature,
                                                                    void (*fn)(void), void* data) {
  void (*address)(void) = WEFT_LIBRARY_SYMBOL(weft_probe_attach);
  if (!address) return -ENOSYS;
  return ((int (*)(const char*, const char*, void (*)(void), void*))address)(name, signature, fn,
                                                                             data);
}

static inline __attribute__((unused)) int weft_probe_detach_checked(const char* name,
                                                                    void (*fn)(void), void* data) {
  void (*address)(void) = WEFT_LIBRARY_SYMBOL(weft_probe_detach);
  if (!address) return -ENOSYS;
  return ((int (*)(const char*, void (*)(void), void*))address)(name, fn, data);
}

#endif /* WEFT_DETAIL_PROBES_H_ */
