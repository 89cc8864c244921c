// SPDX-License-Identifier: Apache-2.0
// A back end records events in the kernel for the agent. weft.ko is the only one (module.h).
// Another one, on eBPF for example, would make equal rings (lib/abi/ring.h) from equal events; how
// it makes a field from steps (fetch_step.h) is its own matter.
//
// Life of a recording: MakeSession (off), ChangeScope, Track, MakeRing, AddEvent, Switch(on),
// DumpState, Switch(off). It ends when the last copies of its descriptors are closed. A session
// and a ring are descriptors, so that the keeper can hold them while the agent restarts, and a
// consumer can be given a ring. A ring's descriptor can be read as docs/formats/ring.md describes.
//
// Thread-safety: a back end has no state of its own; any thread may call it. Calls may block for
// some milliseconds. Needs CAP_SYS_ADMIN.
#ifndef WEFT_NODE_AGENT_KERNEL_BACKEND_H_
#define WEFT_NODE_AGENT_KERNEL_BACKEND_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/abi/kernel.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/kernel/fetch_step.h"

namespace weft::kernel {

// One event, resolved for the running kernel: where it is, and how its fields are made.
struct Event {
  uint32_t kind = WEFT_KERNEL_TRACEPOINT;  // enum weft_kernel_event_kind
  std::string name;  // tracepoint or function; "": a system call, a place in a file
  uint64_t offset = 0;
  std::shared_ptr<const UniqueFd> file;  // UPROBE and URETPROBE
  uint64_t semaphore = 0;                // UPROBE: place in the file; 0: none
  uint64_t twin = 0;    // both: at one place of a file one event with this number; 0: any
  uint32_t number = 0;  // the system call's
  uint32_t table = WEFT_KERNEL_SYSCALLS_NATIVE;
  std::vector<uint8_t> known;        // for WEFT_KERNEL_SYSCALL_UNKNOWN; else empty
  uint32_t subjects = 0;             // enum weft_kernel_subject
  std::vector<uint8_t> description;  // struct weft_event_desc and its bytes
  std::vector<FetchStep> fetch;
  std::vector<uint8_t> filter;  // a program of lib/abi/filter.h; empty: none
};

struct Context {
  uint16_t id = 0;   // enum weft_context_id
  std::string name;  // the counter's, for people
  uint32_t perf_type = 0;
  uint64_t perf_config = 0;
};

struct Ring {
  weft_ring_mode mode = WEFT_RING_DISCARD;
  uint32_t clock = WEFT_CLOCK_MONOTONIC;  // enum weft_clock_id
  uint32_t subbuf_shift = 19;
  uint32_t subbufs_shift = 2;
  uint64_t channel_id = 0;
  std::vector<Context> contexts;  // in the order of the records
};

// A task in scope is recorded only if it has, for each kind with values, one of these values.
using Trackers = std::map<weft_kernel_track_kind, std::vector<uint32_t>>;

// What a back end can do on this machine at present.
struct Support {
  uint32_t features = 0;  // bits of enum weft_kernel_feature
  // Bit 1 << enum weft_clock_id for each clock that the kernel trusts: it may give up the TSC at
  // any time.
  uint32_t clocks = 0;

  [[nodiscard]] bool Offers(uint32_t clock) const { return (clocks & 1U << clock) != 0; }
};

struct SessionState {
  std::string stopped;           // why it stopped by itself; "": it did not
  uint64_t missed_anywhere = 0;  // struct weft_kernel_session_status
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // kNotFound: it is not loaded; kPermission; kUnsupported: it has another interface.
  [[nodiscard]] virtual Result<Support> Probe() const = 0;

  // Makes a session that is off. `all`: it records every task; otherwise those in its scope, which
  // is empty at first.
  [[nodiscard]] virtual Result<UniqueFd> MakeSession(bool all) const = 0;
  // Adds the cgroup with this id (the inode number of its folder in cgroup2), or takes it away.
  [[nodiscard]] virtual Status ChangeScope(const UniqueFd& session, uint64_t cgroup,
                                           weft_kernel_scope_change change) const = 0;
  [[nodiscard]] virtual Status Track(const UniqueFd& session, const Trackers& trackers) const = 0;
  // Returns after no probe of the old state runs any more.
  [[nodiscard]] virtual Status Switch(const UniqueFd& session, bool on) const = 0;
  // Returns the session's state. It also brings the counts of missed hits in the session's rings up
  // to date.
  [[nodiscard]] virtual Result<SessionState> StateOf(const UniqueFd& session) const = 0;
  // Records the existing objects for which the session has events. This may take long;
  // Switch(session, false) ends it with sys_errno ESHUTDOWN. `cgroup`: only tasks in it are
  // recorded; 0: all in scope. kNotFound: the cgroup is gone, or the session has no such event.
  [[nodiscard]] virtual Status DumpState(const UniqueFd& session, uint64_t cgroup) const = 0;

  // kUnsupported: this kernel lacks the clock, or a context, which the error names.
  [[nodiscard]] virtual Result<UniqueFd> MakeRing(const UniqueFd& session,
                                                  const Ring& ring) const = 0;
  // Adds an event, which lives as long as its session. kNotFound: this kernel has no such
  // tracepoint or function; kInvalid: the filter does not fit; kConflict: the session has its twin;
  // or the back end's own errors.
  [[nodiscard]] virtual Status AddEvent(const UniqueFd& ring, const Event& event) const = 0;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_BACKEND_H_
