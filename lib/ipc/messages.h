// SPDX-License-Identifier: Apache-2.0
// Everything that weft's own processes of one node (or of one `weft record`) say to each other, as
// plain structs; lib/ipc/connection.h carries them: one message is one SOCK_SEQPACKET message,
// JSON, with its descriptors as SCM_RIGHTS. (On a node weft-node-agent stands for weft-agent, and
// there is no cli.)
//
//     weft (cli) ---- session.sock ---- weft-agent == connection ===== weft-consumer
//                                           \\                            //
//                                            ====== weft-keeper =========
//
// Connections: the keeper starts agent and consumers and gives each, as descriptor kKeeperFd, a
// connection to itself. Agent and consumer talk directly over a socket pair that the keeper makes
// and hands to both as Connect; it makes a new one whenever either of them was started again.
//
// A consumer's life:
//   1. reads Connect from the keeper; sends Hello to the agent
//   2. gets Configure, then ChannelDefinition, Ring and StopChannel in any number, then
//      StateComplete: the agent repeats all it knows on every new connection. The consumer ignores
//      what it knows already (a channel by id, a ring by channel_id and instance), and closes the
//      descriptor.
//   3. ChannelReady for each channel, when its files or its relay can take packets: START waits for
//      it
//   4. Ring, ProcessGone at any time; FileRequest/FileAnswer when a file is needed,
//      ConnectionRequest/ConnectionAnswer when a relay is to be connected to; Stats for every
//      channel about ten times a second while they change; Heartbeat to the keeper once a second;
//      SlotWentRound for each slot once, a hint that may be lost
//   5. ProcessGone: what the rings of that process hold is final: read to the end, then RingDone.
//      The agent drops the descriptor everywhere and answers ForgetRing; until then the journal
//      remembers the ring, so that it is not read twice
//      MoveRing: what such a ring holds leaves its container's memory, then RingMoved
//   6. StopChannel: closes the slots of all its rings, reads to the end, flushes, fsyncs, then
//      Drained, once no other StopChannel follows
//   7. the agent's connection ends: goes on reading, waits for another Connect. The keeper's
//      connection ends, or the keeper says Exit: flushes and exits with status 0
// All counts are totals since the channel was defined, not differences: a message that is lost or
// said twice does no harm. After a restart they go on where the journal has them.
//
// Versions: Hello carries kProtocolVersion; processes of one keeper come from one installation, so
// another number is an error. Members that a receiver does not know are passed over.
// Thread-safety: plain values. Limits: limits.h.
#ifndef WEFT_LIB_IPC_MESSAGES_H_
#define WEFT_LIB_IPC_MESSAGES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/base/uuid.h"
#include "lib/fields/fields.h"

namespace weft::ipc {

inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr int kKeeperFd = 3;  // in agent and consumer: the connection to the keeper
inline constexpr int kLeaseFd = 4;   // the same, on a node: its lease (node-agent/keeper/lease.h)

// --- agent -> consumer -----------------------------------------------------------------------

// The first message on a connection. `journal` is the same file at every start of this consumer; it
// is empty at the first start, and the consumer makes it grow.
struct Configure {
  UniqueFd journal;
  uint32_t clock = 0;              // enum weft_clock_id, of all rings of processes
  uint32_t slot_count = 0;         // slots that a ring set shall have, the atomic one not counted
  int64_t realtime_offset_ns = 0;  // CLOCK_REALTIME - HostMonotonicNs() when the session began
  Uuid clock_uuid{};               // the same for all traces of this boot: they can be merged

  static constexpr std::string_view kName = "Configure";
  static constexpr auto Fields() {
    return std::tuple(Field("journal", &Configure::journal), Field("clock", &Configure::clock),
                      Field("slot_count", &Configure::slot_count),
                      Field("realtime_offset_ns", &Configure::realtime_offset_ns),
                      Field("clock_uuid", &Configure::clock_uuid));
  }
};

// A context that events are recorded with.
struct ContextRef {
  uint16_t id = 0;   // lib/abi/context.h
  std::string name;  // of perf counters and application contexts

  static constexpr auto Fields() {
    return std::tuple(Field("id", &ContextRef::id), Field("name", &ContextRef::name));
  }
};

// The relay that gets a Trace's packets. If there is no host, they go into the output folder.
struct RelayAddress {
  std::string host;  // a name or an address
  uint16_t control_port = 0;
  uint16_t data_port = 0;
  bool operator==(const RelayAddress&) const = default;

