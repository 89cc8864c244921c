// SPDX-License-Identifier: GPL-2.0-only
// Contexts whose values are words of a task, of its namespaces and of where it runs: each against
// what the task knows of itself by other ways (system calls, /proc), as users, in namespaces and
// cgroups of its own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "kmod/tests/child.h"
#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_code.h"

namespace weft::kmod {
namespace {

constexpr uint32_t kFirstUid = 100'000;
constexpr uint32_t kFirstGid = 200'000;
constexpr int64_t kOverflowId = 65534;  // an id that a namespace has no number for

// Values of contexts by their names, as text.
using Values = std::map<std::string, std::string>;
using Ids = std::vector<uint16_t>;

// Contexts of a task and of the CPU that it runs on, as many as one list may have.
const Ids kOfTask = {
    WEFT_CONTEXT_VPID,   WEFT_CONTEXT_VTID,    WEFT_CONTEXT_PROCNAME,  WEFT_CONTEXT_CPU_ID,
    WEFT_CONTEXT_VUID,   WEFT_CONTEXT_VEUID,   WEFT_CONTEXT_VSUID,     WEFT_CONTEXT_VGID,
    WEFT_CONTEXT_VEGID,  WEFT_CONTEXT_VSGID,   WEFT_CONTEXT_CGROUP_NS, WEFT_CONTEXT_IPC_NS,
    WEFT_CONTEXT_MNT_NS, WEFT_CONTEXT_NET_NS,  WEFT_CONTEXT_PID_NS,    WEFT_CONTEXT_USER_NS,
    WEFT_CONTEXT_UTS_NS, WEFT_CONTEXT_TIME_NS, WEFT_CONTEXT_PID,       WEFT_CONTEXT_TID,
    WEFT_CONTEXT_PPID,   WEFT_CONTEXT_VPPID,   WEFT_CONTEXT_PRIO,      WEFT_CONTEXT_NICE,
    WEFT_CONTEXT_UID,    WEFT_CONTEXT_EUID,    WEFT_CONTEXT_SUID,      WEFT_CONTEXT_GID,
    WEFT_CONTEXT_EGID,   WEFT_CONTEXT_SGID,    WEFT_CONTEXT_CGROUP_ID, WEFT_CONTEXT_HOSTNAME,
};
// Contexts of the code that runs.
const Ids kOfCode = {WEFT_CONTEXT_TID, WEFT_CONTEXT_INTERRUPTIBLE, WEFT_CONTEXT_PREEMPTIBLE,
                     WEFT_CONTEXT_NEED_RESCHEDULE, WEFT_CONTEXT_MIGRATABLE};
// Contexts that context_test.cc tests.
const Ids kElsewhere = {WEFT_CONTEXT_CALLSTACK_KERNEL, WEFT_CONTEXT_CALLSTACK_USER,
                        WEFT_CONTEXT_PERF_CPU};

// A session with a ring that has these contexts. Reads its records.
class Watch {
 public:
  explicit Watch(const Ids& ids) : ids_(ids) {
    ring_ = OpenRing(session_.get(), Specs(ids));
    EXPECT_TRUE(ring_);
  }

  // Adds an event and returns the id of its records.
  uint16_t Add(Event event) {
    events_.emplace_back(event.AddTo(ring_.get()));
    EXPECT_TRUE(events_.back());
    return static_cast<uint16_t>(event.raw().event_id);
  }
  void Start() const { ASSERT_EQ(Switch(session_.get(), 1), 0); }
  [[nodiscard]] int ring() const { return ring_.get(); }

  // Ends recording and returns the values that were recorded for `tid` (the node's number), by
  // event.
  [[nodiscard]] std::multimap<uint16_t, Values> Of(const std::string& tid) const {
    EXPECT_EQ(Switch(session_.get(), 0), 0);
    std::multimap<uint16_t, Values> all;
    RingView view(ring_.get());
    view.DrainAll([&](uint32_t, const SeenRecord& record) {
      Values values = Decode(record.payload);
      if (values["tid"] == tid) all.emplace(record.event, std::move(values));
    });
    EXPECT_EQ(view.problem(), "");
    EXPECT_EQ(view.Discarded(), 0U);
    return all;
  }

