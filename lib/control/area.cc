// SPDX-License-Identifier: Apache-2.0
// The control area's file: made whole and renamed, changed by pwrite in the order A1, A2, A3.
#include "lib/control/area.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace weft::control {
namespace {

constexpr uint64_t kWordsOffset = WEFT_CONTROL_WORDS_OFFSET;
constexpr uint64_t kWordsBytes = WEFT_CONTROL_WORDS * sizeof(uint32_t);
constexpr uint64_t kArenaOffset = WEFT_CONTROL_ARENA_OFFSET;
constexpr uint64_t kTotalSize = WEFT_CONTROL_TOTAL_BYTES;

weft_control_header MakeHeader(const AreaConfig& config) {
  weft_control_header header{};
  header.magic = WEFT_CONTROL_MAGIC;
  header.major = WEFT_CONTROL_MAJOR;
  header.minor = WEFT_CONTROL_MINOR;
  header.header_size = sizeof(header);
  header.total_size = kTotalSize;
  header.words_offset = kWordsOffset;
  header.arena_offset = kArenaOffset;
  header.arena_size = WEFT_CONTROL_ARENA_BYTES;
  header.word_count = WEFT_CONTROL_WORDS;
  header.slot_count = config.slot_count;
  header.clock = config.clock;
  return header;
}

// Checks memory that a process made and no process can resize: a sealed memfd, or anonymous memory,
// which has no descriptor by which it could be.
Status CheckForeignMemory(const UniqueFd& fd) {
  struct stat st{};
  struct statfs fs{};
  if (fstat(fd.get(), &st) != 0 || fstatfs(fd.get(), &fs) != 0) return FailErrno("weft-ctl");
  if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC ||
      st.st_size != static_cast<off_t>(kTotalSize))
    return Fail(ErrorCode::kCorrupt,
                "weft-ctl: not a control area: wrong kind of memory, or wrong size");
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  constexpr int kSealed = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
  if (seals < 0 || ((seals & kSealed) != kSealed && seals != F_SEAL_SEAL))
    return Fail(ErrorCode::kCorrupt, "weft-ctl: not a control area: wrong seals");
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return Fail(ErrorCode::kLimit,
                "another recording has this process already; end that one first");
  return {};
}

}  // namespace

Result<ControlArea> ControlArea::Create(const std::string& path, const AreaConfig& config) {
  ControlArea area;
  area.path_ = path;
  area.config_ = config;
  area.header_ = MakeHeader(config);
  area.words_.assign(WEFT_CONTROL_WORDS, 0);
  area.in_force_end_ = kArenaOffset;

  const std::string unfinished = path + ".new";
  unlink(unfinished.c_str());
  // Every process of the container reads the file, whatever its user.
  area.fd_.reset(open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!area.fd_) return FailErrno(unfinished);
  if (fchmod(area.fd_.get(), 0644) != 0) return FailErrno(unfinished);
  if (ftruncate(area.fd_.get(), static_cast<off_t>(kTotalSize)) != 0) return FailErrno(unfinished);
  WEFT_TRY(area.WriteAt(0, &area.header_, sizeof(area.header_)));
  if (rename(unfinished.c_str(), path.c_str()) != 0) return FailErrno(path);
  return area;
}

Result<ControlArea> ControlArea::Open(const std::string& path) {
  ControlArea area;
  area.path_ = path;
  area.fd_.reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!area.fd_) return FailErrno(path);
  WEFT_TRY(area.ReadState());
  return area;
}

Status ControlArea::ReadState() {
  struct stat st{};
  if (fstat(fd_.get(), &st) != 0) return FailErrno(path_);
  if (pread(fd_.get(), &header_, sizeof(header_), 0) != ssize_t{sizeof(header_)})
    return Fail(ErrorCode::kCorrupt, path_ + ": not a control area");
  config_ = {header_.slot_count, header_.clock};
  weft_control_header expected = MakeHeader(config_);
  expected.rules = header_.rules;
  if (std::memcmp(&expected, &header_, sizeof(header_)) != 0 ||
      st.st_size != static_cast<off_t>(kTotalSize))
    return Fail(ErrorCode::kCorrupt, path_ + ": not a control area of this version of weft");
  words_.resize(WEFT_CONTROL_WORDS);
  if (pread(fd_.get(), words_.data(), kWordsBytes, kWordsOffset) != ssize_t{kWordsBytes})
    return Fail(ErrorCode::kCorrupt, path_ + ": truncated");
  in_force_end_ = kArenaOffset;
  if (header_.rules == 0) return {};
  weft_ruleset set{};
  const bool inside = header_.rules >= kArenaOffset && header_.rules <= kTotalSize - sizeof(set) &&
                      pread(fd_.get(), &set, sizeof(set), static_cast<off_t>(header_.rules)) ==
                          ssize_t{sizeof(set)};
  if (!inside || set.magic != WEFT_CONTROL_MAGIC || set.size > WEFT_MAX_RULESET_BYTES)
    return Fail(ErrorCode::kCorrupt, path_ + ": its rules are damaged");
  generation_ = set.generation;
  in_force_end_ = header_.rules + set.size;
  return {};
}

