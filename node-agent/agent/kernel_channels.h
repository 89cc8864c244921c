// SPDX-License-Identifier: Apache-2.0
// Channels that weft.ko records for: their sessions and rings in the module, kept by the keeper, so that
// an agent that died finds them recording, and their consumer finds its ring.
//
// A channel's life here:  Start (off in the module, its events there) -> SwitchOn -> SwitchOff -> Forget
// The agent's thread owns it. Calls into the module may take milliseconds.
#ifndef WEFT_NODE_AGENT_AGENT_KERNEL_CHANNELS_H_
#define WEFT_NODE_AGENT_AGENT_KERNEL_CHANNELS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/messages.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {

class KernelChannels {
 public:
  using Send = std::function<void(ipc::Message)>;  // to the keeper

  explicit KernelChannels(Send keeper) : keeper_(std::move(keeper)) {}

  // Makes the ring and its events; of these cgroups only (lib/abi/kernel.h), or of everybody where there
  // is none. Nothing is recorded yet. An error names what the module refused, and nothing is left.
  Status Start(const kernel::Ring& ring, const std::vector<kernel::Event>& events,
               const std::vector<uint64_t>& cgroups);
  Status Switch(uint64_t channel, bool on);
  void Forget(uint64_t channel);

  // What the keeper kept: false: not one of these.
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
  };

  Send keeper_;
  std::map<uint64_t, Entry> channels_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_KERNEL_CHANNELS_H_