  static constexpr auto Fields() {
    return std::tuple(Field("host", &RelayAddress::host),
                      Field("control_port", &RelayAddress::control_port),
                      Field("data_port", &RelayAddress::data_port));
  }
};

inline constexpr const char* kUserDomain = "ust";  // LTTng's names
inline constexpr const char* kKernelDomain = "kernel";

struct ChannelDefinition {
  uint64_t id = 0;          // as in lib/abi/control.h, never used again
  std::string trace;        // the Trace's name
  std::string trace_uid;    // the Trace's, in a cluster; "" in local mode
  std::string channel;      // "user"
  std::string trace_path;   // relative folder of the CTF trace, "ust/uid/1000/64-bit"
  Uuid trace_uuid{};        // with trace_path names the CTF trace; channels may share one
  std::string ctf_version;  // "1.8" or "2"
  uint32_t mode = 0;        // enum weft_ring_mode
  uint32_t subbuf_shift = 0;
  uint32_t subbufs_shift = 0;
  std::vector<ContextRef> contexts;  // in the order of the records
  RelayAddress relay;
  // For the trace's environment.
  std::string hostname;
  std::string domain;    // kUserDomain or kKernelDomain, whose rings come from weft.ko
  std::string created;   // "20261121T103330Z"
  std::string programs;  // "shop"
  std::string node, kubernetes_namespace, pod, pod_uid, container;

  static constexpr std::string_view kName = "ChannelDefinition";
  static constexpr auto Fields() {
    return std::tuple(
        Field("id", &ChannelDefinition::id), Field("trace", &ChannelDefinition::trace),
        Field("trace_uid", &ChannelDefinition::trace_uid),
        Field("channel", &ChannelDefinition::channel),
        Field("trace_path", &ChannelDefinition::trace_path),
        Field("trace_uuid", &ChannelDefinition::trace_uuid),
        Field("ctf_version", &ChannelDefinition::ctf_version),
        Field("mode", &ChannelDefinition::mode),
        Field("subbuf_shift", &ChannelDefinition::subbuf_shift),
        Field("subbufs_shift", &ChannelDefinition::subbufs_shift),
        Field("contexts", &ChannelDefinition::contexts), Field("relay", &ChannelDefinition::relay),
        Field("hostname", &ChannelDefinition::hostname),
        Field("domain", &ChannelDefinition::domain), Field("created", &ChannelDefinition::created),
        Field("programs", &ChannelDefinition::programs), Field("node", &ChannelDefinition::node),
        Field("kubernetes_namespace", &ChannelDefinition::kubernetes_namespace),
        Field("pod", &ChannelDefinition::pod), Field("pod_uid", &ChannelDefinition::pod_uid),
        Field("container", &ChannelDefinition::container));
  }
};

// A ring set. (channel_id, instance) names it. The ring's own claims are not trusted; the values
// here are the kernel's word on the sender.
struct Ring {
  uint64_t channel_id = 0;
  uint64_t instance = 0;
  uint64_t process = 0;  // the agent's number of the process, never used again (pids are)
  int32_t pid = 0;       // in the agent's pid namespace
  uint32_t uid = 0;
  std::string procname;   // "" where the process was gone already
  std::string container;  // "" in local mode
  UniqueFd fd;

  static constexpr std::string_view kName = "Ring";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &Ring::channel_id), Field("instance", &Ring::instance),
                      Field("process", &Ring::process), Field("pid", &Ring::pid),
                      Field("uid", &Ring::uid), Field("procname", &Ring::procname),
                      Field("container", &Ring::container), Field("fd", &Ring::fd));
  }
};

// No process writes into these rings any more.
struct ProcessGone {
  uint64_t process = 0;

  static constexpr std::string_view kName = "ProcessGone";
  static constexpr auto Fields() { return std::tuple(Field("process", &ProcessGone::process)); }
};

// The process of this ring set is gone: the consumer moves what was not stored into its own memory.
// Beyond its budget it leaves it where it is or, with `may_lose`, counts it as lost. It is repeated
// until the answer, RingMoved or RingDone.
struct MoveRing {
  uint64_t channel_id = 0;
  uint64_t instance = 0;
  bool may_lose = false;  // the container has no memory for other ring sets

