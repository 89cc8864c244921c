// SPDX-License-Identifier: Apache-2.0
// See library.h.
#include "ust-injector/preload/library.h"

#include "ust-injector/preload/app_context.h"
#include "ust-injector/preload/app_probes.h"
#include "ust-injector/preload/emit.h"
#include "ust-injector/preload/hooks.h"
#include "ust-injector/preload/keep.h"
#include "ust-injector/preload/lifecycle.h"
#include "ust-injector/preload/registry.h"
#include "ust-injector/preload/replaced.h"
#include "ust-injector/preload/statedump.h"

__attribute__((constructor)) static void on_load(void) {
  weft_replaced_start();
  if (weft_process_ready()) weft_hooks_start();
}

void weft_object_register(struct weft_object* object) {
  object->library = &weft_library;
  (void)weft_process_ready();
  if (object->abi != WEFT_TRACEPOINT_ABI || !weft_registry_add(object)) return;
  weft_process_try_early();
  weft_statedump_again();
}

void weft_object_unregister(struct weft_object* object) { weft_registry_remove(object); }

int weft_tracepoint_enabled(struct weft_tracepoint* tp) { return weft_registry_is_on(tp); }

int weft_probe_attach(const char* name, const char* signature, void (*fn)(void), void* data) {
  (void)weft_process_ready();
  return weft_app_probes_attach(name, signature, fn, data);
}

int weft_probe_detach(const char* name, void (*fn)(void), void* data) {
  (void)weft_process_ready();
  return weft_app_probes_detach(name, fn, data);
}

int weft_tracepoint_iterate(int (*fn)(void* data, const char* name,
                                      const struct weft_event_desc* desc),
                            void* data) {
  (void)weft_process_ready();
  return weft_registry_iterate(fn, data);
}

int weft_app_context_register(const char* name, weft_app_context_get get, void* data) {
  (void)weft_process_ready();
  return weft_app_context_add(name, get, data);
}

int weft_app_context_unregister(const char* name) {
  (void)weft_process_ready();
  return weft_app_context_remove(name);
}

const struct weft_library weft_library = {
    .size = sizeof(struct weft_library),
    .object_register = weft_object_register,
    .object_unregister = weft_object_unregister,
    .tracepoint_enabled = weft_tracepoint_enabled,
    .probe_attach = weft_probe_attach,
    .probe_detach = weft_probe_detach,
    .tracepoint_iterate = weft_tracepoint_iterate,
    .app_context_register = weft_app_context_register,
    .app_context_unregister = weft_app_context_unregister,
    .keep = weft_keep,
    .release = weft_release,
    .probe_of = weft_probe_of,
};
