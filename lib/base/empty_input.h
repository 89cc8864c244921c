// SPDX-License-Identifier: Apache-2.0
// Returns a descriptor from which nothing can be read. Programs of weft use it instead of
// /dev/null, which a container or a chroot may lack.
#ifndef WEFT_LIB_BASE_EMPTY_INPUT_H_
#define WEFT_LIB_BASE_EMPTY_INPUT_H_

#include <fcntl.h>
#include <unistd.h>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft {

// Returns the reading end of a pipe without a writer: a read returns 0 at once. The descriptor is
// close-on-exec and not one of 0 to 9, so that it can be duplicated to one of these.
inline Result<UniqueFd> OpenEmptyInput() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return FailErrno("pipe");
  const UniqueFd reading(ends[0]);
  const UniqueFd writing(ends[1]);
  UniqueFd input(::fcntl(reading.get(), F_DUPFD_CLOEXEC, 10));
  if (!input) return FailErrno("duplicating a descriptor");
  return input;
}

}  // namespace weft

#endif  // WEFT_LIB_BASE_EMPTY_INPUT_H_