 private:
  [[nodiscard]] Values Decode(std::span<const uint8_t> bytes) const {
    Values values;
    for (const uint16_t id : ids_) {
      const weft_context_info& info = *weft_context_by_id(id);
      if (info.size > bytes.size()) {
        ADD_FAILURE() << info.name << " is not in the record";
        return values;
      }
      values[info.name] = Show(info, bytes.first(info.size));
      bytes = bytes.subspan(info.size);
    }
    return values;
  }

  static std::string Show(const weft_context_info& info, std::span<const uint8_t> bytes) {
    if (info.type == WEFT_CONTEXT_TEXT) {
      const auto* text = reinterpret_cast<const char*>(bytes.data());
      return {text, ::strnlen(text, bytes.size())};
    }
    uint64_t bits = 0;
    std::memcpy(&bits, bytes.data(), bytes.size());
    if (info.type == WEFT_CONTEXT_INT) return std::to_string(static_cast<int32_t>(bits));
    return std::to_string(bits);
  }

  UniqueFd device_ = OpenDevice();
  UniqueFd session_ = OpenSession(device_.get());
  UniqueFd ring_;
  std::vector<UniqueFd> events_;
  Ids ids_;
};

Event Getppid() {
  Event event = Event::SyscallEntry(SYS_getppid);
  event.Field("number", 6);
  return event;
}

std::string LinkOf(const char* path) {
  std::array<char, PATH_MAX> target{};
  return ::readlink(path, target.data(), target.size() - 1) > 0 ? target.data() : "";
}

std::string StatusLine(const std::string& key) {
  std::ifstream file("/proc/thread-self/status");
  for (std::string name, rest; file >> name && std::getline(file, rest);) {
    std::string value;
    std::istringstream(rest) >> value;
    if (name == key + ":") return value;
  }
  return "";
}

// Behind the name in parentheses, /proc/.../stat has its third field.
std::string StatField(int number) {
  std::ifstream file("/proc/thread-self/stat");
  std::string line, word;
  std::getline(file, line);
  std::istringstream words(line.substr(line.rfind(')') + 1));
  for (int i = 3; i <= number; i++) words >> word;
  return word;
}

void Namespaces(Values& values) {
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts", "time"}) {
    struct stat place{};
    ::stat((std::string("/proc/thread-self/ns/") + name).c_str(), &place);
    values[std::string(name) + "_ns"] = std::to_string(place.st_ino);
  }
}

// Adds the user and group ids of the namespace and those of the node.
void Users(Values& values, uint32_t first_uid, uint32_t first_gid) {
  std::array<uid_t, 3> uid{};
  std::array<gid_t, 3> gid{};
  ::getresuid(&uid[0], &uid[1], &uid[2]);
  ::getresgid(&gid[0], &gid[1], &gid[2]);
  for (size_t i = 0; i < 3; i++) {
    const std::string kind = std::array{"", "e", "s"}[i];
    values["v" + kind + "uid"] = std::to_string(uid[i]);
    values["v" + kind + "gid"] = std::to_string(gid[i]);
    values[kind + "uid"] = std::to_string(uid[i] + first_uid);
    values[kind + "gid"] = std::to_string(gid[i] + first_gid);
  }
}

// Returns what the calling thread knows of itself. /proc is the node's, and so are its numbers.
Values OfItself() {
  Values values;
  Namespaces(values);
  Users(values, 0, 0);
  utsname names{};
  ::uname(&names);
  std::array<char, 16> procname{};
  ::prctl(PR_GET_NAME, procname.data());
  struct stat cgroup{};
  std::string where;
  std::ifstream list("/proc/thread-self/cgroup");
  while (std::getline(list, where) && !where.starts_with("0::")) {
  }
  ::stat(("/sys/fs/cgroup" + where.substr(3)).c_str(), &cgroup);
  values["cgroup_id"] = std::to_string(cgroup.st_ino);
  values["vpid"] = std::to_string(::getpid());
  values["vtid"] = std::to_string(::gettid());
  values["vppid"] = std::to_string(::getppid());
  values["pid"] = LinkOf("/proc/self");
  const std::string thread = LinkOf("/proc/thread-self");
  values["tid"] = thread.substr(thread.rfind('/') + 1);
  values["ppid"] = StatusLine("PPid");
  values["prio"] = StatField(18);
  values["nice"] = std::to_string(::getpriority(PRIO_PROCESS, 0));
  values["procname"] = procname.data();
  values["hostname"] = names.nodename;
  values["cpu_id"] = std::to_string(::sched_getcpu());
  return values;
}

bool PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

// A child's values reach the test through a pipe, a line each.
class Teller {
 public:
  Teller() { EXPECT_EQ(::pipe2(ends_.data(), O_CLOEXEC), 0); }
  ~Teller() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;

