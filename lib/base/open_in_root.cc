// SPDX-License-Identifier: Apache-2.0
// See open_in_root.h. openat2(2): RESOLVE_IN_ROOT.
#include "lib/base/open_in_root.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft {

Result<UniqueFd> OpenInRoot(const std::string& root, const std::string& path) {
  const UniqueFd folder(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return FailErrno(root);
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const UniqueFd found(
      static_cast<int>(syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof(how))));
  if (!found) {
    const int error = errno;
    return Fail(ErrorCode::kInvalid, std::strerror(error));
  }
  struct stat status{};
  if (fstat(found.get(), &status) != 0) return FailErrno("open");
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kInvalid, "no regular file");
  const std::string again = "/proc/self/fd/" + std::to_string(found.get());
  UniqueFd file(open(again.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return FailErrno("open");
  return file;
}

}  // namespace weft
