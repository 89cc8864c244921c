// SPDX-License-Identifier: Apache-2.0
// See relay_path.h.
#include "cli/kubectl/relay_path.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace weft::kubectl {
namespace {

constexpr std::size_t kMaxPath = 1024;  // as docs/openapi/relay.yaml has it
constexpr std::size_t kMaxName = 255;   // NAME_MAX

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' &&
         std::ranges::all_of(name, IsNameCharacter);
}

std::unexpected<Error> FailInTheWay(std::string_view path) {
  const int saved = errno;
  return std::unexpected(
      Error{saved == ELOOP || saved == ENOTDIR ? ErrorCode::kInvalid : ErrorCode::kIo, saved,
            std::string(path) + ": " + std::strerror(saved)});
}

// The folder `name` in `parent`, made if it is not there.
Result<UniqueFd> OpenFolder(int parent, const std::string& name, std::string_view path) {
  if (mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) return FailInTheWay(path);
  UniqueFd fd(openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return FailInTheWay(path);
  return fd;
}

}  // namespace

bool IsRelayPath(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath) return false;
  for (;;) {
    const std::size_t end = path.find('/');
    if (!IsName(path.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    path.remove_prefix(end + 1);
  }
}

Result<OutputFolder> OutputFolder::Open(const std::string& path) {
  if (mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) return FailErrno(path);
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return FailErrno(path);
  return OutputFolder(path, std::move(fd));
}

Result<UniqueFd> OutputFolder::OpenFile(std::string_view path) const {
  if (!IsRelayPath(path))
    return Fail(ErrorCode::kInvalid, "the relay sent a file's name that is none of a trace");
  UniqueFd held;
  int folder = folder_.get();
  std::string_view rest = path;
  for (std::size_t end = rest.find('/'); end != std::string_view::npos; end = rest.find('/')) {
    WEFT_ASSIGN(UniqueFd below, OpenFolder(folder, std::string(rest.substr(0, end)), path));
    held = std::move(below);
    folder = held.get();
    rest.remove_prefix(end + 1);
  }
  UniqueFd fd(openat(folder, std::string(rest).c_str(),
                     O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666));
  if (!fd) return FailInTheWay(path);
  struct stat s = {};
  if (fstat(fd.get(), &s) != 0) return FailErrno(path);
  if (!S_ISREG(s.st_mode)) return Fail(ErrorCode::kInvalid, std::string(path) + " is no file");
  return fd;
}

Status WriteAt(int fd, std::string_view bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("write");
    bytes.remove_prefix(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<std::string> ReadAt(int fd, std::size_t size, std::uint64_t offset) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n =
        pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno("read");
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

Result<std::uint64_t> SizeOf(int fd) {
  struct stat s = {};
  if (fstat(fd, &s) != 0) return FailErrno("fstat");
  return static_cast<std::uint64_t>(s.st_size);
}

}  // namespace weft::kubectl
