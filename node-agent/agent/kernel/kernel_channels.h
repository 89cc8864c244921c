// SPDX-License-Identifier: Apache-2.0
// Channels that weft.ko records for: their sessions and rings in the module, kept by the keeper, so
// that an agent that died finds them recording, and their consumer finds its ring.
//
// A channel's life here:  Start (off in the module, its events there) -> SwitchOn -> SwitchOff ->
//                         Forget
// The agent's thread owns it. Calls into the module may take milliseconds.
#ifndef WEFT_NODE_AGENT_AGENT_KERNEL_KERNEL_CHANNELS_H_
#define WEFT_NODE_AGENT_AGENT_KERNEL_KERNEL_CHANNELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/kernel/statedumps.h"
#include "node-agent/kernel/backend.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {

class KernelChannels {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper

  // `backend` outlives this.
  explicit KernelChannels(Send keeper, const kernel::Backend& backend = kernel::ThisBackend())
      : keeper_(std::move(keeper)),
        backend_(backend),
        dumps_([&backend](const UniqueFd& session, uint64_t cgroup) {
          return backend.DumpState(session, cgroup);
        }) {}

  // Scope of a channel: the whole node, or the tasks of these cgroups (lib/abi/kernel.h; no tasks
  // for an empty set). Trackers narrow it to the tasks that they name.
  struct Scope {
    bool all = false;
    std::set<uint64_t> cgroups;
    kernel::Trackers trackers;
  };

  // Makes the ring and its events. Nothing is recorded yet. An error names what the module refused,
  // and nothing is left.
  Status Start(const kernel::Ring& ring, const std::vector<kernel::Event>& events,
               const Scope& scope);
  // Adds an event to a channel. If its twin exists already, that is no error.
  Status AddEvent(uint64_t channel, const kernel::Event& event);
  Status Switch(uint64_t channel, bool on);
  // kNotFound: the cgroup, or the channel, is not there.
  Status ChangeScope(uint64_t channel, uint64_t cgroup, weft_kernel_scope_change change);
  // Begins the state dump of a channel that is on, for one cgroup or (0) for all. Why dumps failed:
  // TakeProblems.
  void DumpState(uint64_t channel, uint64_t cgroup);
  [[nodiscard]] std::vector<std::string> TakeProblems() { return dumps_.TakeProblems(); }
  // What the module reports about a channel's session.
  struct News {
    uint64_t channel = 0;
    std::string stopped;           // why it stopped by itself; "": it did not, or is reported
    uint64_t missed_anywhere = 0;  // until now
  };
  // Returns the news of channels that have some.
  std::vector<News> TakeNews();
  void Forget(uint64_t channel);
  // Forgets all other channels.
  void KeepOnly(const std::set<uint64_t>& channels);

  // Takes a descriptor that the keeper kept; returns false if it is none of this object's.
  bool Restore(ipc::Kept& kept);

  // For its consumer. `instance` is 0 where there is no such channel.
  struct RingOf {
    uint64_t instance = 0;
    UniqueFd fd;  // a copy
  };
  [[nodiscard]] RingOf Find(uint64_t channel) const;
  [[nodiscard]] bool Has(uint64_t channel) const { return channels_.contains(channel); }

 private:
  struct Entry {
    UniqueFd session, ring;
    uint64_t instance = 0;
    // What was reported about it.
    bool stopped = false;
    uint64_t missed_anywhere = 0;
  };

  Send keeper_;
  const kernel::Backend& backend_;
  std::map<uint64_t, Entry> channels_;
  Statedumps dumps_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_KERNEL_KERNEL_CHANNELS_H_