  static constexpr std::string_view kName = "MoveRing";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &MoveRing::channel_id),
                      Field("instance", &MoveRing::instance),
                      Field("may_lose", &MoveRing::may_lose));
  }
};

struct ForgetRing {
  uint64_t channel_id = 0;
  uint64_t instance = 0;

  static constexpr std::string_view kName = "ForgetRing";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &ForgetRing::channel_id),
                      Field("instance", &ForgetRing::instance));
  }
};

struct StopChannel {
  uint64_t channel_id = 0;
  // Ring sets of the channel may still come, and another StopChannel follows them: the consumer
  // does not answer this one with Drained.
  bool more_follows = false;

  static constexpr std::string_view kName = "StopChannel";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &StopChannel::channel_id),
                      Field("more_follows", &StopChannel::more_follows));
  }
};

// Drained was understood: the journal may forget the channel and its rings.
struct ForgetChannel {
  uint64_t channel_id = 0;

  static constexpr std::string_view kName = "ForgetChannel";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &ForgetChannel::channel_id));
  }
};

struct StateComplete {
  static constexpr std::string_view kName = "StateComplete";
  static constexpr auto Fields() { return std::tuple(); }
};

// `error` is 0 and `fd` open for reading and writing, or an errno and no fd.
struct FileAnswer {
  uint64_t request = 0;
  int32_t error = 0;
  UniqueFd fd;

  static constexpr std::string_view kName = "FileAnswer";
  static constexpr auto Fields() {
    return std::tuple(Field("request", &FileAnswer::request), Field("error", &FileAnswer::error),
                      OptionalField("fd", &FileAnswer::fd));
  }
};

// `fd` is a connected socket; without one, `error` says why, for people. In a cluster the relay
// must show a certificate for `server_name`, which one of `authorities` (PEM) signed, and asks for
// `ticket`, which proves to it that the consumer speaks for its namespace and this node. In local
// mode these are "", and the connection has no TLS.
struct ConnectionAnswer {
  uint64_t request = 0;
  std::string error;
  bool late = false;  // with an error: the relay did not answer in time, and may be busy
  UniqueFd fd;
  std::string authorities;
  std::string server_name;
  std::string ticket;  // of a control connection

  static constexpr std::string_view kName = "ConnectionAnswer";
  static constexpr auto Fields() {
    return std::tuple(
        Field("request", &ConnectionAnswer::request), Field("error", &ConnectionAnswer::error),
        OptionalField("late", &ConnectionAnswer::late), OptionalField("fd", &ConnectionAnswer::fd),
        OptionalField("authorities", &ConnectionAnswer::authorities),
        OptionalField("server_name", &ConnectionAnswer::server_name),
        OptionalField("ticket", &ConnectionAnswer::ticket));
  }
};

// --- consumer -> agent -----------------------------------------------------------------------

// It is also the first message of the agent to the keeper, when its sockets exist, and then of the
// keeper to the cli. Consumers begin with a Heartbeat.
struct Hello {
  uint32_t version = kProtocolVersion;
  int32_t pid = 0;

  static constexpr std::string_view kName = "Hello";
  static constexpr auto Fields() {
    return std::tuple(Field("version", &Hello::version), Field("pid", &Hello::pid));
  }
};

struct ChannelReady {
  uint64_t channel_id = 0;
  std::string error;   // not "": why the channel cannot be made, for people
  bool waits = false;  // with an error: the relay may come, then another ChannelReady follows

  static constexpr std::string_view kName = "ChannelReady";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &ChannelReady::channel_id),
                      Field("error", &ChannelReady::error),
                      OptionalField("waits", &ChannelReady::waits));
  }
};

// A file to create or open beneath the output folder, never truncated; folders on the way are made.
struct FileRequest {
  uint64_t request = 0;  // unique per connection
  std::string name;      // relative, as lib/store's CheckRelativeName

  static constexpr std::string_view kName = "FileRequest";
  static constexpr auto Fields() {
    return std::tuple(Field("request", &FileRequest::request), Field("name", &FileRequest::name));
  }
};

// A connection to the channel's relay, for control or for data: a consumer cannot make any.
struct ConnectionRequest {
  uint64_t request = 0;  // unique per connection
  uint64_t channel_id = 0;
  bool data = false;
  bool was_refused = false;  // the relay refused the last session, perhaps for its ticket