  // Called in the child: makes the event and sends the child's values to the parent. `change`
  // corrects values that the child cannot see.
  [[nodiscard]] bool Tell(const std::function<void(Values&)>& change = {}) const {
    ::syscall(SYS_getppid);
    Values values = OfItself();
    if (change) change(values);
    std::string text;
    for (const auto& [name, value] : values) text.append(name).append(" ").append(value) += '\n';
    return ::write(ends_[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  }
  Values Told() {
    ::close(ends_[1]);
    ends_[1] = -1;
    std::string text(65536, ' ');
    const ssize_t got = ::read(ends_[0], text.data(), text.size());
    std::istringstream lines(text.substr(0, got > 0 ? static_cast<size_t>(got) : 0));
    Values values;
    for (std::string name, value; lines >> name && std::getline(lines >> std::ws, value);)
      values[name] = value;
    return values;
  }

 private:
  std::array<int, 2> ends_{};
};

// Runs `body` in a child, which sends its values, and compares them with the recorded ones. Returns
// the child's values.
Values Expect(const std::function<bool(const Teller&)>& body) {
  Watch watch(kOfTask);
  watch.Add(Getppid());
  watch.Start();
  Teller teller;
  EXPECT_TRUE(InChild([&] { return body(teller); }));
  Values told = teller.Told();
  const auto records = watch.Of(told["tid"]);
  EXPECT_FALSE(records.empty());
  for (const auto& [event, values] : records) EXPECT_EQ(values, told);
  return told;
}

// Returns the names in `names` that differ.
std::set<std::string> Differs(Values a, Values b, const std::vector<std::string>& names) {
  std::set<std::string> differing;
  for (const std::string& name : names)
    if (a[name] != b[name]) differing.insert(name);
  return differing;
}

TEST(ContextValueTest, EachContextThatTheModuleOffersIsInOneOfTheseTests) {
  const UniqueFd device = OpenDevice();
  const UniqueFd session = OpenSession(device.get());
  std::set<uint16_t> tested(kOfTask.begin(), kOfTask.end());
  tested.insert(kOfCode.begin(), kOfCode.end());
  tested.insert(kElsewhere.begin(), kElsewhere.end());
  uint32_t count = 0;
  const weft_context_info* table = weft_context_table(&count);
  for (uint32_t i = 0; i < count; i++) {
    weft_context_spec spec{.id = table[i].id};
    if (spec.id == WEFT_CONTEXT_PERF_CPU) spec.perf_type = 1;
    weft_kernel_channel channel = RightChannel();
    channel.context_count = 1;
    channel.contexts = reinterpret_cast<uintptr_t>(&spec);
    EXPECT_EQ(OpenRing(session.get(), channel).valid(), tested.contains(spec.id)) << table[i].name;
  }
}

TEST(ContextValueTest, ValuesAreThoseThatTheProcessSees) {
  for (int cpu = 0; cpu < Cpus(); cpu++) {
    const Values told = Expect([cpu](const Teller& teller) {
      return PinTo(cpu) && ::prctl(PR_SET_NAME, "some name's") == 0 && teller.Tell();
    });
    EXPECT_EQ(told.at("cpu_id"), std::to_string(cpu));
    EXPECT_EQ(told.at("ppid"), std::to_string(::getpid()));
    EXPECT_EQ(told.at("vppid"), told.at("ppid"));
  }
}

TEST(ContextValueTest, AThreadHasItsOwnNumberAndPriority) {
  Values told = Expect([](const Teller& teller) {
    bool done = false;
    std::thread([&] {
      done = ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), 7) == 0 && PinTo(0) &&
             teller.Tell();
    }).join();
    return done;
  });
  EXPECT_NE(told["tid"], told["pid"]);
  EXPECT_EQ(told["nice"], "7");
  EXPECT_EQ(told["prio"], "27");
  told = Expect([](const Teller& teller) {
    const sched_param rank{.sched_priority = 10};
    return ::setpriority(PRIO_PROCESS, 0, -5) == 0 && PinTo(0) &&
           ::sched_setscheduler(0, SCHED_FIFO, &rank) == 0 && teller.Tell();
  });
  EXPECT_EQ(told["nice"], "-5");
  EXPECT_EQ(told["prio"], "-11");
}

TEST(ContextValueTest, UsersAndGroupsOfAllKinds) {
  const auto become = [] {
    return ::setresgid(4, 5, 6) == 0 && ::setresuid(1, 2, 3) == 0 && PinTo(0);
  };
  Values told = Expect([&](const Teller& teller) { return become() && teller.Tell(); });
  EXPECT_EQ(told["suid"], "3");
  EXPECT_EQ(told["vegid"], "5");
  told = Expect([&](const Teller& teller) {
    return InUserNamespace(kFirstUid, kFirstGid, [&] {
      return become() && teller.Tell([](Values& values) { Users(values, kFirstUid, kFirstGid); });
    });
  });
  EXPECT_EQ(told["euid"], "100002");
  EXPECT_EQ(told["veuid"], "2");
  EXPECT_EQ(told["sgid"], "200006");
  EXPECT_EQ(told["vsgid"], "6");
}

TEST(ContextValueTest, AnIdWithoutANumberInTheNamespaceIsTheOverflowId) {
  Values told = Expect([](const Teller& teller) {
    return ::setresgid(4, 4, 4) == 0 && PinTo(0) && ::unshare(CLONE_NEWUSER) == 0 &&
           teller.Tell([](Values& values) {
             for (const char* kind : {"uid", "euid", "suid"}) values[kind] = "0";
             for (const char* kind : {"gid", "egid", "sgid"}) values[kind] = "4";
           });
  });
  EXPECT_EQ(told["vuid"], std::to_string(kOverflowId));
  EXPECT_EQ(told["vsgid"], std::to_string(kOverflowId));
}

// 0 where the kernel has no such namespaces: the context is 0 then.
int TimeNamespace() { return ::access("/proc/self/ns/time", F_OK) == 0 ? CLONE_NEWTIME : 0; }

TEST(ContextValueTest, NamespacesBeforeAndAfterUnshare) {
  const Values before = Expect([](const Teller& teller) { return PinTo(0) && teller.Tell(); });
  // unshare moves only children into new time and pid namespaces.
  const Values after = Expect([](const Teller& teller) {
    return PinTo(0) &&
           ::unshare(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUSER |
                     CLONE_NEWUTS) == 0 &&
           teller.Tell([](Values& values) {
             for (const char* kind : {"uid", "euid", "suid", "gid", "egid", "sgid"})
               values[kind] = "0";
           });
  });
  EXPECT_EQ(
      Differs(
          before, after,
          {"cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "pid_ns", "user_ns", "uts_ns", "time_ns"}),
      (std::set<std::string>{"cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "user_ns", "uts_ns"}));
  const Values parent = Expect([](const Teller& teller) {
    return PinTo(0) && ::unshare(CLONE_NEWPID | TimeNamespace()) == 0 && teller.Tell();
  });
  EXPECT_EQ(Differs(before, parent, {"pid_ns", "time_ns"}), std::set<std::string>{});
  const Values child = Expect([](const Teller& teller) {
    return PinTo(0) && ::unshare(CLONE_NEWPID | TimeNamespace()) == 0 &&
           InChild([&] { return teller.Tell(); });
  });
  std::set<std::string> of_children{"pid_ns"};
  if (TimeNamespace() != 0) of_children.insert("time_ns");
  EXPECT_EQ(Differs(before, child, {"cgroup_ns", "mnt_ns", "pid_ns", "time_ns"}), of_children);
}

TEST(ContextValueTest, NumbersInANamespaceOfProcesses) {
  Values told = Expect([](const Teller& teller) {
    return PinTo(0) && ::unshare(CLONE_NEWPID) == 0 && InChild([&] { return teller.Tell(); });
  });
  EXPECT_EQ(told["vpid"], "1");
  EXPECT_EQ(told["vtid"], "1");
  EXPECT_EQ(told["vppid"], "0") << "its parent is outside";
  EXPECT_NE(told["pid"], "1");
  told = Expect([](const Teller& teller) {
    return PinTo(0) && ::unshare(CLONE_NEWPID) == 0 &&
           InChild([&] { return InChild([&] { return teller.Tell(); }); });
  });
  EXPECT_EQ(told["vpid"], "2");
  EXPECT_EQ(told["vppid"], "1");
  EXPECT_NE(told["ppid"], "1");
}

TEST(ContextValueTest, HostnameIsThatOfTheTasksNamespace) {
  const Values told = Expect([](const Teller& teller) {
    return PinTo(0) && ::unshare(CLONE_NEWUTS) == 0 && ::sethostname("of-a-container", 14) == 0 &&
           teller.Tell();
  });
  EXPECT_EQ(told.at("hostname"), "of-a-container");
  utsname names{};
  ::uname(&names);
  EXPECT_STRNE(names.nodename, "of-a-container");
}

TEST(ContextValueTest, CgroupIdIsThatOfTheTasksFolder) {
  const Cgroup cgroup("contexts");
  ASSERT_NE(cgroup.id(), 0U);
  const Values told = Expect(
      [&](const Teller& teller) { return cgroup.Take(::getpid()) && PinTo(0) && teller.Tell(); });
  EXPECT_EQ(told.at("cgroup_id"), std::to_string(cgroup.id()));
}

// Lets the kernel run a socket filter that only returns `times` times: the thread is not migratable
// meanwhile.
bool RunFilter(uint32_t times) {
  std::array<bpf_insn, 2> program{};
  program[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  program[1].code = BPF_JMP | BPF_EXIT;
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  load.insn_cnt = static_cast<uint32_t>(program.size());
  load.insns = reinterpret_cast<uintptr_t>(program.data());
  load.license = reinterpret_cast<uintptr_t>("GPL");
  const int fd = static_cast<int>(::syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof(load)));
  const std::array<uint8_t, 64> packet{};
  bpf_attr run{};
  run.test.prog_fd = static_cast<uint32_t>(fd);
  run.test.repeat = times;
  run.test.data_in = reinterpret_cast<uintptr_t>(packet.data());
  run.test.data_size_in = packet.size();
  const bool done = fd >= 0 && ::syscall(SYS_bpf, BPF_PROG_TEST_RUN, &run, sizeof(run)) == 0;
  ::close(fd);
  return done;
}

// Does this kernel count preemption? If not, the context is -1.
bool CountsPreemption() {
  utsname names{};
  ::uname(&names);
  return std::string(names.version).find("PREEMPT") != std::string::npos;
}

// Returns the values that a context had in the records of one event of one thread.
std::set<std::string> Seen(const std::multimap<uint16_t, Values>& records, uint16_t event,
                           const std::string& name) {
  std::set<std::string> values;
  const auto [begin, end] = records.equal_range(event);
  for (auto it = begin; it != end; ++it) values.insert(it->second.at(name));
  return values;
}

using Strings = std::set<std::string>;

TEST(ContextValueTest, InterruptibleAndPreemptibleInSystemCallsAndKprobes) {
  Watch watch(kOfCode);
  const uint16_t call = watch.Add(Getppid());
  Event of_function = Event::Kprobe("__x64_sys_getppid");
  const uint16_t probe = watch.Add(std::move(of_function));
  watch.Start();
  for (int i = 0; i < 100; i++) ::syscall(SYS_getppid);
  const auto records = watch.Of(std::to_string(::gettid()));
  ASSERT_EQ(records.count(call), 100U);
  ASSERT_EQ(records.count(probe), 100U);
  EXPECT_EQ(Seen(records, call, "interruptible"), Strings{"1"});
  EXPECT_EQ(Seen(records, call, "preemptible"), Strings{CountsPreemption() ? "1" : "-1"});
  EXPECT_EQ(Seen(records, call, "migratable"), Strings{"1"});
  // The end of its time slice may come in one call or another, not in all.
  EXPECT_TRUE(Seen(records, call, "need_reschedule").contains("0"));
  EXPECT_EQ(Seen(records, probe, "interruptible"), Strings{"-1"});
  EXPECT_EQ(Seen(records, probe, "preemptible"), Strings{"-1"});
}

TEST(ContextValueTest, ContextsInAnInterruptAreNotInterruptibleAndKeepTheTask) {
  for (const bool pinned_by_kernel : {false, true}) {
    Watch watch(kOfCode);
    const uint16_t tick = watch.Add(Event::Tracepoint("hrtimer_expire_entry"));
    watch.Start();
    const RingView view(watch.ring());
    volatile uint64_t busy = 0;
    while (view.Committed() < 100) {
      if (pinned_by_kernel)
        ASSERT_TRUE(RunFilter(1'000'000));
      else
        busy = busy + 1;
    }
    const auto records = watch.Of(std::to_string(::gettid()));
    ASSERT_GT(records.count(tick), 0U);
    EXPECT_EQ(Seen(records, tick, "interruptible"), Strings{"0"});
    EXPECT_EQ(Seen(records, tick, "preemptible"), Strings{CountsPreemption() ? "0" : "-1"});
    EXPECT_EQ(Seen(records, tick, "migratable").contains("0"), pinned_by_kernel);
  }
}

// The thread of higher priority is woken on the CPU of the thread that wakes it.
TEST(ContextValueTest, ATaskThatWakesOneOfHigherPriorityNeedsRescheduling) {
  Watch watch(kOfCode);
  const uint16_t wakeup = watch.Add(Event::Tracepoint("sched_wakeup"));
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  std::atomic<int> woken = 0;
  std::string tid;
  std::thread important([&] {
    const sched_param rank{.sched_priority = 10};
    EXPECT_TRUE(PinTo(0));
    EXPECT_EQ(::pthread_setschedparam(::pthread_self(), SCHED_FIFO, &rank), 0);
    for (char byte = 0; ::read(pipe[0], &byte, 1) == 1;) woken++;
  });
  std::thread waker([&] {
    EXPECT_TRUE(PinTo(0));
    tid = std::to_string(::gettid());
    watch.Start();
    for (int i = 0; i < 20; i++) {
      const int before = woken;
      EXPECT_EQ(::write(pipe[1], "", 1), 1);
      while (woken == before) {
      }
    }
    ::close(pipe[1]);
  });
  waker.join();
  important.join();
  ::close(pipe[0]);
  const auto records = watch.Of(tid);
  ASSERT_GE(records.count(wakeup), 20U);
  EXPECT_TRUE(Seen(records, wakeup, "need_reschedule").contains("1"));
  EXPECT_EQ(Seen(records, wakeup, "interruptible"), Strings{"0"});
}

}  // namespace
}  // namespace weft::kmod
