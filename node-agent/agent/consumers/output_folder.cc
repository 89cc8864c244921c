// SPDX-License-Identifier: Apache-2.0
// See output_folder.h. openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, part by part.
#include "node-agent/agent/consumers/output_folder.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace weft::agent {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr int kMaxParts = 16;

UniqueFd OpenBeneath(int folder, const std::string& name, uint64_t flags, uint64_t mode) {
  open_how how{};
  how.flags = flags | O_CLOEXEC | O_NOFOLLOW;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(syscall(SYS_openat2, folder, name.c_str(), &how, sizeof(how))));
}

}  // namespace

Result<OutputFolder> OutputFolder::Open(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno(path);
  return OutputFolder(std::move(fd));
}

Result<UniqueFd> OutputFolder::OpenFile(std::string_view name) const {
  if (name.empty() || name.size() > kMaxNameBytes || name.find('\0') != std::string_view::npos)
    return Fail(ErrorCode::kInvalid, "not a file's name");
  UniqueFd folder(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3));
  for (int parts = 0; parts < kMaxParts; ++parts) {
    const size_t slash = name.find('/');
    const std::string part(name.substr(0, slash));
    if (part.empty() || part == "." || part == "..")
      return Fail(ErrorCode::kInvalid, "not a name beneath the output folder");
    if (slash == std::string_view::npos) {
      UniqueFd file = OpenBeneath(folder.get(), part, O_RDWR | O_CREAT | O_NONBLOCK, 0644);
      if (!file) return FailErrno(part);
      struct stat st{};
      if (fstat(file.get(), &st) != 0) return FailErrno(part);
      if (!S_ISREG(st.st_mode)) return Fail(ErrorCode::kInvalid, part + ": not a regular file");
      return file;
    }
    if (mkdirat(folder.get(), part.c_str(), 0755) != 0 && errno != EEXIST) return FailErrno(part);
    UniqueFd next = OpenBeneath(folder.get(), part, O_RDONLY | O_DIRECTORY, 0);
    if (!next) return FailErrno(part);
    folder = std::move(next);
    name.remove_prefix(slash + 1);
  }
  return Fail(ErrorCode::kInvalid, "more folders than there can be");
}

}  // namespace weft::agent