  static constexpr std::string_view kName = "ConnectionRequest";
  static constexpr auto Fields() {
    return std::tuple(Field("request", &ConnectionRequest::request),
                      Field("channel_id", &ConnectionRequest::channel_id),
                      Field("data", &ConnectionRequest::data),
                      OptionalField("was_refused", &ConnectionRequest::was_refused));
  }
};

// What the relay of the channel's Trace says against its sessions: for the first time, another
// text, or nothing any more.
struct RelayRefusal {
  uint64_t channel_id = 0;  // any of the Trace's
  std::string reason;       // for people; "": it takes everything again

  static constexpr std::string_view kName = "RelayRefusal";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &RelayRefusal::channel_id),
                      Field("reason", &RelayRefusal::reason));
  }
};

// P3, per channel:  emitted = recorded + sum(discarded)
//                   recorded = delivered + overwritten + sum(lost) + in_flight
struct ChannelCounts {
  uint64_t recorded = 0;
  uint64_t delivered = 0;
  uint64_t overwritten = 0;
  uint64_t in_flight = 0;  // read or still in rings, not yet in a file
  // "full", "memory", "nested", "too_large", "contended", "missed"
  std::map<std::string, uint64_t> discarded;
  std::map<std::string, uint64_t> lost;  // "stage/reason": "consumer/corrupt", "store/disk_full"
  uint64_t late = 0;                     // delivered with their time raised
  uint64_t bytes = 0;                    // of the trace's files
  uint64_t packets = 0;
  uint64_t streams = 0;  // files
  uint64_t rings = 0;    // ring sets ever
  uint64_t corrupt_rings = 0;
  uint64_t tail_unknown = 0;  // streams whose end is not known
  // Hits of probes of kernel functions, by any process of the machine, that the kernel did not
  // deliver. Their processes are not known, so they are in no other count.
  uint64_t missed_anywhere = 0;

  bool operator==(const ChannelCounts&) const = default;
  // A count that is added later is optional: session files of earlier versions lack it.
  static constexpr auto Fields() {
    using Self = ChannelCounts;
    return std::tuple(
        Field("recorded", &Self::recorded), Field("delivered", &Self::delivered),
        Field("overwritten", &Self::overwritten), Field("in_flight", &Self::in_flight),
        Field("discarded", &Self::discarded), Field("lost", &Self::lost),
        Field("late", &Self::late), Field("bytes", &Self::bytes), Field("packets", &Self::packets),
        Field("streams", &Self::streams), Field("rings", &Self::rings),
        Field("corrupt_rings", &Self::corrupt_rings), Field("tail_unknown", &Self::tail_unknown),
        OptionalField("missed_anywhere", &Self::missed_anywhere));
  }
};

struct Stats {
  uint64_t channel_id = 0;
  ChannelCounts counts;

  static constexpr std::string_view kName = "Stats";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &Stats::channel_id), Field("counts", &Stats::counts));
  }
};

// This ring set was read to its end, or is corrupt from here on; its events are in Stats.
// `refused`: the consumer has no room for it and read nothing, so that the agent counts what is in
// it.
struct RingDone {
  uint64_t channel_id = 0;
  uint64_t instance = 0;
  bool corrupt = false;
  bool refused = false;
  std::string reason;  // where it is corrupt: what contradicts what

  static constexpr std::string_view kName = "RingDone";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &RingDone::channel_id),
                      Field("instance", &RingDone::instance), Field("corrupt", &RingDone::corrupt),
                      Field("refused", &RingDone::refused), Field("reason", &RingDone::reason));
  }
};

// The slot's writer went round its ring: it uses every page of it.
struct SlotWentRound {
  uint64_t channel_id = 0;
  uint64_t instance = 0;
  uint32_t slot = 0;

  static constexpr std::string_view kName = "SlotWentRound";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &SlotWentRound::channel_id),
                      Field("instance", &SlotWentRound::instance),
                      Field("slot", &SlotWentRound::slot));
  }
};

// The answer to MoveRing, each time: the container has its memory back.
struct RingMoved {
  uint64_t channel_id = 0;
  uint64_t instance = 0;

  static constexpr std::string_view kName = "RingMoved";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &RingMoved::channel_id),
                      Field("instance", &RingMoved::instance));
  }
};

struct Drained {
  uint64_t channel_id = 0;
  ChannelCounts counts;  // final; in_flight is 0

  static constexpr std::string_view kName = "Drained";
  static constexpr auto Fields() {
    return std::tuple(Field("channel_id", &Drained::channel_id), Field("counts", &Drained::counts));
  }
};

