// SPDX-License-Identifier: Apache-2.0
// The events of the state dump, as LTTng-UST 2.13 has them (provider lttng_ust_statedump), and the
// fixed parts of their images (lib/abi/event.h).
#ifndef WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_EVENTS_H_
#define WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_EVENTS_H_

#include "lib/event/runtime_provider.h"

#ifdef __cplusplus
extern "C" {
#endif

enum weft_statedump_event {
  WEFT_STATEDUMP_START,
  WEFT_STATEDUMP_PROCNAME,
  WEFT_STATEDUMP_BIN_INFO,
  WEFT_STATEDUMP_BUILD_ID,
  WEFT_STATEDUMP_END,
  WEFT_STATEDUMP_EVENTS,
};

#define WEFT_STATEDUMP_PROCNAME_BYTES 17u
#define WEFT_STATEDUMP_DESCRIPTION_BYTES 256u /* room for the largest description */

struct __attribute__((packed)) weft_statedump_bin_info {
  uint64_t baddr, memsz;
  uint32_t path_size;
  uint8_t is_pic, has_build_id, has_debug_link;
};
struct __attribute__((packed)) weft_statedump_build_id {
  uint64_t baddr;
  uint32_t size;
};

extern const struct weft_runtime_event weft_statedump_events[WEFT_STATEDUMP_EVENTS]
    __attribute__((visibility("hidden")));

#ifdef __cplusplus
}
#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_STATEDUMP_EVENTS_H_
