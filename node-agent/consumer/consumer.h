// SPDX-License-Identifier: Apache-2.0
// All work of a consumer, without sockets: calls add traces, channels and rings, and Round() does
// a bounded piece of work. Used by one thread; another thread waits for the disk
// (background_writer.h).
#ifndef WEFT_NODE_AGENT_CONSUMER_CONSUMER_H_
#define WEFT_NODE_AGENT_CONSUMER_CONSUMER_H_

#include <memory>
#include <string>
#include <vector>

#include "node-agent/consumer/output.h"

namespace weft::consumer {

struct Settings {
  uint32_t clock = WEFT_CLOCK_TSC;  // the node's: of rings of processes
  int64_t realtime_offset_ns = 0;
  Uuid clock_uuid{};
  Limits limits;
};

class Consumer {
 public:
  using Notice = std::function<void(const std::string&)>;

  // Reads the journal; `sinks` must outlive the consumer.
  static Result<std::unique_ptr<Consumer>> Make(const Settings& settings, UniqueFd journal,
                                                SinkMaker& sinks, Notice notice);
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  // Ignores a channel or ring that is known already. kNotFound: no such channel.
  Status AddChannel(const ipc::ChannelDefinition& definition);
  Status AddRing(uint64_t channel, UniqueFd fd, uint64_t instance, uint64_t process);
  void ProcessGone(uint64_t process);
  void ForgetRing(uint64_t channel, uint64_t instance);
  // Calls Channel::MoveRing with what this consumer may take of its own memory.
  bool MoveRing(uint64_t channel, uint64_t instance, bool may_lose);
  // Ends writing into the channels' rings. Blocks some milliseconds for a barrier on all CPUs.
  void StopChannels(const std::vector<uint64_t>& channels);
  void ForgetChannel(uint64_t channel);
  [[nodiscard]] Channel* Find(uint64_t channel);
  [[nodiscard]] std::vector<Channel*> Channels();

  // Does one piece of work. Returns for how many nanoseconds nothing needs to be done.
  uint64_t Round();
  // Writes all that was read into files and journal now, then calls fsync.
  Status FlushAll();
  // kTimeout: the channel's relay has not done it yet.
  Status SyncFiles(uint64_t channel);
  // Can the destination of the channel's events take them? An error: it cannot, and that will not
  // change soon.
  Result<bool> Ready(uint64_t channel);
  [[nodiscard]] bool waits_for_relay() const;
  // Counts, for relays.
  void Report();

  // Channels with something to do that no relay keeps from being done.
  [[nodiscard]] uint64_t PendingChannels() const;
  [[nodiscard]] uint64_t progress() const { return progress_; }

 private:
  Consumer(const Settings& settings, Journal journal, SinkMaker& sinks, Notice notice);

  Status ReadJournal();
  Status WriteJournal();
  Output* FindOutput(const std::string& name);
  void Calibrate(uint64_t now_ns);
  [[nodiscard]] uint64_t Delay(bool busy, uint64_t now_ns);

  Settings settings_;
  RingClocks clocks_;
  ring::MachineTicks mono_;
  Journal journal_;
  SinkMaker* sinks_;
  Notice notice_;
  std::vector<std::unique_ptr<Output>> outputs_;
  std::vector<OutputRecord> restored_;
  ClassLog classes_;
  size_t next_output_ = 0;  // whose turn is first
  uint64_t calibrated_ns_ = 0;
  uint64_t busy_ns_ = 0;  // last time that something was read
  uint64_t progress_ = 0;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_CONSUMER_H_
