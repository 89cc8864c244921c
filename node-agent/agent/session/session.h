// SPDX-License-Identifier: Apache-2.0
// A session: Traces, their channels, how far each is, what was counted. It is on disk before any
// command about it is answered, and comes back from there after a crash.
//
// In local mode there is one session, with one channel per Trace, or two: weft.ko's records are in
// a channel of their own, which is published nowhere. In a cluster there is one per TraceSession of
// this node, with a channel for each container that it is in force for: a CTF trace is of one
// container; and one for the kernel, whose scope is the cgroups of the pods that the session
// selects.
//
// A channel's life:     defined --Start--> on --Stop, duration over--> stopping --Drained-->
//                       drained
// Published (lib/control) are exactly the channels that are `on`.
// The agent's thread owns it.
#ifndef WEFT_NODE_AGENT_AGENT_SESSION_SESSION_H_
#define WEFT_NODE_AGENT_AGENT_SESSION_SESSION_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/session.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "lib/control/ruleset.h"
#include "lib/ipc/messages.h"
#include "node-agent/agent/session/compile.h"
#include "node-agent/agent/session/ring_grant.h"
#include "node-agent/kernel/module.h"

namespace weft::agent {

enum class ChannelPhase : uint8_t { kDefined, kOn, kStopping, kDrained };

struct SessionChannel {
  std::string container;  // key of the container that it is in force for (containers.h)
  std::string consumer;   // who reads it (consumer_link.h)
  control::ChannelSpec spec;
  ipc::ChannelDefinition definition;
  uint64_t memory_limit = 0;  // the container's, when the channel was made; 0: none
  RingSize asked;             // the rings that the Trace asks for; spec has those that are granted
  ChannelPhase phase = ChannelPhase::kDefined;
  bool paused = false;    // never turned on
  bool snapshot = false;  // read once, at the end: what the buffers hold then
  bool ready = false;     // the consumer said so (in this life of the agent)
  bool refused = false;   // the consumer cannot make its output (the same)
  std::optional<std::chrono::nanoseconds> duration;
  std::vector<hooks::HookRule> functions;    // of a user channel
  std::vector<kernel::Event> kernel_events;  // of a kernel channel that is not on yet
  kernel::Trackers trackers;                 // of a kernel channel
  bool tells_state = false;                  // record the state, too: of a kernel channel
  // For a kernel channel in a cluster: ids of the cgroups whose tasks are recorded, or were shortly
  // before.
  std::set<uint64_t> scope;
  std::string failure;          // why weft.ko records nothing of it; "": it does
  bool lacks_ring = false;      // weft.ko refused it a ring (in this life of the agent)
  std::string stopped;          // why weft.ko ended its session by itself; "": it did not
  bool outdated = false;        // the order wants other events: this channel ends, another follows
  int64_t stop_at_ns = 0;       // CLOCK_MONOTONIC; 0: no deadline
  ipc::ChannelCounts reported;  // the consumer's last
  ipc::ChannelCounts own;       // what the agent counted itself
  // Instances that are not to be taken in: they are in `own`, or their consumer has read them to
  // their end and they could come a second time.
  std::set<uint64_t> accounted;
  // Ring sets that the agent knows by their instance alone and has not counted yet. The value is
  // the number of looks in which the finder may still find the ring set; kUntilTheEnd: every look.
  std::map<uint64_t, uint32_t> missing;
  static constexpr uint32_t kUntilTheEnd = UINT32_MAX;

  [[nodiscard]] bool of_kernel() const { return definition.domain == ipc::kKernelDomain; }
  [[nodiscard]] ipc::ChannelCounts Counts() const;  // the sum
  // Makes `spec` and `definition`, as they were compiled, fit into the container's memory.
  void FitIntoMemory(uint64_t limit);
};

class Session {
 public:
  // Gets the kernel's back end ready and says what it can do.
  using KernelProbe = std::function<Result<kernel::Support>()>;

  // Makes the session that a CreateSession asks for, on this machine. kInvalid: the message lists
  // each fault of the Traces on a line. Calls `probe_kernel` if a Trace asks for the kernel.
  static Result<Session> Create(
      const ipc::CreateSession& command, const std::string& traces,
      const KernelProbe& probe_kernel = [] { return kernel::ThisBackend().Probe(); });
  // Makes the session that a TraceSession asks of this node, without channels. It goes on from the
  // counts of the TraceSession's status. kInvalid, kUnsupported: the message says why it cannot.
  static Result<Session> FromOrder(api::TraceSession order);
  // Loads a session from `path`; kNotFound: there is no session.
  static Result<Session> Load(const std::string& path);
  // Saves in one step (rename), synced.
  Status Save(const std::string& path) const;

