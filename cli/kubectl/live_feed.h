// SPDX-License-Identifier: Apache-2.0
// Feeds a live::LiveTrace with what a RelayTail finds: the part of `kubectl weft live --serve`
// between the relay and the viewers. Packets go into a file without a name, so that several viewers
// can read them, each at its own pace.
// Thread-safety: one thread feeds; viewers' threads hold the lock.
#ifndef WEFT_CLI_KUBECTL_LIVE_FEED_H_
#define WEFT_CLI_KUBECTL_LIVE_FEED_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "cli/kubectl/relay_tail.h"
#include "lib/base/unique_fd.h"
#include "lib/ctf/packet_writer.h"
#include "lib/live/live_trace.h"

namespace weft::kubectl {

// Packets in a file of the folder for temporary files.
class Spool : public live::PacketStore {
 public:
  static Result<Spool> Make();
  // The place of the bytes.
  Result<std::uint64_t> Append(std::string_view bytes);
  [[nodiscard]] Result<std::string> Read(std::uint64_t place, std::size_t bytes) const override;

 private:
  explicit Spool(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::uint64_t size_ = 0;
};

class LiveFeed : public TailSink {
 public:
  LiveFeed(Spool spool, std::string host, std::string session) : spool_(std::move(spool)) {
    trace_.host = std::move(host);
    trace_.session = std::move(session);
  }

  std::mutex& mutex() { return mutex_; }
  [[nodiscard]] const live::LiveTrace& trace() const { return trace_; }
  [[nodiscard]] const live::PacketStore& packets() const { return spool_; }

  // All of the Trace is here.
  void End();
  // What was wrong since the last call, one line each.
  std::vector<std::string> TakeProblems();

  void SetMetadata(const std::string& folder, std::string_view text) override;
  Status AddPackets(const std::string& folder, const std::string& stream,
                    std::string_view packets) override;
  void SetSafe(const std::string& folder, const std::string& stream,
               std::uint64_t time_ns) override;
  void SetEnded(const std::string& folder, const std::string& stream) override;
  bool IsFull() override { return false; }
  bool WaitsFor(const std::string& /*folder*/, const std::string& /*stream*/) override {
    return true;
  }

 private:
  struct Folder {
    std::string metadata;
    bool is_readable = false;  // CTF 1.8
    std::size_t trace = kNone;
  };
  // Folder, channel, instance: a stream, in whichever files it lies.
  using Key = std::tuple<std::string, std::uint64_t, std::uint64_t>;
  static constexpr std::size_t kNone = ~std::size_t{0};

  Status AddPacket(const std::string& folder, const std::string& file, std::string_view packet,
                   const ctf::PacketInfo& info);
  [[nodiscard]] bool HasEnded(std::size_t trace) const;
  // The stream's place in the trace, made where there is none.
  std::size_t Place(const std::string& folder, const std::string& file,
                    const ctf::PacketInfo& info);

  mutable std::mutex mutex_;
  live::LiveTrace trace_;
  Spool spool_;
  std::map<std::string, Folder> folders_;
  std::map<Key, std::size_t> streams_;          // places in the trace
  std::map<std::string, std::size_t> by_file_;  // the stream that a file's last packet is of
  std::vector<std::string> problems_;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LIVE_FEED_H_