// Something a person should know, once per kind: "the disk is full". Also keeper -> cli.
struct Notice {
  std::string component;
  std::string message;

  static constexpr std::string_view kName = "Notice";
  static constexpr auto Fields() {
    return std::tuple(Field("component", &Notice::component), Field("message", &Notice::message));
  }
};

// --- agent, consumer -> keeper ---------------------------------------------------------------

// Health is progress: the keeper restarts a process that is silent for kHeartbeatTimeout, or that
// has `pending` work while `done` stands still for kProgressTimeout.
struct Heartbeat {
  uint64_t done = 0;     // any counter that only grows: bytes read, messages handled
  uint64_t pending = 0;  // work that is waiting; 0: idle

  static constexpr std::string_view kName = "Heartbeat";
  static constexpr auto Fields() {
    return std::tuple(Field("done", &Heartbeat::done), Field("pending", &Heartbeat::pending));
  }
};

// --- agent -> keeper -------------------------------------------------------------------------

// Keeps a descriptor beyond the agent's death; Kept repeats them to the next agent. A second Keep
// with a known key replaces meta, and fd if it has one.
struct Keep {
  std::string key;
  std::string meta;  // the agent's business
  UniqueFd fd;

  static constexpr std::string_view kName = "Keep";
  static constexpr auto Fields() {
    return std::tuple(Field("key", &Keep::key), Field("meta", &Keep::meta),
                      OptionalField("fd", &Keep::fd));
  }
};

struct Drop {
  std::string key;

  static constexpr std::string_view kName = "Drop";
  static constexpr auto Fields() { return std::tuple(Field("key", &Drop::key)); }
};

// The keeper answers this socket's doorbells from now on (Arrived) and keeps what they bring. A
// name that has a socket already keeps it.
struct ListenDoorbell {
  std::string name;  // of the pod, by its uid; "" in local mode
  UniqueFd fd;

  static constexpr std::string_view kName = "ListenDoorbell";
  static constexpr auto Fields() {
    return std::tuple(Field("name", &ListenDoorbell::name), Field("fd", &ListenDoorbell::fd));
  }
};

// No process will ring there any more.
struct CloseDoorbell {
  std::string name;

  static constexpr std::string_view kName = "CloseDoorbell";
  static constexpr auto Fields() { return std::tuple(Field("name", &CloseDoorbell::name)); }
};

struct StartConsumer {
  std::string name;  // [a-z0-9-]

  static constexpr std::string_view kName = "StartConsumer";
  static constexpr auto Fields() { return std::tuple(Field("name", &StartConsumer::name)); }
};

// Exit, then the process's end.
struct StopConsumer {
  std::string name;

  static constexpr std::string_view kName = "StopConsumer";
  static constexpr auto Fields() { return std::tuple(Field("name", &StopConsumer::name)); }
};

// Answer with Synced when every doorbell that rang before this was said has been passed on. If
// descriptors are scarce, that takes until earlier ring sets are finished. If no descriptor comes
// back for kSyncStill, or after kSyncTime, the rest is passed on as refused (Arrived without a
// key).
struct Sync {
  uint64_t number = 0;

  static constexpr std::string_view kName = "Sync";
  static constexpr auto Fields() { return std::tuple(Field("number", &Sync::number)); }
};

// All is done: end every process, in order, then the keeper itself.
struct Quit {
  static constexpr std::string_view kName = "Quit";
  static constexpr auto Fields() { return std::tuple(); }
};

// --- keeper -> agent -------------------------------------------------------------------------

struct Kept {
  std::string key;
  std::string meta;
  UniqueFd fd;
  std::string doorbell;  // that brought it; "": the agent made it

  static constexpr std::string_view kName = "Kept";
  static constexpr auto Fields() {
    return std::tuple(Field("key", &Kept::key), Field("meta", &Kept::meta), Field("fd", &Kept::fd),
                      OptionalField("doorbell", &Kept::doorbell));
  }
};

struct KeptComplete {
  static constexpr std::string_view kName = "KeptComplete";
  static constexpr auto Fields() { return std::tuple(); }
};

struct Synced {
  uint64_t number = 0;

  static constexpr std::string_view kName = "Synced";
  static constexpr auto Fields() { return std::tuple(Field("number", &Synced::number)); }
};