// The process controls the bytes that are read here. They decide only two things: where the agent
// writes in the process's own memory, and with which generation. Wrong bytes spoil only that
// process's own recording.
Result<ControlArea> ControlArea::Adopt(UniqueFd fd, const AreaConfig& config) {
  WEFT_TRY(CheckForeignMemory(fd));
  ControlArea area;
  area.path_ = "weft-ctl";
  area.fd_ = std::move(fd);
  area.config_ = config;
  weft_control_header claimed{};
  if (pread(area.fd_.get(), &claimed, sizeof(claimed), 0) != ssize_t{sizeof(claimed)})
    return FailErrno(area.path_);
  area.header_ = MakeHeader({claimed.slot_count, claimed.clock});
  area.header_.rules = claimed.rules;
  if (std::memcmp(&area.header_, &claimed, sizeof(claimed)) != 0)
    return Fail(ErrorCode::kUnsupported, "weft-ctl: made by another version of weft");
  WEFT_TRY(area.ReadHints());
  // A0
  const uint32_t decided[2] = {config.slot_count, config.clock};
  static_assert(offsetof(weft_control_header, clock) ==
                offsetof(weft_control_header, slot_count) + sizeof(decided[0]));
  WEFT_TRY(area.WriteAt(offsetof(weft_control_header, slot_count), decided, sizeof(decided)));
  area.header_.slot_count = config.slot_count;
  area.header_.clock = config.clock;
  return area;
}

void ControlArea::FreePages() const {
  (void)fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kWordsOffset,
                  WEFT_CONTROL_TOTAL_BYTES - kWordsOffset);
}

// Reads an earlier agent's rules and words. The next generation is above all of them, since
// processes remember decisions by generation; the next rules go behind those in force.
Status ControlArea::ReadHints() {
  words_.resize(WEFT_CONTROL_WORDS);
  if (pread(fd_.get(), words_.data(), kWordsBytes, kWordsOffset) != ssize_t{kWordsBytes})
    return FailErrno(path_);
  generation_ = *std::ranges::max_element(words_);
  in_force_end_ = kArenaOffset;
  weft_ruleset set{};
  if (header_.rules < kArenaOffset || header_.rules > kTotalSize - sizeof(set) ||
      pread(fd_.get(), &set, sizeof(set), static_cast<off_t>(header_.rules)) !=
          ssize_t{sizeof(set)})
    return {};
  generation_ = std::max(generation_, set.generation);
  const uint64_t end = header_.rules + std::min(set.size, WEFT_MAX_RULESET_BYTES);
  in_force_end_ = std::min<uint64_t>((end + 7) & ~uint64_t{7}, kTotalSize);
  return {};
}

Status ControlArea::WriteAt(uint64_t offset, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = pwrite(fd_.get(), at, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno(path_);
    at += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return {};
}

Status ControlArea::WriteWords(const std::vector<uint32_t>& wanted) {
  size_t i = 0;
  while (i < wanted.size()) {
    if (words_[i] == wanted[i]) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < wanted.size() && words_[end] != wanted[end]) ++end;
    WEFT_TRY(
        WriteAt(kWordsOffset + i * sizeof(uint32_t), &wanted[i], (end - i) * sizeof(uint32_t)));
    for (; i < end; ++i) words_[i] = wanted[i];
  }
  return {};
}

Status ControlArea::Publish(const std::vector<ChannelSpec>& channels) {
  if (generation_ == UINT32_MAX) return Fail(ErrorCode::kLimit, path_ + ": no generation is left");
  const uint32_t generation = generation_ + 1;
  WEFT_ASSIGN(const std::vector<uint8_t> bytes, EncodeRuleset(generation, channels));

  // A1. Never over the set in force: the arena is eight times the largest set.
  uint64_t at = in_force_end_;
  if (at + bytes.size() > kTotalSize) at = kArenaOffset;
  WEFT_TRY(WriteAt(at, bytes.data(), bytes.size()));
  // A2
  WEFT_TRY(WriteAt(offsetof(weft_control_header, rules), &at, sizeof(at)));
  header_.rules = at;
  generation_ = generation;
  in_force_end_ = at + bytes.size();
  // A3
  const std::vector<bool> concerned = ConcernedWords(channels);
  std::vector<uint32_t> wanted(WEFT_CONTROL_WORDS, 0);
  for (size_t i = 0; i < wanted.size(); ++i)
    if (concerned[i]) wanted[i] = generation;
  return WriteWords(wanted);
}

}  // namespace weft::control
