// SPDX-License-Identifier: Apache-2.0
// weft.ko as the agent sees it: sessions, rings and events made by ioctls on descriptors
// (lib/abi/kernel.h). Thin: each call is one ioctl; what the module refuses comes back as an Error
// that names the thing.
//
// Thread-safety: none needed, the functions have no state. Calls may block for a grace period of
// the kernel's (milliseconds). Needs CAP_SYS_ADMIN.
#ifndef WEFT_NODE_AGENT_KERNEL_MODULE_H_
#define WEFT_NODE_AGENT_KERNEL_MODULE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/abi/kernel.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::kernel {

// One source of records, resolved for the running kernel.
struct Event {
  uint32_t kind = WEFT_KERNEL_TRACEPOINT;  // enum weft_kernel_event_kind
  std::string name;  // tracepoint or function; "": a system call, a place in a file
  uint64_t offset = 0;
  std::shared_ptr<const UniqueFd> file;  // of UPROBE and URETPROBE
  uint64_t semaphore = 0;                // of UPROBE, in the file; 0: none
  uint64_t twin = 0;    // of both: at one place of a file one event of this number; 0: any
  uint32_t number = 0;  // of a system call
  uint32_t table = WEFT_KERNEL_SYSCALLS_NATIVE;
  std::vector<uint8_t> known;        // of WEFT_KERNEL_SYSCALL_UNKNOWN; else empty
  uint32_t subjects = 0;             // enum weft_kernel_subject
  std::vector<uint8_t> description;  // struct weft_event_desc and its bytes
  std::vector<weft_fetch_op> fetch;
  std::vector<uint8_t> filter;  // a program of lib/abi/filter.h; empty: none
};

struct Context {
  uint16_t id = 0;   // enum weft_context_id
  std::string name;  // of a counter: for people
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

// The device, looked at: kNotFound: the module is not loaded; kPermission; kUnsupported: it is of
// another ABI.
Result<UniqueFd> OpenModule(const std::string& path = WEFT_KERNEL_DEVICE);
// Whether the kernel trusts this clock (enum weft_clock_id) at present: it may give up the TSC at
// any time.
Result<bool> Offers(const UniqueFd& module, uint32_t clock);
// What can be recorded with this kernel at all: bits of enum weft_kernel_feature.
Result<uint32_t> Features(const UniqueFd& module);
// A session, off. `all`: it records every task; else those in its scope, at first none.
Result<UniqueFd> MakeSession(const UniqueFd& module, bool all);
// Adds the cgroup with this id (the inode number of its folder in cgroup2), or takes it away.
Status ChangeScope(const UniqueFd& session, uint64_t cgroup, weft_kernel_scope_change change);
Status Track(const UniqueFd& session, const Trackers& trackers);
struct SessionState {
  std::string stopped;           // why it stopped by itself; "": it did not
  uint64_t missed_anywhere = 0;  // struct weft_kernel_session_status
};
// Also brings the counts of hits that were missed in its rings up to date.
Result<SessionState> StateOf(const UniqueFd& session);
Status Switch(const UniqueFd& session, bool on);
// Records what is there, where the session has events for that. Takes as long as it takes; ended by
// Switch(session, false), with sys_errno ESHUTDOWN. `cgroup`: only of tasks in it; 0: of all in
// scope. kNotFound: it is gone, or there is no such event.
Status DumpState(const UniqueFd& session, uint64_t cgroup = 0);
// kUnsupported: the module lacks a context, which is named, or the clock.
Result<UniqueFd> MakeRing(const UniqueFd& session, const Ring& ring);
// The event lives as long as its session. kNotFound: this kernel has no such tracepoint or
// function; kInvalid: its filter does not fit; kConflict: its twin is there; else what the module
// found wrong.
Status AddEvent(const UniqueFd& ring, const Event& event);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_MODULE_H_