// A doorbell rang. The keeper holds `fd` under `key` until Drop; what it knows of the sender comes
// from the kernel. Without a key the ring set is refused: the keeper has no descriptor to hold it
// with, and the agent only counts its events.
struct Arrived {
  std::string key;
  std::string doorbell;  // whose socket it came over
  std::string message;   // the doorbell's bytes in hexadecimal digits, foreign
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  UniqueFd fd;     // not valid: the message came without one
  UniqueFd pidfd;  // not valid: the process was gone already

  static constexpr std::string_view kName = "Arrived";
  static constexpr auto Fields() {
    return std::tuple(Field("key", &Arrived::key), Field("doorbell", &Arrived::doorbell),
                      Field("message", &Arrived::message), Field("pid", &Arrived::pid),
                      Field("uid", &Arrived::uid), Field("gid", &Arrived::gid),
                      OptionalField("fd", &Arrived::fd), OptionalField("pidfd", &Arrived::pidfd));
  }
};

// Also keeper -> consumer (name ""): use this connection to the other side from now on.
struct Connect {
  std::string name;
  UniqueFd fd;

  static constexpr std::string_view kName = "Connect";
  static constexpr auto Fields() {
    return std::tuple(Field("name", &Connect::name), Field("fd", &Connect::fd));
  }
};

struct ConsumerGone {
  std::string name;
  std::string reason;     // "killed by signal 9", "no heartbeat for 10 s"
  uint32_t failures = 0;  // in a row
  bool given_up = false;  // it keeps failing: not tried again before `retry_seconds`
  uint32_t retry_seconds = 0;
  bool out_of_memory = false;  // the kernel killed it, since it exceeded its memory limit

  static constexpr std::string_view kName = "ConsumerGone";
  static constexpr auto Fields() {
    return std::tuple(Field("name", &ConsumerGone::name), Field("reason", &ConsumerGone::reason),
                      Field("failures", &ConsumerGone::failures),
                      Field("given_up", &ConsumerGone::given_up),
                      Field("retry_seconds", &ConsumerGone::retry_seconds),
                      Field("out_of_memory", &ConsumerGone::out_of_memory));
  }
};

// The session's owner is gone (its end of the lifeline was closed): stop, drain, Quit.
struct OwnerGone {
  static constexpr std::string_view kName = "OwnerGone";
  static constexpr auto Fields() { return std::tuple(); }
};

// To an agent: all processes will end. It does what cannot wait for the next start, then sends
// Quit. To a consumer: flush and exit.
struct Exit {
  static constexpr std::string_view kName = "Exit";
  static constexpr auto Fields() { return std::tuple(); }
};

// --- keeper <-> keeper of the same node ------------------------------------------------------
//
// The keeper that holds the node's lease listens at keeper.sock. Another one connects, and says
// TakeOver. When the holder hands over, it ends its children, then sends what it keeps (Kept,
// Arrived), SilentCaller, and HandedOver. TakenOver is the answer; then the holder gives the lease
// up. Until TakenOver nothing changes: if the connection ends, the holder goes on.

// `now`: hand over at once; else when the holder ends.
struct TakeOver {
  uint32_t version = kProtocolVersion;
  bool now = false;

  static constexpr std::string_view kName = "TakeOver";
  static constexpr auto Fields() {
    return std::tuple(Field("version", &TakeOver::version), Field("now", &TakeOver::now));
  }
};

// A connection to a doorbell; its message was not read yet.
struct SilentCaller {
  std::string doorbell;
  UniqueFd fd;

  static constexpr std::string_view kName = "SilentCaller";
  static constexpr auto Fields() {
    return std::tuple(Field("doorbell", &SilentCaller::doorbell), Field("fd", &SilentCaller::fd));
  }
};

// If the other side has another version, it is the only message.
struct HandedOver {
  uint32_t version = kProtocolVersion;

  static constexpr std::string_view kName = "HandedOver";
  static constexpr auto Fields() { return std::tuple(Field("version", &HandedOver::version)); }
};

struct TakenOver {
  static constexpr std::string_view kName = "TakenOver";
  static constexpr auto Fields() { return std::tuple(); }
};

// --- cli -> agent ----------------------------------------------------------------------------

