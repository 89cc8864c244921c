/* SPDX-License-Identifier: Apache-2.0 */
/* weft takes the CPU from the kernel only: records are ordered by it. */
#pragma GCC system_header
#ifndef WEFT_LTTNG_UST_GETCPU_H_
#define WEFT_LTTNG_UST_GETCPU_H_

#include <errno.h>

static inline int lttng_ust_getcpu_override(int (*getcpu)(void)) {
  (void)getcpu;
  return -ENOSYS;
}

#endif /* WEFT_LTTNG_UST_GETCPU_H_ */
