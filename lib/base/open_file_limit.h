// SPDX-License-Identifier: Apache-2.0
// The limit on this process's open files.
#ifndef WEFT_LIB_BASE_OPEN_FILE_LIMIT_H_
#define WEFT_LIB_BASE_OPEN_FILE_LIMIT_H_

#include <sys/resource.h>

namespace weft {

// Raises this process's soft limit to the hard one, best effort. The soft one is often 1024, and a
// trace has a file for each stream.
inline void RaiseOpenFileLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_OPEN_FILE_LIMIT_H_
