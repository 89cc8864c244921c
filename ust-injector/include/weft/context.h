/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Application contexts are values that a program offers with every event. A Trace records them or
 * filters by them as $app.provider:name.
 *
 *     static void current_tenant(void *data, struct weft_app_context_value *out) {
 *       weft_context_string(out, tenant_of_this_thread);
 *     }
 *     weft_context_register("shop:tenant", current_tenant, NULL);
 *
 * The function is called at events, in any thread, also in signal handlers; it must not trace,
 * throw, lock or allocate. A value that it does not set is recorded as absent.
 */
#pragma GCC system_header
#ifndef WEFT_CONTEXT_H_
#define WEFT_CONTEXT_H_

#include <errno.h>
#include <string.h>

#include "detail/abi.h"
#include "detail/object.h"

#define WEFT_IN_PROGRAM
#include "abi/context.h"
#undef WEFT_IN_PROGRAM

/* Returns 0; -EEXIST: another provider has that name; -ENOSPC: 64 names were used in this process;
 * -ENOMEM; -ENOSYS: the process has no libweft.so. May run in any thread. */
static inline __attribute__((unused)) int weft_context_register(const char* name,
                                                                weft_app_context_get get,
                                                                void* data) {
  const struct weft_library* library = WEFT_LIBRARY;
  return library ? library->app_context_register(name, get, data) : -ENOSYS;
}

/* Returns 0, -ENOENT or -ENOSYS. Calls of the function may still run afterwards. */
static inline __attribute__((unused)) int weft_context_unregister(const char* name) {
  const struct weft_library* library = WEFT_LIBRARY;
  return library ? library->app_context_unregister(name) : -ENOSYS;
}

static inline __attribute__((unused)) void weft_context_signed(struct weft_app_context_value* out,
                                                               int64_t value) {
  out->type = WEFT_DYNAMIC_S64;
  out->bits = (uint64_t)value;
}

static inline __attribute__((unused)) void weft_context_unsigned(struct weft_app_context_value* out,
                                                                 uint64_t value) {
  out->type = WEFT_DYNAMIC_U64;
  out->bits = value;
}

static inline __attribute__((unused)) void weft_context_double(struct weft_app_context_value* out,
                                                               double value) {
  out->type = WEFT_DYNAMIC_DOUBLE;
  memcpy(&out->bits, &value, sizeof(value));
}

/* `text` is copied before the function that was asked is asked again. */
static inline __attribute__((unused)) void weft_context_string(struct weft_app_context_value* out,
                                                               const char* text) {
  out->type = WEFT_DYNAMIC_STRING;
  out->text = text;
}

#endif /* WEFT_CONTEXT_H_ */
