// SPDX-License-Identifier: Apache-2.0
// Follows the files of one Trace at the relay: asks it in rounds for what is new, and hands it on.
// While a stream is live, only bytes that no node will have cut off are handed on.
// Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_RELAY_TAIL_H_
#define WEFT_CLI_KUBECTL_RELAY_TAIL_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/kubectl/relay_client.h"
#include "lib/base/result.h"

namespace weft::kubectl {

// What a RelayTail finds. `folder` is that of a CTF trace, relative to the Trace's; `stream` is a
// file in it.
class TailSink {
 public:
  virtual ~TailSink() = default;
  // What the metadata is now. It describes all packets that are handed on later.
  virtual void SetMetadata(const std::string& folder, std::string_view text) = 0;
  // The next packets of a stream, whole ones.
  virtual Status AddPackets(const std::string& folder, const std::string& stream,
                            std::string_view packets) = 0;
  // Nothing older than `time_ns` comes behind the packets that were handed on; 0: not known.
  virtual void SetSafe(const std::string& folder, const std::string& stream,
                       std::uint64_t time_ns) = 0;
  // Nothing comes behind them, as far as anyone knows.
  virtual void SetEnded(const std::string& folder, const std::string& stream) = 0;
  // Enough waits here: only what WaitsFor names is to be fetched now.
  virtual bool IsFull() = 0;
  // Whether nothing of this stream is left here, so that what waits of others may wait for it.
  virtual bool WaitsFor(const std::string& folder, const std::string& stream) = 0;
};

class RelayTail {
 public:
  // All references outlive the object.
  RelayTail(const Connection& connection, TraceView& view, const std::string& folder,
            TailSink& sink)
      : relay_(connection, view, folder), sink_(sink) {}

  // One round. `is_over`: the Trace has ended, so all bytes stay. The result: the relay has more
  // than was fetched.
  Result<bool> Fetch(bool is_over);

  // How long to wait after a round, so that the relay, which limits the requests of a client, does
  // not refuse the next one.
  [[nodiscard]] std::chrono::milliseconds pause() const;

 private:
  struct Stream {
    std::string folder;
    std::string name;
    std::vector<const RelayFile*> chunks;  // the oldest first
  };

  // The streams among the files of an answer.
  static std::vector<Stream> StreamsOf(const std::vector<RelayFile>& files);
  // Which of the bytes are whole packets that come behind the stream's last one. `whole` becomes
  // how many bytes are whole packets. kCorrupt: they do not begin with one.
  static Result<std::string_view> NewPackets(std::string_view bytes, std::size_t& whole,
                                             std::optional<std::uint64_t>& last_sequence);

  // What is to be fetched next of a stream.
  struct Want {
    const Stream* stream = nullptr;
    RelayPart part;
    std::uint64_t file_size = 0;
  };
  std::optional<Want> NextWant(const Stream& stream, bool is_over);
  std::vector<Want> WantsOf(const std::vector<Stream>& streams, bool is_over);
  // Takes those out that a full sink does not wait for; returns whether there were any.
  bool LeaveOut(std::vector<Want>& wants);
  // Fetches all of them, several by one request.
  Status FetchWants(std::span<const Want> wants);
  Status HandOn(const Want& want, const std::optional<std::string>& bytes);
  void TellState(const Stream& stream, bool is_over);
  Status FetchMetadata(const RelayFile& file);
  Result<std::string> Read(const RelayFile& file, std::uint64_t at, std::uint64_t size);

  RelayClient relay_;
  TailSink& sink_;
  std::map<std::string, std::uint64_t> fetched_;  // bytes, by the file's path
  // Numbers of the last packets that were handed on, by the stream's path.
  std::map<std::string, std::optional<std::uint64_t>> last_sequences_;
  int requests_ = 0;  // of the last round
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_RELAY_TAIL_H_
