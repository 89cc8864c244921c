// SPDX-License-Identifier: Apache-2.0
// See module.h.
#include "node-agent/kernel/module.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>

#include "lib/abi/context.h"
#include "node-agent/kernel/fetch_program.h"

namespace weft::kernel {
namespace {

uint64_t Address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

ErrorCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EPERM:
    case EACCES:
      return ErrorCode::kPermission;
    case EINVAL:
      return ErrorCode::kInvalid;
    case EEXIST:
      return ErrorCode::kConflict;
    case EOPNOTSUPP:
    case E2BIG:
    case ENOTTY:
      return ErrorCode::kUnsupported;
    default:
      return ErrorCode::kIo;
  }
}

std::unexpected<Error> FailIoctl(const std::string& what) {
  auto failed = FailErrno(what);
  failed.error().code = CodeOf(failed.error().sys_errno);
  return failed;
}

template <typename Argument>
Result<int> CallModule(const UniqueFd& fd, unsigned long request, Argument& argument,
                       const std::string& what) {
  argument.size = sizeof(argument);
  const int answer = ioctl(fd.get(), request, &argument);
  if (answer < 0) return FailIoctl(what);
  return answer;
}

template <typename Argument>
Result<UniqueFd> MakeInModule(const UniqueFd& fd, unsigned long request, Argument& argument,
                              const std::string& what) {
  WEFT_ASSIGN(const int made, CallModule(fd, request, argument, what));
  return UniqueFd(made);
}

Result<UniqueFd> MakeChannel(const UniqueFd& session, weft_kernel_channel channel,
                             std::span<const Context> list, const std::string& what) {
  std::vector<weft_context_spec> contexts;
  for (const Context& context : list)
    contexts.push_back({.id = context.id,
                        .name_size = 0,
                        .name_offset = 0,
                        .perf_config = context.perf_config,
                        .perf_type = context.perf_type,
                        .reserved = 0});
  channel.context_count = static_cast<uint32_t>(contexts.size());
  channel.contexts = Address(contexts.data());
  return MakeInModule(session, WEFT_IOCTL_CHANNEL, channel, what);
}

// Returns an explanation of an errno with which the kernel refused a counter; "": the errno's own
// text is enough.
std::string WhyNoCounter(int error) {
  switch (error) {
    case EOPNOTSUPP:
    case EINVAL:
      return ": this machine has no such counter (perf list shows those that it has; virtual "
             "machines often have software counters only)";
    case EBUSY:
      return ": all counters that could count it are in use: end what uses them (perf, other "
             "Traces)";
    default:
      return "";
  }
}

// The module reports that it refuses a list, but not which entry. This tries each alone, in the
// smallest ring with a clock that all machines have. "": it takes each.
std::string WhichAreRefused(const UniqueFd& session, const std::vector<Context>& contexts) {
  weft_kernel_channel channel{};
  channel.clock = WEFT_CLOCK_MONOTONIC;
  channel.subbuf_shift =
      std::max<uint32_t>(WEFT_RING_MIN_SUBBUF_SHIFT,
                         std::countr_zero(static_cast<unsigned long>(sysconf(_SC_PAGESIZE))));
  channel.slot_shift = channel.subbuf_shift + WEFT_RING_MIN_SUBBUFS_SHIFT;
  std::string refused;
  for (const Context& context : contexts) {
    const weft_context_info* info = weft_context_by_id(context.id);
    const std::string name = (info == nullptr ? "" : info->name) + context.name;
    auto made = MakeChannel(session, channel, {&context, 1}, "context \"" + name + "\"");
    if (made) continue;
    const bool is_counter = context.id == WEFT_CONTEXT_PERF_CPU;
    const std::string why = is_counter ? WhyNoCounter(made.error().sys_errno) : "";
    refused += (refused.empty() ? "" : "; ") + made.error().message + why;
  }
  return refused;
}

bool IsKprobe(const Event& event) {
  return event.kind == WEFT_KERNEL_KPROBE || event.kind == WEFT_KERNEL_KRETPROBE;
}

