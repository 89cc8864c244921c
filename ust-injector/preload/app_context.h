// SPDX-License-Identifier: Apache-2.0
// Application contexts ($app.provider:name): values that the program itself provides, by name. A
// Trace may request a name before its provider is registered; the context has no value then.
#ifndef WEFT_UST_INJECTOR_PRELOAD_APP_CONTEXT_H_
#define WEFT_UST_INJECTOR_PRELOAD_APP_CONTEXT_H_

#include "lib/abi/context.h"
#include "lib/abi/tracepoint.h"
#include "lib/event/filter.h"

// Adds and removes what provides a name's values: the members app_context_register and
// app_context_unregister of struct weft_library. They take the lock; the process was started.
int weft_app_context_add(const char* name, weft_app_context_get get, void* data);
int weft_app_context_remove(const char* name);

// Returns the number of a name, which the name keeps for the life of the process. The caller holds
// weft_lock.
uint32_t weft_app_context_number(const char* name);

// May run in any thread and in signal handlers. Writes a tag and a value, at most `room` bytes.
// There is always room for 1.
uint32_t weft_app_context_write(uint32_t number, uint8_t* to, uint32_t room);

// Fetches a value for a filter. Returns 0 or -ENOENT.
int weft_app_context_value(uint32_t number, struct weft_filter_value* value);

#endif  // WEFT_UST_INJECTOR_PRELOAD_APP_CONTEXT_H_
