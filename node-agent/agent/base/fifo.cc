// SPDX-License-Identifier: Apache-2.0
// See fifo.h.
#include "node-agent/agent/base/fifo.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace weft::agent {

Result<UniqueFd> OpenFifo(const std::string& path) {
  struct stat st{};
  if (lstat(path.c_str(), &st) == 0 && !S_ISFIFO(st.st_mode)) unlink(path.c_str());
  if (mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST) return FailErrno(path);
  UniqueFd fifo(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!fifo) return FailErrno(path);
  // The mode must not depend on the umask.
  if (fchmod(fifo.get(), 0666) != 0) return FailErrno(path);
  return fifo;
}

void TakeOut(const UniqueFd& fifo, uint64_t bytes) {
  std::array<char, 4096> taken;
  while (bytes > 0) {
    const ssize_t n = read(fifo.get(), taken.data(), std::min<uint64_t>(bytes, taken.size()));
    if (n <= 0) return;
    bytes -= static_cast<uint64_t>(n);
  }
}

}  // namespace weft::agent