std::string PlaceOf(const Event& event) {
  if (event.file) return "probe at " + std::to_string(event.offset) + " in a file";
  if (IsKprobe(event))
    return "probe of function \"" + event.name + "\"" +
           (event.offset == 0 ? "" : " at offset " + std::to_string(event.offset));
  if (!event.known.empty()) return "unknown system calls";
  return event.name.empty() ? "system call " + std::to_string(event.number) : event.name;
}

// Returns what register_kprobe's and register_kretprobe's errno means (kernel/kprobes.c), and what
// to do; "": the errno's own text is enough.
std::string WhyNoKprobe(int error) {
  switch (error) {
    case EILSEQ:
      return "no instruction begins there: give the offset of one that does (as objdump -d shows "
             "them)";
    case EINVAL:
      return "the kernel does not let this place be probed: its probes and exceptions run through "
             "it, or it rewrites it itself (/sys/kernel/debug/kprobes/blacklist has such "
             "functions); probe a function that calls it";
    case ENOENT:
      return "this kernel has no such function, or it is gone after the start: probe another one";
    case EOPNOTSUPP:
      return "this kernel has no probes of functions";
    case EBUSY:
      return "the function is replaced at present (live patching): probe a function that calls it";
    default:
      return "";
  }
}

// Returns the module's answer to an event that it refuses, in words.
std::unexpected<Error> RefuseEvent(const Event& event, Error error) {
  const std::string why = IsKprobe(event) ? WhyNoKprobe(error.sys_errno) : "";
  if (!why.empty()) {
    error.message = PlaceOf(event) + ": " + why;
    if (error.sys_errno == EILSEQ || error.sys_errno == EBUSY) error.code = ErrorCode::kInvalid;
  } else if (error.sys_errno == ENOSPC) {
    error.code = ErrorCode::kLimit;
    error.message +=
        ": a channel has room for 1 MiB of descriptions of its events: record fewer of them";
  }
  return std::unexpected(std::move(error));
}

// Asks the module for its properties; an error if it has another interface.
Result<weft_kernel_abi> Ask(const UniqueFd& module, const std::string& device) {
  weft_kernel_abi abi{};
  WEFT_TRY(CallModule(module, WEFT_IOCTL_ABI, abi, device));
  if (abi.major != WEFT_KERNEL_ABI_MAJOR) {
    return Fail(ErrorCode::kUnsupported,
                device + ": weft.ko has version " + std::to_string(abi.major) +
                    " of the interface, this is " + std::to_string(WEFT_KERNEL_ABI_MAJOR));
  }
  return abi;
}

}  // namespace

Result<UniqueFd> OpenModule(const std::string& device) {
  UniqueFd module(open(device.c_str(), O_RDWR | O_CLOEXEC));
  if (!module) return FailIoctl(device);
  WEFT_TRY(Ask(module, device));
  return module;
}

const Backend& ThisBackend() {
  static const ModuleBackend backend;
  return backend;
}

Result<Support> ModuleBackend::Probe() const {
  WEFT_ASSIGN(const UniqueFd module, OpenModule(device_));
  WEFT_ASSIGN(const weft_kernel_abi abi, Ask(module, device_));
  return Support{.features = abi.features, .clocks = abi.clocks};
}

Result<UniqueFd> ModuleBackend::MakeSession(bool all) const {
  WEFT_ASSIGN(const UniqueFd module, OpenModule(device_));
  weft_kernel_session session{};
  session.flags = all ? WEFT_KERNEL_SESSION_ALL : 0;
  return MakeInModule(module, WEFT_IOCTL_SESSION, session, "weft.ko: session");
}

Status ModuleBackend::ChangeScope(const UniqueFd& session, uint64_t cgroup,
                                  weft_kernel_scope_change change) const {
  weft_kernel_scope scope{};
  scope.change = change;
  scope.cgroup = cgroup;
  WEFT_TRY(
      CallModule(session, WEFT_IOCTL_SCOPE, scope, "weft.ko: cgroup " + std::to_string(cgroup)));
  return {};
}