// The answer is SessionState or Refused, after the session is on disk.
struct CreateSession {
  UniqueFd traces;     // a file: Trace YAML or JSON, one or several documents
  std::string file;    // what to call it in diagnostics
  std::string output;  // absolute path of the folder, which exists; "": there is a relay
  RelayAddress relay;
  std::string ctf_version;  // "1.8" or "2"
  std::string programs;
  uint32_t uid = 0;
  std::vector<int32_t> attach;  // processes that run already, with all their descendants

  static constexpr std::string_view kName = "CreateSession";
  static constexpr auto Fields() {
    return std::tuple(Field("traces", &CreateSession::traces), Field("file", &CreateSession::file),
                      Field("output", &CreateSession::output),
                      Field("relay", &CreateSession::relay),
                      Field("ctf_version", &CreateSession::ctf_version),
                      Field("programs", &CreateSession::programs),
                      Field("uid", &CreateSession::uid), Field("attach", &CreateSession::attach));
  }
};

struct StartSession {
  static constexpr std::string_view kName = "StartSession";
  static constexpr auto Fields() { return std::tuple(); }
};
struct StopSession {
  static constexpr std::string_view kName = "StopSession";
  static constexpr auto Fields() { return std::tuple(); }
};  // answered when all is drained
struct QuerySession {
  static constexpr std::string_view kName = "QuerySession";
  static constexpr auto Fields() { return std::tuple(); }
};  // answered at once
struct DumpState {
  static constexpr std::string_view kName = "DumpState";
  static constexpr auto Fields() { return std::tuple(); }
};  // of the kernel, to its channels that are on; no answer
struct DestroySession {
  static constexpr std::string_view kName = "DestroySession";
  static constexpr auto Fields() { return std::tuple(); }
};  // no answer: all processes end

// --- agent -> cli ----------------------------------------------------------------------------

enum class Phase : uint8_t { kNone, kCreated, kStarting, kReady, kStopping, kStopped };
constexpr Phase LastOf(Phase) { return Phase::kStopped; }

struct TraceState {
  std::string name;
  std::string path;  // of the CTF trace, below output
  ChannelCounts counts;

  static constexpr auto Fields() {
    return std::tuple(Field("name", &TraceState::name), Field("path", &TraceState::path),
                      Field("counts", &TraceState::counts));
  }
};

struct SessionState {
  Phase phase = Phase::kNone;
  std::string output;
  std::string cgroup;  // folder of the cgroup that the program belongs into; "": any
  std::string programs;
  std::vector<TraceState> traces;
  uint64_t processes = 0;  // that have rings now
  uint64_t recoveries = 0;
  std::vector<std::string> notices;  // for people, oldest first
  uint64_t hooked = 0;               // functions that this agent has hooked so far
  uint64_t searched = 0;             // how often it has searched a process for functions to hook

  static constexpr std::string_view kName = "SessionState";
  static constexpr auto Fields() {
    return std::tuple(
        Field("phase", &SessionState::phase), Field("output", &SessionState::output),
        Field("cgroup", &SessionState::cgroup), Field("programs", &SessionState::programs),
        Field("traces", &SessionState::traces), Field("processes", &SessionState::processes),
        Field("recoveries", &SessionState::recoveries), Field("notices", &SessionState::notices),
        OptionalField("hooked", &SessionState::hooked),
        OptionalField("searched", &SessionState::searched));
  }
};

struct Refused {
  std::string kind;  // "input": the command is wrong; "output": its folder; "tracing": weft failed
  std::string message;  // may have several lines

  static constexpr std::string_view kName = "Refused";
  static constexpr auto Fields() {
    return std::tuple(Field("kind", &Refused::kind), Field("message", &Refused::message));
  }
};

using Message =
    std::variant<Configure, ChannelDefinition, Ring, ProcessGone, ForgetRing, StopChannel,
                 ForgetChannel, StateComplete, FileAnswer, Hello, ChannelReady, FileRequest, Stats,
                 RingDone, Drained, Notice, Heartbeat, Keep, Drop, ListenDoorbell, StartConsumer,
                 StopConsumer, Sync, Synced, Quit, Kept, KeptComplete, Arrived, Connect,
                 ConsumerGone, OwnerGone, Exit, CreateSession, StartSession, StopSession,
                 QuerySession, DestroySession, SessionState, Refused, ConnectionRequest,
                 ConnectionAnswer, CloseDoorbell, DumpState, SlotWentRound, MoveRing, RingMoved,
                 TakeOver, SilentCaller, HandedOver, TakenOver, RelayRefusal>;

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_MESSAGES_H_