  // Adds a channel of an order for one more container, in the phase `defined`.
  struct Container {
    std::string key, name_space, pod, pod_uid, name;
    uint64_t memory_limit = 0;  // the smallest that holds for it; 0: none
  };
  SessionChannel& AddChannel(const Container& container);
  // Adds the channel for what this node's kernel records of the session's pods. There is one for
  // all of them. `events`: made by CompileKernelEvents from the order's spec.
  SessionChannel& AddKernelChannel(CompiledChannel events);
  // Returns the kernel channel that is defined or on; nullptr: there is none.
  [[nodiscard]] SessionChannel* KernelChannel();
  [[nodiscard]] const SessionChannel* KernelChannel() const;
  // Adopts another version of the order. Returns false if the existing user channels cannot record
  // it, since their layout is another one. A kernel channel that does not fit becomes outdated.
  bool Change(Session&& newer);
  // Forgets channels that are drained, all but their counts and ids.
  void RetireDrained();
  // Returns the sums of the counts of all channels that ever existed.
  [[nodiscard]] ipc::ChannelCounts Counts() const;

  [[nodiscard]] SessionChannel* Find(uint64_t channel_id);
  [[nodiscard]] const SessionChannel* Find(uint64_t channel_id) const;
  [[nodiscard]] bool RecordsKernel() const;
  // In a cluster: the functions that each user channel of the order records.
  [[nodiscard]] const std::vector<hooks::HookRule>& functions() const {
    return prototype_.functions;
  }
  // Is it a ClusterTrace's session? Then its scope is the whole node, whatever pods there are.
  [[nodiscard]] bool is_cluster_wide() const { return order && order->spec.cluster_wide; }
  // Returns the channels that are in force in a container.
  [[nodiscard]] std::vector<control::ChannelSpec> Published(const std::string& container) const;
  [[nodiscard]] ipc::Phase phase() const;
  [[nodiscard]] ipc::SessionState State() const;  // without processes, recoveries, live notices

  // The reason under which events count as lost that the relay did not take until its end.
  [[nodiscard]] std::string LossAtRelay() const {
    return relay_refusal.empty() ? "unreachable" : "refused";
  }

  std::vector<SessionChannel> channels;
  std::vector<std::string> notices;
  std::string relay_failure;  // in a cluster: why it cannot be connected to; "": not known
  std::string relay_refusal;  // why the relay does not take what is sent; "": it does
  // In a cluster, for messages: what of the kernel's part cannot be recorded.
  std::vector<std::string> kernel_notices;
  std::vector<std::string> probe_notices;  // the same of userProbes, as containers have them
  bool probes_pending = false;             // containers are still searched for the first time
  std::vector<std::string> hook_notices;   // in a cluster: what of functions() is not recorded
  bool hooks_pending = false;              // processes do not have the hooks of the order yet
  // In a cluster: what programs do not offer of each rule of user.events, in order; "": they offer
  // it; none: not known yet (event_part.h).
  std::vector<std::string> rule_problems;
  std::vector<std::string> absences;  // in a cluster: when no agent was here (absence.h)
  // In a cluster, with user.attach: why processes do not get the library, for messages; containers
  // made without it that have a process with it, or are not tried; the first tries are not over.
  std::vector<std::string> attach_notices;
  std::set<std::string> attached;
  bool attach_pending = false;
  std::string
      kernel_refusal;  // why nothing of it can be recorded, with a module that is ready; "": it can
  std::string output;  // the folder; "": there is a relay
  std::string cgroup;  // of the program whose kernel events are recorded: its folder; "": none
  ipc::RelayAddress relay;
  std::unique_ptr<api::TraceSession> order;  // in a cluster; else null
  // Counts of channels that are forgotten, or that an agent before had whose state is lost.
  ipc::ChannelCounts retired;
  std::set<uint64_t> retired_ids;  // of those

 private:
  static Result<Session> Compile(const ipc::CreateSession& command, const std::string& traces,
                                 const std::string& created, const KernelProbe& probe_kernel);

  static Result<Session> FromJson(const std::string& json);
  Status CompileOrder();
  SessionChannel& AddEmptyKernelChannel();

  std::string traces_;  // the text
  std::string file_;
  std::string ctf_version_;
  std::string programs_;
  std::string created_;
  uint32_t uid_ = 0;
  CompiledChannel prototype_;         // of an order's channels
  CompiledChannel kernel_prototype_;  // of its kernel channel, without events
};

// Kernel channels in a cluster have this in the place of a container's key.
inline constexpr const char* kKernelKey = "kernel";

void Add(ipc::ChannelCounts& to, const ipc::ChannelCounts& from);
// Returns a random id with room for sixteen bits behind it. Another session may have had channels
// in the same process, which remembers them by their ids as long as it lives.
uint64_t FirstChannelId();
// "20261121T103330Z"
std::string CreatedNow();

// Returns the id of this boot's clock, by which all traces of a boot can be merged.
Uuid BootUuid();
// Returns CLOCK_REALTIME minus the host's CLOCK_MONOTONIC now, ns.
int64_t RealtimeOffset();
// CLOCK_MONOTONIC now, ns.
int64_t MonotonicNow();

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_SESSION_SESSION_H_