Status ModuleBackend::Track(const UniqueFd& session, const Trackers& trackers) const {
  for (const auto& [kind, values] : trackers) {
    for (const uint32_t value : values) {
      weft_kernel_track track{};
      track.kind = kind;
      track.change = WEFT_KERNEL_TRACK_ADD;
      track.value = value;
      WEFT_TRY(CallModule(session, WEFT_IOCTL_TRACK, track,
                          "weft.ko: tracker " + std::to_string(value)));
    }
  }
  return {};
}

Result<SessionState> ModuleBackend::StateOf(const UniqueFd& session) const {
  weft_kernel_session_status status{};
  WEFT_TRY(CallModule(session, WEFT_IOCTL_SESSION_STATUS, status, "weft.ko: session"));
  SessionState state{.stopped = "", .missed_anywhere = status.missed_anywhere};
  if (status.state != WEFT_KERNEL_RUNS) {
    state.stopped = "weft.ko: the session stopped: internal contradiction " +
                    std::to_string(status.state) + ", met " +
                    std::to_string(status.contradictions) + " times";
  }
  return state;
}

Status ModuleBackend::Switch(const UniqueFd& session, bool on) const {
  weft_kernel_switch to{};
  to.on = on ? 1 : 0;
  WEFT_TRY(CallModule(session, WEFT_IOCTL_SWITCH, to, "weft.ko: switch"));
  return {};
}

Status ModuleBackend::DumpState(const UniqueFd& session, uint64_t cgroup) const {
  weft_kernel_statedump dump{};
  dump.cgroup = cgroup;
  WEFT_TRY(CallModule(session, WEFT_IOCTL_STATEDUMP, dump, "weft.ko: statedump"));
  return {};
}

Result<UniqueFd> ModuleBackend::MakeRing(const UniqueFd& session, const Ring& ring) const {
  weft_kernel_channel channel{};
  channel.mode = ring.mode;
  channel.clock = ring.clock;
  channel.slot_shift = ring.subbuf_shift + ring.subbufs_shift;
  channel.subbuf_shift = ring.subbuf_shift;
  channel.channel_id = ring.channel_id;
  auto made = MakeChannel(session, channel, ring.contexts, "weft.ko: ring");
  if (made) return made;
  if (made.error().sys_errno == ENOMEM) {
    made.error().message =
        "weft.ko: no memory for a ring of " + std::to_string((1U << channel.slot_shift) / 1024) +
        " KiB per CPU: all kernel rings of a node together take at most a quarter of its memory: "
        "make the buffers smaller, or end other recordings of kernel events";
    return made;
  }
  if (const std::string refused = WhichAreRefused(session, ring.contexts); !refused.empty())
    made.error().message = "weft.ko: " + refused;
  return made;
}

Status ModuleBackend::AddEvent(const UniqueFd& ring, const Event& event) const {
  weft_kernel_event to{};
  to.kind = event.kind;
  if (!event.name.empty()) {
    to.name = Address(event.name.c_str());
    to.name_size = static_cast<uint32_t>(event.name.size() + 1);
  }
  to.offset = event.offset;
  if (event.file) to.file = event.file->get();
  to.semaphore = event.semaphore;
  to.twin = event.twin;
  to.number = event.number;
  to.table = event.table;
  if (!event.known.empty()) to.known = Address(event.known.data());
  to.subjects = event.subjects;
  to.description = Address(event.description.data());
  to.description_size = static_cast<uint32_t>(event.description.size());
  const std::vector<weft_fetch_op> program = FetchProgram(event.fetch);
  to.fetch = Address(program.data());
  to.fetch_count = static_cast<uint32_t>(program.size());
  if (!event.filter.empty()) {
    to.filter = Address(event.filter.data());
    to.filter_size = static_cast<uint32_t>(event.filter.size());
  }
  to.flags = WEFT_KERNEL_EVENT_STAYS;
  auto made = CallModule(ring, WEFT_IOCTL_EVENT, to, "weft.ko: " + PlaceOf(event));
  if (!made) return RefuseEvent(event, std::move(made.error()));
  return {};
}

}  // namespace weft::kernel
