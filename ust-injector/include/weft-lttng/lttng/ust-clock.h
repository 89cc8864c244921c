/* SPDX-License-Identifier: Apache-2.0 */
/* A node has one clock, which the agent chooses: a program cannot override it. Every function here
 * returns -ENOSYS. */
#pragma GCC system_header
#ifndef WEFT_LTTNG_UST_CLOCK_H_
#define WEFT_LTTNG_UST_CLOCK_H_

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#define LTTNG_UST_UUID_STR_LEN 37

typedef uint64_t (*lttng_ust_clock_read64_function)(void);
typedef uint64_t (*lttng_ust_clock_freq_function)(void);
typedef int (*lttng_ust_clock_uuid_function)(char* uuid);
typedef const char* (*lttng_ust_clock_name_function)(void);
typedef const char* (*lttng_ust_clock_description_function)(void);

#define WEFT_NO_CLOCK_OVERRIDE(what)                       \
  static inline int lttng_ust_trace_clock_set_##what##_cb( \
      lttng_ust_clock_##what##_function callback) {        \
    (void)callback;                                        \
    return -ENOSYS;                                        \
  }                                                        \
  static inline int lttng_ust_trace_clock_get_##what##_cb( \
      lttng_ust_clock_##what##_function* callback) {       \
    (void)callback;                                        \
    return -ENOSYS;                                        \
  }
WEFT_NO_CLOCK_OVERRIDE(read64)
WEFT_NO_CLOCK_OVERRIDE(freq)
WEFT_NO_CLOCK_OVERRIDE(uuid)
WEFT_NO_CLOCK_OVERRIDE(name)
WEFT_NO_CLOCK_OVERRIDE(description)
#undef WEFT_NO_CLOCK_OVERRIDE

static inline int lttng_ust_enable_trace_clock_override(void) { return -ENOSYS; }

#endif /* WEFT_LTTNG_UST_CLOCK_H_ */
