// SPDX-License-Identifier: Apache-2.0
// Probes that the application attaches to tracepoints itself: the members probe_attach and
// probe_detach of struct weft_library (lib/abi/tracepoint.h).
#ifndef WEFT_UST_INJECTOR_PRELOAD_APP_PROBES_H_
#define WEFT_UST_INJECTOR_PRELOAD_APP_PROBES_H_

// All functions take the lock; the process was started.
int weft_app_probes_attach(const char* name, const char* signature, void (*fn)(void), void* data);
int weft_app_probes_detach(const char* name, void (*fn)(void), void* data);

#endif  // WEFT_UST_INJECTOR_PRELOAD_APP_PROBES_H_
