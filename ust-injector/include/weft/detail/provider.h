/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The provider's part of events: one inline encoder per event class, and one probe and one struct
 * weft_event per event. <weft/tracepoint-event.h> uses it in a file that defines
 * TRACEPOINT_CREATE_PROBES.
 *
 * A probe runs in the thread of the call site, at any time, also in signal handlers: it uses its
 * stack and, for long values, blocks that libweft.so lends it (detail/encode.h).
 */
#pragma GCC system_header
#ifndef WEFT_DETAIL_PROVIDER_H_
#define WEFT_DETAIL_PROVIDER_H_

#include <stddef.h>

#include "abi.h"
#include "args.h"
#include "compiler.h"
#include "describe.h"
#include "encode.h"
#include "fields.h"
#include "object.h"

/* For an event without segments. The pointer is never read, so it keeps whatever its register
 * holds. */
WEFT_INLINE const struct weft_segment* weft_no_segments(void) {
  const struct weft_segment* segments;
  __asm__("" : "=r"(segments));
  return segments;
}

/* Defines the function that builds the image of an event of the class and emits it. The memory that
 * segments point to lives until emit returns. */
#define WEFT_DEFINE_CLASS(provider, name, args, fields)                                            \
  WEFT_CHECK_PROVIDER(provider)                                                                    \
  WEFT_ARGS_TYPES(provider##___##name, args)                                                       \
  enum {                                                                                           \
    weft_fixed_##provider##___##name = (int)WEFT_SHAPE_FIXED(WEFT_SHAPE(fields)),                  \
    weft_nowrite_##provider##___##name = (int)WEFT_SHAPE_NOWRITE(WEFT_SHAPE(fields)),              \
    weft_segments_##provider##___##name = (int)WEFT_SHAPE_SEGMENTS(WEFT_SHAPE(fields)),            \
    weft_nowrite_segments_##provider##___##name =                                                  \
        (int)WEFT_SHAPE_NOWRITE_SEGMENTS(WEFT_SHAPE(fields)),                                      \
    weft_fields_##provider##___##name = (int)WEFT_SHAPE_FIELDS(WEFT_SHAPE(fields))                 \
  };                                                                                               \
  WEFT_ABI_ASSERT(weft_fields_##provider##___##name <= (int)WEFT_EVENT_MAX_FIELDS,                 \
                  "weft: an event has too many fields");                                           \
  WEFT_INLINE void weft_describe_##provider##___##name(void){WEFT_DESCRIBE_FIELDS(                 \
      fields)} WEFT_INLINE void weft_emit_##provider##___##name(struct weft_event* weft_self,      \
                                                                const void* weft_ip                \
                                                                    WEFT_ARGS_MORE_PROTO(args)) {  \
    uint64_t                                                                                       \
        weft_words[(weft_fixed_##provider##___##name + weft_nowrite_##provider##___##name) / 8 +   \
                   1];                                                                             \
    struct weft_segment weft_list[weft_segments_##provider##___##name +                            \
                                  weft_nowrite_segments_##provider##___##name + 1];                \
    char weft_room[weft_segments_##provider##___##name +                                           \
                               weft_nowrite_segments_##provider##___##name >                       \
                           0                                                                       \
                       ? WEFT_ENCODE_ROOM                                                          \
                       : 1];                                                                       \
    struct weft_kept* weft_blocks __attribute__((cleanup(weft_release_kept))) = NULL;              \
    struct weft_encoder weft_e = {weft_words, weft_list,         0,         0,                     \
                                  weft_room,  sizeof(weft_room), weft_self, &weft_blocks};         \
    WEFT_ENCODE_RECORDED(fields)                                                                   \
    if (weft_nowrite_##provider##___##name + weft_nowrite_segments_##provider##___##name > 0 &&    \
        (WEFT_LOAD(weft_self->wants) & WEFT_WANT_NOWRITE)) {                                       \
      WEFT_ENCODE_NOWRITE(fields)                                                                  \
      WEFT_EMIT(weft_fixed_##provider##___##name + weft_nowrite_##provider##___##name,             \
                weft_segments_##provider##___##name + weft_nowrite_segments_##provider##___##name) \
    } else {                                                                                       \
      WEFT_EMIT(weft_fixed_##provider##___##name, weft_segments_##provider##___##name)             \
    }                                                                                              \
  }

/* A plain read of `emit` lets compilers make it the call's operand. It was stored before any call
 * site could find the probe. A part without bytes is passed as NULL, because compilers warn if a
 * pointer to memory that was never written is passed on. */
#define WEFT_EMIT(fixed_size, segment_count)                       \
  weft_encode_end(&weft_e);                                        \
  weft_self->emit(weft_self, (fixed_size) > 0 ? weft_words : NULL, \
                  (segment_count) > 0 ? weft_list : weft_no_segments(), weft_ip);

/* Declares an event of a class; its definition adds the storage class. */
#define WEFT_DECLARE_EVENT(provider, event, args)                             \
  WEFT_CHECK_PROVIDER(provider)                                               \
  WEFT_CHECK_NAME(provider, event)                                            \
  WEFT_EXTERN_C const struct weft_event_desc weft_desc_##provider##___##event \
      __attribute__((visibility("hidden")));                                  \
  static void weft_probe_##provider##___##event(WEFT_ARGS_PROTO(args))        \
      __attribute__((noinline, no_instrument_function));
#define WEFT_EVENT_VALUE(class_provider, class_name, provider, event, args) \
  {(uint32_t)sizeof(struct weft_event),                                     \
   0,                                                                       \
   NULL,                                                                    \
   NULL,                                                                    \
   &weft_desc_##provider##___##event,                                       \
   (void (*)(void))weft_probe_##provider##___##event,                       \
   WEFT_ARGS_TEXT(args),                                                    \
   &weft_never_enabled,                                                     \
   weft_fixed_##class_provider##___##class_name,                            \
   weft_nowrite_##class_provider##___##class_name,                          \
   weft_segments_##class_provider##___##class_name,                         \
   weft_nowrite_segments_##class_provider##___##class_name,                 \
   0,                                                                       \
   0,                                                                       \
   0}
/* The arguments after `args` are those of the class, each with a comma before it. */
#define WEFT_DEFINE_PROBE(class_provider, class_name, provider, event, args, ...)   \
  static void weft_probe_##provider##___##event(WEFT_ARGS_PROTO(args)) {            \
    weft_emit_##class_provider##___##class_name(&weft_event_##provider##___##event, \
                                                WEFT_IP __VA_ARGS__);               \
  }

#define WEFT_DEFINE_EVENT(class_provider, class_name, provider, event, args, ...)              \
  WEFT_DECLARE_EVENT(provider, event, args)                                                    \
  static struct weft_event weft_event_##provider##___##event =                                 \
      WEFT_EVENT_VALUE(class_provider, class_name, provider, event, args);                     \
  static struct weft_event* weft_entry_event_##provider##___##event                            \
      __attribute__((section("weft_events"), WEFT_KEEP)) = &weft_event_##provider##___##event; \
  WEFT_DEFINE_PROBE(class_provider, class_name, provider, event, args, __VA_ARGS__)

#define WEFT_DEFINE_ENUM(provider, name, values)                            \
  enum { weft_enum_count_##provider##___##name = WEFT_ENUM_COUNT(values) }; \
  WEFT_INLINE void weft_enum_##provider##___##name(void) { WEFT_DESCRIBE_ENUM(values) }

#define WEFT_DEFINE_DESCRIPTION(class_provider, class_name, provider, event)          \
  WEFT_DESCRIBE_EVENT(provider, event, weft_fields_##class_provider##___##class_name) \
  weft_describe_##class_provider##___##class_name();                                  \
  WEFT_DESCRIBE_LABEL("7709")

#define WEFT_CHECK_PROVIDER(provider)                          \
  WEFT_ABI_ASSERT(sizeof(weft_the_provider_is_##provider) > 0, \
                  "weft: another provider's event under this TRACEPOINT_PROVIDER");

/* The passes of tracepoint-event.h. */
#define WEFT_EVENT_enums(provider, event, args, fields)
#define WEFT_CLASS_enums(provider, name, args, fields)
#define WEFT_INSTANCE_enums(class_provider, class_name, provider, event, args)
#define WEFT_ENUM_enums(provider, name, values) WEFT_DEFINE_ENUM(provider, name, values)
#define WEFT_LOGLEVEL_enums(provider, event, level)
#define WEFT_URI_enums(provider, event, uri)

#define WEFT_EVENT_classes(provider, event, args, fields) \
  WEFT_DEFINE_CLASS(provider, event, args, fields)
#define WEFT_CLASS_classes(provider, name, args, fields) \
  WEFT_DEFINE_CLASS(provider, name, args, fields)
#define WEFT_INSTANCE_classes(class_provider, class_name, provider, event, args)
#define WEFT_ENUM_classes(provider, name, values)
#define WEFT_LOGLEVEL_classes(provider, event, level)
#define WEFT_URI_classes(provider, event, uri)

#define WEFT_EVENT_probes(provider, event, args, fields) \
  WEFT_DEFINE_EVENT(provider, event, provider, event, args, WEFT_ARGS_MORE_NAMES(args))
#define WEFT_CLASS_probes(provider, name, args, fields)
#define WEFT_INSTANCE_probes(class_provider, class_name, provider, event, args) \
  WEFT_DEFINE_EVENT(class_provider, class_name, provider, event, args,          \
                    WEFT_ARGS_MORE_CONVERTED(class_provider##___##class_name, args))
#define WEFT_ENUM_probes(provider, name, values)
#define WEFT_LOGLEVEL_probes(provider, event, level)
#define WEFT_URI_probes(provider, event, uri)

#define WEFT_EVENT_properties(provider, event, args, fields)
#define WEFT_CLASS_properties(provider, name, args, fields)
#define WEFT_INSTANCE_properties(class_provider, class_name, provider, event, args)
#define WEFT_ENUM_properties(provider, name, values)
#define WEFT_LOGLEVEL_properties(provider, event, level) \
  WEFT_DESCRIBE_LOGLEVEL(provider, event, level)
#define WEFT_URI_properties(provider, event, uri) WEFT_DESCRIBE_URI(provider, event, uri)

#define WEFT_EVENT_describe(provider, event, args, fields) \
  WEFT_DEFINE_DESCRIPTION(provider, event, provider, event)
#define WEFT_CLASS_describe(provider, name, args, fields)
#define WEFT_INSTANCE_describe(class_provider, class_name, provider, event, args) \
  WEFT_DEFINE_DESCRIPTION(class_provider, class_name, provider, event)
#define WEFT_ENUM_describe(provider, name, values)
#define WEFT_LOGLEVEL_describe(provider, event, level)
#define WEFT_URI_describe(provider, event, uri)

#endif /* WEFT_DETAIL_PROVIDER_H_ */
