// SPDX-License-Identifier: Apache-2.0
// See memory_maps.h; the format is in proc_pid_maps(5).
#include "node-agent/agent/discovery/memory_maps.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>

namespace weft::agent {
namespace {

// Takes a number and the character behind it off the front.
template <typename T>
bool Take(std::string_view& text, T& value, int base, char behind) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [at, error] = std::from_chars(begin, end, value, base);
  if (error != std::errc() || at == end || *at != behind) return false;
  text.remove_prefix(static_cast<size_t>(at - begin) + 1);
  return true;
}

// What is mapped, not opened.
struct Place {
  std::string path;
  UniqueFd fd;
  struct stat st{};
};

Result<Place> FindPlace(int32_t pid, const Mapping& mapping) {
  std::array<char, 96> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/map_files/%llx-%llx", pid,
                static_cast<unsigned long long>(mapping.start),
                static_cast<unsigned long long>(mapping.end));
  Place place{.path = path.data(), .fd = UniqueFd(open(path.data(), O_PATH | O_CLOEXEC))};
  if (!place.fd) {
    if (errno == EPERM || errno == EACCES)
      return Fail(ErrorCode::kPermission, place.path + ": not permitted");
    return Fail(ErrorCode::kNotFound, place.path + ": is gone");
  }
  if (fstat(place.fd.get(), &place.st) != 0) return FailErrno(place.path);
  return place;
}

Result<UniqueFd> Open(const Place& place, int access) {
  const std::string path = "/proc/self/fd/" + std::to_string(place.fd.get());
  UniqueFd fd(open(path.c_str(), access | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return FailErrno(place.path);
  return fd;
}

}  // namespace

std::optional<Mapping> ParseMapping(std::string_view line) {
  constexpr size_t kRights = 5;  // "rw-s "
  Mapping m;
  uint64_t offset = 0;
  uint32_t major_number = 0, minor_number = 0;
  if (!Take(line, m.start, 16, '-') || !Take(line, m.end, 16, ' ') || line.size() < kRights)
    return std::nullopt;
  line.remove_prefix(kRights);
  if (!Take(line, offset, 16, ' ') || !Take(line, major_number, 16, ':') ||
      !Take(line, minor_number, 16, ' '))
    return std::nullopt;
  const char* begin = line.data();
  const auto [at, error] = std::from_chars(begin, begin + line.size(), m.inode);
  if (error != std::errc()) return std::nullopt;
  m.device = makedev(major_number, minor_number);
  line.remove_prefix(static_cast<size_t>(at - begin));
  const size_t name = line.find_first_not_of(' ');
  if (name != std::string_view::npos) m.name = line.substr(name);
  return m;
}

Result<std::vector<Mapping>> ReadMappings(int32_t pid, size_t max_bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/maps";
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno(path);
  std::vector<Mapping> mappings;
  std::array<char, 65536> bytes;
  std::string rest;
  for (size_t total = 0; total < max_bytes;) {
    const ssize_t n = read(fd.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FailErrno(path);
    if (n == 0) break;
    total += static_cast<size_t>(n);
    rest.append(bytes.data(), static_cast<size_t>(n));
    size_t from = 0;
    for (size_t at; (at = rest.find('\n', from)) != std::string::npos; from = at + 1) {
      auto mapping = ParseMapping(std::string_view(rest).substr(from, at - from));
      if (mapping && mapping->inode != 0) mappings.push_back(std::move(*mapping));
    }
    rest.erase(0, from);
  }
  return mappings;
}

Result<UniqueFd> OpenMapping(int32_t pid, const Mapping& mapping) {
  WEFT_ASSIGN(const Place place, FindPlace(pid, mapping));
  if (!S_ISREG(place.st.st_mode) || place.st.st_ino != mapping.inode ||
      place.st.st_dev != mapping.device)
    return Fail(ErrorCode::kNotFound, place.path + ": is something else by now");
  return Open(place, O_RDWR);
}

Result<UniqueFd> OpenMappedFile(int32_t pid, const Mapping& mapping) {
  WEFT_ASSIGN(const Place place, FindPlace(pid, mapping));
  if (!S_ISREG(place.st.st_mode))
    return Fail(ErrorCode::kInvalid, place.path + ": not a regular file");
  return Open(place, O_RDONLY);
}

}  // namespace weft::agent
