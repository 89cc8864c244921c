// SPDX-License-Identifier: Apache-2.0
// kmod_bench CASE CALLS, in a guest whose virtual time counts instructions (./dev bench kmod): what
// a call of getppid costs while weft.ko does what CASE says; "none": nothing, or what was started
// outside. Prints the median of batches in ns a call, that is in instructions, the number of calls,
// and how many records weft.ko made and discarded.
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kmod/tests/device.h"
#include "kmod/tests/ring_view.h"
#include "lib/event/filter_compiler.h"

namespace {

using weft::UniqueFd;
using weft::kmod::Event;

constexpr size_t kBatches = 11;
constexpr uint64_t kWarmUp = 1000;
constexpr const char* kFunction = "__x64_sys_getppid";
constexpr int kManyPods = 200;

[[noreturn]] void Give(const char* what) {
  std::perror(what);
  std::exit(EXIT_FAILURE);
}

void Call(uint64_t times) {
  for (uint64_t i = 0; i < times; i++) ::syscall(SYS_getppid);
}

double MedianNs(uint64_t calls) {
  std::array<double, kBatches> batches{};
  Call(kWarmUp);
  for (double& ns : batches) {
    timespec start{};
    timespec end{};
    ::clock_gettime(CLOCK_MONOTONIC, &start);
    Call(calls);
    ::clock_gettime(CLOCK_MONOTONIC, &end);
    ns = (static_cast<double>(end.tv_sec - start.tv_sec) * 1e9 +
          static_cast<double>(end.tv_nsec - start.tv_nsec)) /
         static_cast<double>(calls);
  }
  std::ranges::sort(batches);
  return batches[kBatches / 2];
}

// Makes a cgroup; returns its id.
uint64_t MakeGroup(const std::string& name, bool enter) {
  const std::string path = "/sys/fs/cgroup/" + name;
  std::filesystem::create_directories(path);
  if (enter) std::ofstream(path + "/cgroup.procs") << ::getpid() << std::flush;
  struct stat place{};
  if (::stat(path.c_str(), &place) != 0) Give(path.c_str());
  return place.st_ino;
}

// A recording of weft.ko with a Trace's settings: a scope, overwrite mode, and 32 sub-buffers of 1
// MiB, which hold all records of a run.
class Tracing {
 public:
  explicit Tracing(const std::vector<uint16_t>& contexts, uint32_t flags = 0) {
    session_ = weft::kmod::OpenSession(device_.get(), flags);
    weft_kernel_channel channel = weft::kmod::RightChannel();
    channel.mode = WEFT_RING_OVERWRITE;
    channel.slot_shift = 25;
    channel.subbuf_shift = 20;
    channel.clock = Clock();
    std::vector<weft_context_spec> specs;
    for (const uint16_t id : contexts) {
      weft_context_spec spec{};
      spec.id = id;
      specs.push_back(spec);
    }
    channel.context_count = static_cast<uint32_t>(specs.size());
    channel.contexts = specs.empty() ? 0 : reinterpret_cast<uintptr_t>(specs.data());
    ring_ = weft::kmod::OpenRing(session_.get(), channel);
    if (!ring_) Give("channel");
    view_ = std::make_unique<weft::kmod::RingView>(ring_.get());
  }

  void Scope(uint64_t cgroup) {
    weft_kernel_scope scope{};
    scope.size = sizeof(scope);
    scope.change = WEFT_KERNEL_SCOPE_ADD;
    scope.cgroup = cgroup;
    if (weft::kmod::Control(session_.get(), WEFT_IOCTL_SCOPE, &scope) != 0) Give("scope");
  }

  void Add(Event event) {
    events_.emplace_back(event.AddTo(ring_.get()));
    if (!events_.back()) Give("event");
  }

  void Start() {
    if (weft::kmod::Switch(session_.get(), 1) != 0) Give("switch");
  }
  [[nodiscard]] uint64_t Records() const { return view_->Committed(); }
  // Returns the events that the ring discarded and those that the kernel missed.
  [[nodiscard]] uint64_t Lost() const {
    weft_kernel_session_status status{};
    status.size = sizeof(status);
    if (weft::kmod::Control(session_.get(), WEFT_IOCTL_SESSION_STATUS, &status) != 0)
      Give("status");
    return view_->Discarded() + status.missed_anywhere;
  }

