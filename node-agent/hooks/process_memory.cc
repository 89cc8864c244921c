// SPDX-License-Identifier: Apache-2.0
// See process_memory.h. proc(5): maps, map_files, mem, pagemap.
#include "node-agent/hooks/process_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "lib/base/open_in_root.h"
#include "lib/event/text.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

std::string Proc(int32_t pid, const std::string& name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

// Takes the text up to `end` from the front; std::nullopt: there is no `end`.
std::optional<std::string_view> TakeUntil(std::string_view& text, char end) {
  const size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view word = text.substr(0, at);
  text.remove_prefix(at + 1);
  return word;
}

// Opens a file for reading. Nothing but a regular file is opened, since opening alone can have
// effects (a device).
Result<UniqueFd> OpenAgain(const UniqueFd& place, const std::string& name) {
  struct stat status{};
  if (fstat(place.get(), &status) != 0) return FailErrno(name);
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kNotFound, name + ": is no regular file");
  const std::string path = "/proc/self/fd/" + std::to_string(place.get());
  UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return FailErrno(name);
  return file;
}

bool ParseNumber(std::optional<std::string_view> word, int base, uint64_t& out) {
  if (!word || word->empty()) return false;
  const auto [at, error] = std::from_chars(word->data(), word->data() + word->size(), out, base);
  return error == std::errc() && at == word->data() + word->size();
}

}  // namespace

std::optional<MappedRange> ParseRange(std::string_view line) {
  MappedRange range;
  if (!ParseNumber(TakeUntil(line, '-'), 16, range.begin) ||
      !ParseNumber(TakeUntil(line, ' '), 16, range.end) || range.end <= range.begin)
    return std::nullopt;
  const auto rights = TakeUntil(line, ' ');
  if (!rights || rights->size() != 4) return std::nullopt;
  range.executable = (*rights)[2] == 'x';
  if (!ParseNumber(TakeUntil(line, ' '), 16, range.offset)) return std::nullopt;
  const auto device = TakeUntil(line, ' ');
  if (!device) return std::nullopt;
  range.device = *device;
  const size_t space = std::min(line.find(' '), line.size());
  if (!ParseNumber(line.substr(0, space), 10, range.inode)) return std::nullopt;
  line.remove_prefix(space);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  range.path = line;
  return range;
}

Result<std::vector<MappedRange>> ReadRanges(int32_t pid) {
  const std::string path = Proc(pid, "maps");
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return FailErrno(path);
  std::string text;
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t n = read(fd.get(), block.data(), block.size());
    if (n < 0) return FailErrno(path);
    if (n == 0) break;
    text.append(block.data(), static_cast<size_t>(n));
    if (text.size() > kMaxMapsBytes) return Fail(ErrorCode::kLimit, path + ": too many mappings");
  }
  std::vector<MappedRange> ranges;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (auto range = ParseRange(rest.substr(0, end))) ranges.push_back(std::move(*range));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return ranges;
}

std::vector<LoadedObject> ObjectsOf(const std::vector<MappedRange>& ranges) {
  std::vector<LoadedObject> objects;
  for (const MappedRange& range : ranges) {
    if (range.inode == 0) continue;
    // Linkers that leave no gaps in a file let its first page be mapped twice.
    const bool goes_on = !objects.empty() && objects.back().inode == range.inode &&
                         objects.back().device == range.device &&
                         range.begin - objects.back().end <= kMaxGapBytes;
    if (!goes_on) {
      // A file that is not mapped from its first byte is no object that ld.so loaded.
      if (range.offset != 0) continue;
      LoadedObject& object = objects.emplace_back();
      object.path = range.path;
      object.name = Printable(range.path.substr(range.path.rfind('/') + 1));
      if (constexpr std::string_view kDeleted = " (deleted)"; object.name.ends_with(kDeleted))
        object.name.resize(object.name.size() - kDeleted.size());
      object.device = range.device;
      object.inode = range.inode;
      object.begin = range.begin;
      object.first = range;
    }
    objects.back().end = range.end;
    if (range.executable) objects.back().code.push_back(range);
  }
  std::erase_if(objects, [](const LoadedObject& object) { return object.code.empty(); });
  return objects;
}

bool ArePagesOwn(int32_t pid, const std::set<uint64_t>& addresses) {
  if (addresses.empty()) return true;
  constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62,
                     kOfFile = uint64_t{1} << 61;
  const UniqueFd map(open(Proc(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC));
  if (!map) return true;
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::ranges::all_of(addresses, [&](uint64_t address) {
    uint64_t page = 0;
    const uint64_t at = address / page_bytes * sizeof(page);
    if (pread(map.get(), &page, sizeof(page), static_cast<off_t>(at)) != sizeof(page)) return true;
    return (page & kOfFile) == 0 && (page & (kPresent | kSwapped)) != 0;
  });
}

Result<ProcessMemory> ProcessMemory::Open(int32_t pid) {
  const std::string path = Proc(pid, "mem");
  UniqueFd memory(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory) return FailErrno(path);
  return ProcessMemory(pid, std::move(memory));
}

bool ProcessMemory::Read(uint64_t address, void* to, size_t size) const {
  return address <= INT64_MAX &&
         pread(memory_.get(), to, size, static_cast<off_t>(address)) == static_cast<ssize_t>(size);
}

Status ProcessMemory::Write(uint64_t address, Bytes bytes) const {
  const ssize_t n = address > INT64_MAX ? -1
                                        : pwrite(memory_.get(), bytes.data(), bytes.size(),
                                                 static_cast<off_t>(address));
  if (n != static_cast<ssize_t>(bytes.size()))
    return FailErrno("memory of process " + std::to_string(pid_));
  return {};
}

Result<UniqueFd> ProcessMemory::OpenObject(const LoadedObject& object) const {
  std::array<char, 64> name;
  std::snprintf(name.data(), name.size(), "map_files/%llx-%llx",
                static_cast<unsigned long long>(object.first.begin),
                static_cast<unsigned long long>(object.first.end));
  // The link leads to the file itself, but only privileged processes may follow it.
  UniqueFd fd;
  const UniqueFd mapped(open(Proc(pid_, name.data()).c_str(), O_PATH | O_CLOEXEC));
  if (mapped) {
    WEFT_ASSIGN(fd, OpenAgain(mapped, object.path));
  } else if (auto opened = OpenInRoot(Proc(pid_, "root"), object.path)) {
    fd = std::move(*opened);
  }
  struct stat status{};
  if (!fd || fstat(fd.get(), &status) != 0) return FailErrno(object.path);
  if (!S_ISREG(status.st_mode) || status.st_ino != object.inode)
    return Fail(ErrorCode::kNotFound, object.path + ": is another file by now");
  return fd;
}

}  // namespace weft::hooks
