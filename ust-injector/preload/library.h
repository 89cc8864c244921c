// SPDX-License-Identifier: Apache-2.0
// libweft.so's functions for programs: struct weft_library of lib/abi/tracepoint.h, which
// describes them. Each function starts the library first if necessary, then calls down.
#ifndef WEFT_UST_INJECTOR_PRELOAD_LIBRARY_H_
#define WEFT_UST_INJECTOR_PRELOAD_LIBRARY_H_

#include "lib/abi/tracepoint.h"

#define WEFT_EXPORT __attribute__((visibility("default")))

extern const struct weft_library weft_library __attribute__((visibility("hidden")));

// These functions are exported under these names as well.
WEFT_EXPORT void weft_object_register(struct weft_object* object);
WEFT_EXPORT void weft_object_unregister(struct weft_object* object);
WEFT_EXPORT int weft_tracepoint_enabled(struct weft_tracepoint* tp);
WEFT_EXPORT int weft_probe_attach(const char* name, const char* signature, void (*fn)(void),
                                  void* data);
WEFT_EXPORT int weft_probe_detach(const char* name, void (*fn)(void), void* data);
WEFT_EXPORT int weft_tracepoint_iterate(int (*fn)(void* data, const char* name,
                                                  const struct weft_event_desc* desc),
                                        void* data);
WEFT_EXPORT int weft_app_context_register(const char* name, weft_app_context_get get, void* data);
WEFT_EXPORT int weft_app_context_unregister(const char* name);

#endif  // WEFT_UST_INJECTOR_PRELOAD_LIBRARY_H_
