// SPDX-License-Identifier: Apache-2.0
// Keeper and agent of one weft-consumer, as far as a test needs them: starts the program, passes
// rings, opens files, and collects its messages. One thread.
#ifndef WEFT_TESTS_HOSTILE_AGENT_DOUBLE_H_
#define WEFT_TESTS_HOSTILE_AGENT_DOUBLE_H_

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "lib/abi/ring.h"
#include "lib/ipc/connection.h"
#include "lib/store/store.h"

namespace weft::hostile {

class AgentDouble {
 public:
  // Files are made beneath `folder`.
  explicit AgentDouble(UniqueFd folder);
  ~AgentDouble();
  AgentDouble(const AgentDouble&) = delete;
  AgentDouble& operator=(const AgentDouble&) = delete;

  bool AddChannel(const ipc::ChannelDefinition& definition);
  // Waits while the consumer is slow.
  void AddRing(uint64_t channel, uint64_t instance, uint64_t process, UniqueFd fd);
  void ProcessGone(uint64_t process);
  // Returns false if the consumer is gone, or takes too long.
  bool StopAndDrain(uint64_t channel);
  // Handles what has arrived.
  void Pump();
  // Pumps on. False: the consumer is gone, or takes too long.
  bool WaitUntil(const std::function<bool()>& done);

  [[nodiscard]] const ipc::ChannelCounts& counts(uint64_t channel) { return counts_[channel]; }
  [[nodiscard]] size_t rings_corrupt() const { return rings_corrupt_; }
  // Returns what the consumer reported of that ring set; nullptr: nothing yet.
  [[nodiscard]] const ipc::RingDone* done(uint64_t channel, uint64_t instance) const;
  [[nodiscard]] bool alive();
  // Return the consumer's resident memory in KiB, and its open descriptors.
  [[nodiscard]] uint64_t resident() const;
  [[nodiscard]] size_t descriptors() const;
  // Sends Exit and returns the exit status.
  int End();

 private:
  void Send(ipc::Message message);
  void Handle(ipc::Message message);

  store::DirectoryFileMaker maker_;
  ipc::Connection keeper_;
  ipc::Connection agent_;
  pid_t pid_ = -1;
  std::map<uint64_t, ipc::ChannelCounts> counts_;
  std::map<uint64_t, bool> ready_;
  std::map<uint64_t, bool> drained_;
  std::map<std::pair<uint64_t, uint64_t>, ipc::RingDone> done_;  // by channel and instance
  size_t rings_corrupt_ = 0;
};

}  // namespace weft::hostile

#endif  // WEFT_TESTS_HOSTILE_AGENT_DOUBLE_H_
