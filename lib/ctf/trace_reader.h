// SPDX-License-Identifier: Apache-2.0
// Reads traces from folders: everything below a folder that has a `metadata`, merged by time, one
// item after the other, one packet per stream in memory. For `weft view` and tests. Files whose
// packets name one stream (class and instance) are its chunks, in the order of their first times.
// Foreign bytes: whatever is wrong is a Problem, the rest goes on: a packet that cannot be decoded
// ends there, a stream whose packets cannot be found ends, a trace without readable metadata is
// left out. Thread-safety: one thread per reader.
#ifndef WEFT_LIB_CTF_TRACE_READER_H_
#define WEFT_LIB_CTF_TRACE_READER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/ctf/decoder.h"
#include "lib/ctf/stream_reader.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// A search for traces goes this deep (a relay's folders are ten deep), and ends with an error at
// these counts, so that a wrong folder, such as /, is refused within seconds.
struct SearchLimits {
  int depth = 16;
  size_t folders = 50'000;
  size_t entries = 2'000'000;  // files and folders
};

class TraceReader {
 public:
  // kNotFound: there is no such folder, or no trace in it. kLimit: there are too many folders to
  // search for traces. Problems of single traces do not fail.
  static Result<TraceReader> Open(const std::string& path, const SearchLimits& limits = {});

  TraceReader(TraceReader&&) noexcept;
  TraceReader& operator=(TraceReader&&) noexcept;
  ~TraceReader();

  // Returns the stream whose item() is next in time; nullptr at the end. The pointer is valid until
  // the next call.
  StreamReader* Next();

  // Returns the problems found so far, one line each, for people.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

  // Bytes of all streams when the trace was opened, and how many of them were read, to tell people
  // how far a reader is.
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  [[nodiscard]] uint64_t bytes_read() const;

  [[nodiscard]] size_t traces() const { return traces_.size(); }
  [[nodiscard]] size_t streams() const { return streams_.size(); }

 private:
  TraceReader() = default;
  void OpenTrace(const std::string& folder);
  // Opens the newest trace's streams. Of a stream's files one at a time is open.
  void OpenStreams(const std::vector<std::string>& files);
  [[nodiscard]] Result<std::unique_ptr<StreamReader>> OpenStream(const std::string& file) const;
  bool Advance(size_t stream);  // false: the stream is at its end
  void Insert(size_t stream);   // into the heap
  [[nodiscard]] bool Before(size_t a, size_t b) const;

  struct Trace;
  std::vector<std::unique_ptr<Trace>> traces_;
  std::vector<std::unique_ptr<StreamReader>> streams_;
  std::vector<std::deque<std::string>> later_files_;  // of each stream
  std::vector<size_t> heap_;                          // streams with an item, the next one in front
  std::optional<size_t> current_;
  std::vector<std::string> problems_;
  uint64_t bytes_ = 0;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TRACE_READER_H_
