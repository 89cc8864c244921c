// SPDX-License-Identifier: Apache-2.0
// Merges the packets of growing streams by time. The caller adds metadata and whole packets as they
// come, says how far each stream is safe, and takes items. An item is handed out when no stream can
// bring an older one: all are safe up to its time, or have ended. An item of a new stream, or of
// one that had ended and goes on, may be older than what was handed out. It is handed out all the
// same, and counted as late.
// Bytes are foreign: what is wrong is a problem, and the rest goes on.
// Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_FOLLOWER_H_
#define WEFT_CLI_KUBECTL_FOLLOWER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ctf/stream_reader.h"
#include "lib/ctf/trace_class.h"

namespace weft::kubectl {

class Follower {
 public:
  // What the metadata of the CTF trace in `folder` is now; it describes all packets added later.
  void SetMetadata(const std::string& folder, std::string_view text);

  // Takes the next packets, whole ones, of a stream of the CTF trace in `folder`. They are passed
  // over, as a problem, if the trace has no readable metadata.
  Status Add(const std::string& folder, const std::string& stream, std::string_view packets);

  // Nothing older comes behind the stream's packets; 0: not known yet. Times do not go back.
  void SetSafe(const std::string& folder, const std::string& stream, std::uint64_t time_ns);
  // Nothing comes behind them.
  void SetEnded(const std::string& folder, const std::string& stream);

  // The next item, valid until the next call; nullptr: none is due. `all`: all streams have ended.
  ctf::StreamReader* Next(bool all = false);

  // Whether all that was added of a stream was taken. While the relay has more of it, other streams
  // wait for it.
  [[nodiscard]] bool IsIdle(const std::string& folder, const std::string& stream) const;

  // Bytes that were added and whose items were not all taken.
  [[nodiscard]] std::uint64_t waiting_bytes() const { return waiting_bytes_; }
  [[nodiscard]] std::uint64_t late() const { return late_; }
  // What was wrong since the last call, one line each.
  std::vector<std::string> TakeProblems() { return std::exchange(problems_, {}); }

 private:
  struct Chunk {
    UniqueFd fd;
    const ctf::TraceClass* trace = nullptr;
    std::uint64_t offset = 0;  // in the stream
    std::uint64_t bytes = 0;
  };
  struct Stream {
    std::size_t number = 0;   // breaks ties
    std::uint64_t bytes = 0;  // that were added
    std::unique_ptr<ctf::StreamReader> reader;
    bool is_idle = true;  // the reader has read all of `current`
    bool has_ended = false;
    std::int64_t safe_ns = ctf::kNoTime;
    Chunk current;
    std::deque<Chunk> waiting;
  };

  Stream& Get(const std::string& folder, const std::string& stream);
  void Advance(Stream& stream);
  // The time up to which items can be shown: no stream without an item brings an older one. Streams
  // with one are compared by it.
  std::int64_t Until();
  static bool Before(const Stream& a, const Stream& b);

  // All there ever were: readers and printers refer to them.
  std::vector<std::unique_ptr<const ctf::TraceClass>> classes_;
  std::map<std::string, const ctf::TraceClass*> traces_;  // the newest, by folder
  std::map<std::string, Stream> streams_;                 // by folder/stream
  std::vector<Stream*> heap_;                             // those with an item
  Stream* taken_ = nullptr;                               // its item was handed out
  std::optional<std::int64_t> until_;  // what Until returns; none: to be computed
  std::optional<std::int64_t> last_time_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t late_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_FOLLOWER_H_
