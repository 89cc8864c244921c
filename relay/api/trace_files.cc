// SPDX-License-Identifier: Apache-2.0
// See trace_files.h.
#include "relay/api/trace_files.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "lib/store/list_folder.h"
#include "relay/api/limits.h"
#include "relay/api/request.h"

namespace weft::relay_api {
namespace {

constexpr std::string_view kMetadata = "metadata";

using store::FolderEntry;

// Stored files and folders in a folder, by name.
Result<std::vector<FolderEntry>> Entries(UniqueFd folder) {
  WEFT_ASSIGN(auto found, store::ListFolder(std::move(folder), "fdopendir"));
  std::erase_if(found, [](const FolderEntry& entry) { return !IsStoredName(entry.name); });
  std::ranges::sort(found, {}, &FolderEntry::name);
  return found;
}

// Whether the packet that was the last one is there still: a relay cuts off what the node does not
// know to be stored.
bool IsStillThere(int fd, const store::StreamState& state) {
  std::array<uint8_t, ctf::kPacketHeaderBytes> front;
  const auto got = ::pread(fd, front.data(), front.size(), static_cast<off_t>(state.last_begin));
  if (got != static_cast<ssize_t>(front.size())) return false;
  const auto info = ctf::ReadPacketInfo(front);
  return info && info->sequence == state.last_sequence && info->end == state.last_time &&
         info->packet_bytes == state.bytes - state.last_begin;
}

// Makes `offset` and `size` of a stream enclose the packets of `range`. Reads the header of each
// packet up to the last one of the range.
Status Narrow(int fd, const TimeRange& range, StoredFile& file) {
  std::array<uint8_t, ctf::kPacketHeaderBytes> front;
  uint64_t at = 0;
  uint64_t end = 0;
  bool has_any = false;
  while (at + front.size() <= file.size) {
    const auto got = ::pread(fd, front.data(), front.size(), static_cast<off_t>(at));
    if (got < 0) return FailErrno("pread");
    const auto info = ctf::ReadPacketInfo(std::span(front).first(static_cast<size_t>(got)));
    // It was cut off meanwhile.
    if (!info || info->packet_bytes > file.size - at) break;
    if (info->begin > range.until) break;
    if (!has_any && info->end >= range.since) {
      has_any = true;
      file.offset = at;
    }
    at += info->packet_bytes;
    if (has_any) end = at;
  }
  file.size = end;
  return {};
}

}  // namespace

Result<UniqueFd> TraceFiles::Open(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<uint64_t>(O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(
      static_cast<int>(syscall(SYS_openat2, folder_.get(), path.c_str(), &how, sizeof(how))));
  if (fd) return fd;
  if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV) {
    return Fail(ErrorCode::kNotFound, "nothing of that name is stored");
  }
  return FailErrno(path);
}

bool TraceFiles::Has(const std::string& trace_folder) const {
  return Open(trace_folder, O_DIRECTORY).has_value();
}

Result<std::vector<StoredTrace>> TraceFiles::ListTraces(const std::string& kubernetes_namespace,
                                                        const std::string& only) const {
  std::vector<StoredTrace> traces;
  auto folder = Open(kubernetes_namespace, O_DIRECTORY);
  if (!folder && folder.error().code == ErrorCode::kNotFound) return traces;
  if (!folder) return std::unexpected(std::move(folder).error());
  WEFT_ASSIGN(const auto names, Entries(std::move(*folder)));
  uint64_t counted = 0;
  // Folders below a Trace's, from the data folder on.
  const auto count = [&](const auto& self, const std::string& path, int depth,
                         StoredTrace& into) -> void {
    if (depth > kMaxDepth || counted >= kMaxListedFiles) return;
    auto opened = Open(path, O_DIRECTORY);
    if (!opened) return;  // it was deleted meanwhile
    const auto entries = Entries(std::move(*opened));
    if (!entries) return;
    for (const FolderEntry& entry : *entries) {
      if (entry.is_folder) {
        self(self, path + "/" + entry.name, depth + 1, into);
      } else if (entry.bytes > 0 && counted < kMaxListedFiles) {
        counted++;
        into.files++;
        into.bytes += entry.bytes;
      }
    }
  };
  for (const FolderEntry& name : names) {
    if (!name.is_folder || (!only.empty() && name.name != only)) continue;
    const std::string path = kubernetes_namespace + "/" + name.name;
    auto opened = Open(path, O_DIRECTORY);
    if (!opened) continue;
    WEFT_ASSIGN(const auto uids, Entries(std::move(*opened)));
    for (const FolderEntry& uid : uids) {
      if (!uid.is_folder || !ParseUuid(uid.name)) continue;
      if (traces.size() >= kMaxListedTraces) return traces;
      StoredTrace trace{.name = name.name, .uid = uid.name};
      count(count, path + "/" + uid.name, 0, trace);
      traces.push_back(std::move(trace));
    }
  }
  return traces;
}

Result<std::vector<StoredFile>> TraceFiles::ListFiles(const std::string& trace_folder,
                                                      const Selection& selection) {
  std::vector<StoredFile> files;
  WEFT_TRY(AddFiles(trace_folder, "", 0, selection, files));
  return files;
}

Status TraceFiles::AddFiles(const std::string& trace_folder, const std::string& below, int depth,
                            const Selection& selection, std::vector<StoredFile>& files) {
  if (depth > kMaxDepth) return {};
  WEFT_ASSIGN(UniqueFd folder,
              Open(trace_folder + (below.empty() ? "" : "/" + below), O_DIRECTORY));
  WEFT_ASSIGN(const auto entries, Entries(std::move(folder)));
  const auto path_of = [&below](const FolderEntry& entry) {
    return below.empty() ? entry.name : below + "/" + entry.name;
  };
  const size_t place = files.size();  // of metadata
  std::string metadata;
  const auto add = [&](const std::string& path, size_t at) -> Status {
    if (files.size() >= kMaxListedFiles) {
      return Fail(ErrorCode::kLimit, "the Trace has more files than one answer lists");
    }
    auto opened = OpenFile(trace_folder + "/" + path);
    // It was deleted meanwhile.
    if (!opened && opened.error().code == ErrorCode::kNotFound) return {};
    if (!opened) return std::unexpected(std::move(opened).error());
    StoredFile file{.path = path, .size = opened->size, .written = opened->written};
    const bool is_stream = path != metadata;
    if (is_stream && !selection.range.is_all()) {
      WEFT_TRY(Narrow(opened->fd.get(), selection.range, file));
    }
    if (file.size == 0) return {};
    files.insert(files.begin() + static_cast<std::ptrdiff_t>(at), std::move(file));
    return {};
  };
  for (const FolderEntry& entry : entries) {
    if (entry.is_folder) continue;
    if (entry.name == kMetadata) {
      metadata = path_of(entry);
    } else {
      WEFT_TRY(add(path_of(entry), files.size()));
    }
  }
  // Metadata is written before the packets that need it, so it is measured after them.
  if (!metadata.empty()) WEFT_TRY(add(metadata, place));
  for (const FolderEntry& entry : entries) {
    const bool is_asked =
        depth > 0 || selection.pods.empty() || std::ranges::count(selection.pods, entry.name) > 0;
    if (!entry.is_folder || !is_asked) continue;
    WEFT_TRY(AddFiles(trace_folder, path_of(entry), depth + 1, selection, files));
  }
  return {};
}

Result<OpenedFile> TraceFiles::OpenFile(const std::string& path) {
  WEFT_ASSIGN(UniqueFd fd, Open(path, 0));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return FailErrno(path);
  WEFT_ASSIGN(const uint64_t size, ReadableBytes(fd.get(), st, path));
  const auto written =
      std::chrono::seconds(st.st_mtim.tv_sec) + std::chrono::nanoseconds(st.st_mtim.tv_nsec);
  return OpenedFile{.fd = std::move(fd), .size = size, .written = FileTime(written)};
}

Result<uint64_t> TraceFiles::ReadableBytes(int fd, const struct stat& st, const std::string& path) {
  if (!S_ISREG(st.st_mode)) return Fail(ErrorCode::kNotFound, "nothing of that name is stored");
  const auto size = static_cast<uint64_t>(st.st_size);
  if (path.ends_with("/" + std::string(kMetadata))) return store::CompleteMetadata(fd, size, path);
  return StreamBytes(fd, st.st_ino, size, path);
}

Result<uint64_t> TraceFiles::StreamBytes(int fd, ino_t inode, uint64_t size,
                                         const std::string& path) {
  store::StreamState state;
  state.file = path;
  const std::string name_space = path.substr(0, path.find('/'));
  {
    const std::lock_guard lock(mutex_);
    if (const auto files = measured_.find(name_space); files != measured_.end()) {
      const auto known = files->second.find(path);
      if (known != files->second.end() && known->second.inode == inode) state = known->second.state;
    }
  }
  if (state.bytes > size || (state.has_packets && !IsStillThere(fd, state))) {
    state = {};
    state.file = path;
  }
  WEFT_TRY(store::FindPackets(fd, size, UINT64_MAX, state));
  const std::lock_guard lock(mutex_);
  const auto files = measured_.find(name_space);
  const bool is_new = files == measured_.end() || !files->second.contains(path);
  if (is_new && measured_count_ >= kMaxMeasured) {
    // The namespace with the most files makes room, and no other one.
    const auto most = std::ranges::max_element(
        measured_, {}, [](const auto& entry) { return entry.second.size(); });
    measured_count_ -= most->second.size();
    measured_.erase(most);
  }
  measured_[name_space].insert_or_assign(path, Measured{.inode = inode, .state = state});
  measured_count_ += is_new ? 1 : 0;
  return state.bytes;
}

}  // namespace weft::relay_api
