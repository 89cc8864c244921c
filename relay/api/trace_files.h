// SPDX-License-Identifier: Apache-2.0
// Reads what the archive stored, while it may be writing on: lists Traces and their files, and
// opens one. Every file is opened beneath the data folder, without following a symbolic link, by
// names that IsStoredName takes.
//
// A file can be read up to the end of its last whole packet, or fragment of metadata. Finding this
// end reads the header of each packet once: the ends of kMaxMeasured streams are remembered. Then
// those of the namespace with the most are forgotten.
// Thread-safety: all functions may be called from several threads at once.
#ifndef WEFT_RELAY_API_TRACE_FILES_H_
#define WEFT_RELAY_API_TRACE_FILES_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/store/store.h"

namespace weft::relay_api {

struct StoredTrace {
  std::string name;
  std::string uid;
  uint64_t bytes = 0;  // of all files; not all of it may be readable yet
  uint64_t files = 0;
};

using FileTime = std::chrono::sys_time<std::chrono::nanoseconds>;

struct StoredFile {
  std::string path;     // below the Trace's folder
  uint64_t size = 0;    // bytes that can be read
  uint64_t offset = 0;  // of the first packet that a TimeRange asks for
  FileTime written;     // before it was measured
};

// Nanoseconds since 1970, as packets have them; both ends belong to it.
struct TimeRange {
  uint64_t since = 0;
  uint64_t until = UINT64_MAX;
  [[nodiscard]] bool is_all() const { return since == 0 && until == UINT64_MAX; }
};

// Which files of a Trace are asked for.
struct Selection {
  TimeRange range;
  std::vector<std::string> pods;  // empty: all
  [[nodiscard]] bool is_all() const { return range.is_all() && pods.empty(); }
};

struct OpenedFile {
  UniqueFd fd;
  uint64_t size = 0;  // bytes that can be read
  FileTime written;   // before it was measured
};

class TraceFiles {
 public:
  explicit TraceFiles(UniqueFd data_folder) : folder_(std::move(data_folder)) {}

  // Whether there is a folder NAMESPACE/TRACE/UID.
  [[nodiscard]] bool Has(const std::string& trace_folder) const;
  // The stored Traces of a namespace, by name; `only` "": all. Empty where there are none. Counting
  // stops at kMaxListedFiles files.
  Result<std::vector<StoredTrace>> ListTraces(const std::string& kubernetes_namespace,
                                              const std::string& only) const;
  // Files below NAMESPACE/TRACE/UID with something to be read. In each folder `metadata` stands
  // first; it describes all packets within the sizes of the others. kNotFound: no such folder;
  // kLimit: too many files. Of a stream, `offset` and `size` enclose the packets of the range;
  // streams without any are left out.
  Result<std::vector<StoredFile>> ListFiles(const std::string& trace_folder,
                                            const Selection& selection = {});
  // `path`: below the data folder. kNotFound: no such file.
  Result<OpenedFile> OpenFile(const std::string& path);

 private:
  struct Measured {
    ino_t inode = 0;
    store::StreamState state;
  };
  using MeasuredFiles = std::map<std::string, Measured>;  // by path

  [[nodiscard]] Result<UniqueFd> Open(const std::string& path, int flags) const;
  Status AddFiles(const std::string& trace_folder, const std::string& below, int depth,
                  const Selection& selection, std::vector<StoredFile>& files);
  Result<uint64_t> ReadableBytes(int fd, const struct stat& st, const std::string& path);
  Result<uint64_t> StreamBytes(int fd, ino_t inode, uint64_t size, const std::string& path);

  const UniqueFd folder_;
  std::mutex mutex_;
  std::map<std::string, MeasuredFiles> measured_;  // by namespace
  size_t measured_count_ = 0;                      // of all of them
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_TRACE_FILES_H_
