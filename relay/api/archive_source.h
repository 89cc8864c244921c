// SPDX-License-Identifier: Apache-2.0
// A tar archive of a Trace's files as a streamed body. It opens one file at a time. One thread at a
// time calls it.
#ifndef WEFT_RELAY_API_ARCHIVE_SOURCE_H_
#define WEFT_RELAY_API_ARCHIVE_SOURCE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/http/server.h"
#include "relay/api/trace_files.h"

namespace weft::relay_api {

class ArchiveSource : public http::BodySource {
 public:
  // Archives the bytes from `offset` to `size` of `files` of the Trace in `trace_folder` (below the
  // data folder). Paths in the archive begin with `prefix`. `store` outlives it; `on_read` gets the
  // number of bytes of each piece of a file.
  ArchiveSource(TraceFiles& store, std::string trace_folder, std::string prefix,
                std::vector<StoredFile> files, std::function<void(size_t)> on_read);

  // Makes it the bytes from `first` to before `end` of the archive, which is as long at least.
  // Before the first Read.
  void Narrow(uint64_t first, uint64_t end);

  [[nodiscard]] std::optional<uint64_t> bytes() const override { return bytes_; }
  // kCorrupt: a file has become shorter than it was.
  Result<size_t> Read(std::span<char> block) override;

 private:
  // What a file takes in the archive, with header and padding.
  [[nodiscard]] uint64_t EntryBytes(const StoredFile& file) const;
  // The header of the next file, or the end of the archive, becomes text_.
  Status BeginFile();
  // Leaves out the first skip_ bytes of what BeginFile has made ready.
  void Skip();

  TraceFiles& store_;
  const std::string trace_folder_;
  const std::string prefix_;
  const std::vector<StoredFile> files_;
  const std::function<void(size_t)> on_read_;
  uint64_t bytes_ = 0;
  size_t next_ = 0;       // of files_
  uint64_t skip_ = 0;     // bytes of the next file's entry that are left out
  std::string text_;      // header or padding that is to come before anything else
  UniqueFd fd_;           // of the file that is being read
  uint64_t at_ = 0;       // in it
  uint64_t left_ = 0;     // of it
  uint64_t padding_ = 0;  // behind it
  bool has_ended_ = false;
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_ARCHIVE_SOURCE_H_
