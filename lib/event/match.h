/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Decides which events a rule matches: names by star patterns, exclusions, log levels. libweft.so
 * (on its slow path) and the agent use it to decide whether an event is on, `weft record` before
 * that, and filters for their patterns. It is freestanding C without allocation, recursion or
 * state: it may run in any thread and any signal handler.
 *
 * A star pattern, as LTTng's: `*` matches any bytes, also none; `\` quotes the byte behind it (a
 * `\` at the end stands for itself); every other byte matches itself. There are no byte classes and
 * no `?`.
 */
#ifndef WEFT_LIB_EVENT_MATCH_H_
#define WEFT_LIB_EVENT_MATCH_H_

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdbool.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Does all of text match all of pattern? Sizes in bytes without a NUL; a NUL is a byte like any.
 * Time: at most pattern_size * text_size steps, typically their sum. */
bool weft_glob_match(const char* pattern, uint32_t pattern_size, const char* text,
                     uint32_t text_size);

/* Like weft_glob_match, for NUL-terminated strings. */
bool weft_glob_match_str(const char* pattern, const char* text);

/* A rule for weft_match_event. Its owner keeps the exclusions in a form of its own. */
struct weft_match_rule {
  const char* pattern; /* NUL-terminated star pattern over "provider:event" */
  /* Returns star pattern number i < exclusion_count, NUL-terminated; NULL: none. `of` is
   * exclusions. */
  const char* (*exclusion)(const void* of, uint32_t i);
  const void* exclusions;
  uint32_t exclusion_count;
  int32_t loglevel_min; /* both included; LTTng's scale, 0 emergency to 14 debug */
  int32_t loglevel_max;
};

/* Does the rule mean the event `name` (NUL-terminated)? */
bool weft_match_event(const struct weft_match_rule* rule, const char* name, int32_t loglevel);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LIB_EVENT_MATCH_H_ */
