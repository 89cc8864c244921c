// SPDX-License-Identifier: Apache-2.0
// See archive_source.h.
#include "relay/api/archive_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "relay/api/tar.h"

namespace weft::relay_api {

ArchiveSource::ArchiveSource(TraceFiles& store, std::string trace_folder, std::string prefix,
                             std::vector<StoredFile> files, std::function<void(size_t)> on_read)
    : store_(store),
      trace_folder_(std::move(trace_folder)),
      prefix_(std::move(prefix)),
      files_(std::move(files)),
      on_read_(std::move(on_read)),
      bytes_(kTarEnd) {
  for (const StoredFile& file : files_) bytes_ += EntryBytes(file);
}

uint64_t ArchiveSource::EntryBytes(const StoredFile& file) const {
  const uint64_t size = file.size - file.offset;
  return TarHeader(prefix_ + file.path, size).size() + size + TarPadding(size);
}

void ArchiveSource::Narrow(uint64_t first, uint64_t end) {
  bytes_ = end - first;
  for (skip_ = first; next_ < files_.size(); next_++) {
    const uint64_t entry = EntryBytes(files_[next_]);
    if (skip_ < entry) break;
    skip_ -= entry;
  }
}

void ArchiveSource::Skip() {
  const uint64_t of_text = std::min<uint64_t>(skip_, text_.size());
  text_.erase(0, of_text);
  const uint64_t of_file = std::min(skip_ - of_text, left_);
  at_ += of_file;
  left_ -= of_file;
  if (left_ == 0) text_.append(padding_, '\0');
  text_.erase(0, skip_ - of_text - of_file);
  skip_ = 0;
}

Status ArchiveSource::BeginFile() {
  if (next_ == files_.size()) {
    has_ended_ = true;
    text_.append(kTarEnd, '\0');
    text_.erase(0, std::exchange(skip_, 0));
    return {};
  }
  const StoredFile& file = files_[next_++];
  WEFT_ASSIGN(OpenedFile opened, store_.OpenFile(trace_folder_ + "/" + file.path));
  if (opened.size < file.size) {
    return Fail(ErrorCode::kCorrupt, file.path + ": shorter than it was");
  }
  fd_ = std::move(opened.fd);
  at_ = file.offset;
  left_ = file.size - file.offset;
  padding_ = TarPadding(left_);
  text_ += TarHeader(prefix_ + file.path, left_);
  if (skip_ > 0) Skip();
  return {};
}

Result<size_t> ArchiveSource::Read(std::span<char> block) {
  if (text_.empty() && left_ == 0 && !has_ended_) WEFT_TRY(BeginFile());
  if (!text_.empty()) {
    const size_t size = std::min(text_.size(), block.size());
    std::copy_n(text_.begin(), size, block.begin());
    text_.erase(0, size);
    return size;
  }
  const size_t most = std::min<uint64_t>(left_, block.size());
  ssize_t got = 0;
  do {
    got = ::pread(fd_.get(), block.data(), most, static_cast<off_t>(at_));
  } while (got < 0 && errno == EINTR);
  if (got < 0) return FailErrno("pread");
  at_ += static_cast<uint64_t>(got);
  left_ -= static_cast<uint64_t>(got);
  if (left_ == 0) text_.append(padding_, '\0');
  on_read_(static_cast<size_t>(got));
  return static_cast<size_t>(got);
}

}  // namespace weft::relay_api