  // Returns the node's clock: the TSC if the kernel trusts it.
  uint32_t Clock() {
    weft_kernel_abi abi{};
    abi.size = sizeof(abi);
    if (weft::kmod::Control(device_.get(), WEFT_IOCTL_ABI, &abi) != 0) Give("/dev/weft");
    return (abi.clocks & (1U << WEFT_CLOCK_TSC)) != 0 ? WEFT_CLOCK_TSC : WEFT_CLOCK_MONOTONIC;
  }

 private:
  UniqueFd device_ = weft::kmod::OpenDevice();
  UniqueFd session_, ring_;
  std::unique_ptr<weft::kmod::RingView> view_;
  std::vector<UniqueFd> events_;
};

using Made = std::unique_ptr<Tracing>;

Made Pair(uint32_t number, const std::vector<uint16_t>& contexts = {},
          const std::string& filter = "", uint32_t flags = 0) {
  auto tracing = std::make_unique<Tracing>(contexts, flags);
  std::vector<Event> pair;
  pair.push_back(Event::SyscallEntry(number));
  pair.push_back(Event::SyscallExit(number));
  pair.back().Field("ret", 7);
  for (Event& event : pair) {
    if (!filter.empty()) event.Filter(weft::CompileFilter(filter).value());
    tracing->Add(std::move(event));
  }
  return tracing;
}

Made InScope(Made tracing) {
  tracing->Scope(MakeGroup("bench-in", true));
  return tracing;
}

Made Foreign(int pods) {
  Made tracing = Pair(SYS_getppid);
  MakeGroup("bench-in", true);
  for (int i = 0; i < pods; i++) tracing->Scope(MakeGroup("bench-pod" + std::to_string(i), false));
  return tracing;
}

Made Probe(bool also_return) {
  auto tracing = std::make_unique<Tracing>(std::vector<uint16_t>{});
  Event entry = Event::Kprobe(kFunction);
  entry.Field("ip", 6);
  tracing->Add(std::move(entry));
  if (also_return) {
    Event exit = Event::Kretprobe(kFunction);
    exit.Field("ip", 6).Field("ret", 7);
    tracing->Add(std::move(exit));
  }
  return InScope(std::move(tracing));
}

const std::map<std::string, std::function<Made()>>& Cases() {
  static const std::map<std::string, std::function<Made()>> cases = {
      {"none", [] { return Made(); }},
      {"getppid", [] { return InScope(Pair(SYS_getppid)); }},
      {"everywhere", [] { return Pair(SYS_getppid, {}, "", WEFT_KERNEL_SESSION_ALL); }},
      {"contexts",
       [] {
         return InScope(Pair(SYS_getppid, {WEFT_CONTEXT_VPID, WEFT_CONTEXT_VTID,
                                           WEFT_CONTEXT_CGROUP_NS, WEFT_CONTEXT_PID_NS}));
       }},
      {"foreign", [] { return Foreign(1); }},
      {"foreign-many", [] { return Foreign(kManyPods); }},
      {"filter", [] { return InScope(Pair(SYS_getppid, {}, "$ctx.tid == 999999")); }},
      {"unselected", [] { return InScope(Pair(SYS_openat)); }},
      {"kprobe", [] { return Probe(false); }},
      {"kretprobe", [] { return Probe(true); }},
  };
  return cases;
}

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc == 3 ? Cases().find(argv[1]) : Cases().end();
  const uint64_t calls = argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 0;
  if (found == Cases().end() || calls == 0) {
    std::fprintf(stderr, "usage: %s CASE CALLS\n", argv[0]);
    return 2;
  }
  const Made tracing = found->second();
  if (tracing) tracing->Start();
  const double ns = MedianNs(calls);
  const unsigned long long made = calls * kBatches + kWarmUp;
  const unsigned long long records = tracing ? tracing->Records() : 0;
  const unsigned long long lost = tracing ? tracing->Lost() : 0;
  std::printf("%.2f %llu %llu %llu\n", ns, made, records, lost);
  return 0;
}
