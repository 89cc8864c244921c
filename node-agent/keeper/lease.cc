// SPDX-License-Identifier: Apache-2.0
// See lease.h.
#include "node-agent/keeper/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "lib/ipc/messages.h"

namespace weft::keeper {

Result<bool> Lease::TryTake() {
  if (fd_ || dir_.empty()) return true;
  const std::string path = dir_ + "/keeper.lock";
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return FailErrno(path);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == EINTR) return false;
    return FailErrno(path);
  }
  // Above what children get it as.
  fd_.reset(fcntl(fd.get(), F_DUPFD_CLOEXEC, ipc::kLeaseFd + 1));
  if (!fd_) return FailErrno(path);
  return true;
}

}  // namespace weft::keeper
