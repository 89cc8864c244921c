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
  for (const StoredFile& file : files_) {
    bytes_ += TarHeader(prefix_ + file.path, file.size).size() + file.size + TarPadding(file.size);
  }
}

Status ArchiveSource::BeginFile() {
  if (next_ == files_.size()) {
    has_ended_ = true;
    text_.append(kTarEnd, '\0');
    return {};
  }
  const StoredFile& file = files_[next_++];
  WEFT_ASSIGN(OpenedFile opened, store_.OpenFile(trace_folder_ + "/" + file.path));
  if (opened.size < file.size) {
    return Fail(ErrorCode::kCorrupt, file.path + ": shorter than it was");
  }
  fd_ = std::move(opened.fd);
  at_ = 0;
  left_ = file.size;
  text_ += TarHeader(prefix_ + file.path, file.size);
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
  if (left_ == 0) text_.append(TarPadding(at_), '\0');
  on_read_(static_cast<size_t>(got));
  return static_cast<size_t>(got);
}

}  // namespace weft::relay_api
