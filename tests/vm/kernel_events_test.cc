// SPDX-License-Identifier: Apache-2.0
// What the agent makes of a kernel's types (node-agent/kernel), given to that kernel: weft.ko takes every
// event, nothing breaks while all of them are recorded, and values are those that this test knows.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <memory>
#include <string_view>

#include "node-agent/kernel/probes.h"
#include "node-agent/kernel/symbols.h"
#include "node-agent/kernel/syscalls.h"
#include "node-agent/kernel/tracepoint.h"
#include "tests/vm/module.h"

namespace weft::vm {
namespace {

using kernel::Catalogue;
using kernel::ResolveTracepoint;

constexpr const char* kTracefs = "/sys/kernel/tracing";
constexpr kernel::ResolveOptions kWide{.cluster_wide = true};

class KernelEventsTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    btf_ = new kernel::Btf(kernel::Btf::Load("/sys/kernel/btf/vmlinux").value());
    ::mount("none", kTracefs, "tracefs", 0, nullptr);
    calls_ =
        new kernel::Syscalls(kernel::Syscalls::Load(*btf_, Catalogue::BuiltIn(), kTracefs).value());
  }

  void AddTracepoint(const std::string& name) {
    EXPECT_EQ(module_.Add(ResolveTracepoint(*btf_, Catalogue::BuiltIn(), name, kWide).value()), 0)
        << name;
  }
  void AddSyscall(const std::string& name) {
    const kernel::Syscall& call = *calls_->Match(name, {"compat_*"}).front();
    EXPECT_EQ(module_.Add(calls_->ResolveEntry(call, 64).value()), 0) << name;
    EXPECT_EQ(module_.Add(calls_->ResolveExit(call, 64).value()), 0) << name;
  }

  // The fields of the one event of that name in which all of `known` are so.
  static std::map<std::string, std::string> Find(const std::vector<SeenEvent>& events,
                                                 const std::string& name,
                                                 const std::map<std::string, std::string>& known) {
    std::map<std::string, std::string> found;
    for (const SeenEvent& event : events) {
      if (event.name != name) continue;
      bool fits = true;
      for (const auto& [field, value] : known)
        fits = fits && event.fields.contains(field) && event.fields.at(field) == value;
      if (fits) found = event.fields;
    }
    EXPECT_FALSE(found.empty()) << "no such " << name;
    return found;
  }

  static kernel::Btf* btf_;
  static kernel::Syscalls* calls_;
  Module module_;
};

kernel::Btf* KernelEventsTest::btf_ = nullptr;
kernel::Syscalls* KernelEventsTest::calls_ = nullptr;

pid_t RunChild(const char* program) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program, program, nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return child;
}

// Some of everything: processes, files, signals, timers, sockets.
void Work() {
  RunChild("/bin/true");
  const int file = ::open("/tmp/weft-events", O_CREAT | O_RDWR | O_TRUNC, 0600);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(::write(file, "some bytes", 10), 10);
  ::fsync(file);
  ::close(file);
  ::unlink("/tmp/weft-events");
  ::usleep(50'000);
  const int server = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof(address);
  ::bind(server, reinterpret_cast<sockaddr*>(&address), size);
  ::listen(server, 1);
  ::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(client, reinterpret_cast<sockaddr*>(&address), size) == 0) {
    const int peer = ::accept(server, nullptr, nullptr);
    EXPECT_EQ(::send(client, "x", 1, 0), 1);
    ::close(peer);
  }
  ::close(client);
  ::close(server);
}

TEST_F(KernelEventsTest, EveryTracepointIsTakenAndRecorded) {
  size_t added = 0;
  for (const std::string& name : kernel::TracepointNames(*btf_)) {
    const auto resolved = ResolveTracepoint(*btf_, Catalogue::BuiltIn(), name, kWide);
    if (!resolved) continue;
    const int result = module_.Add(*resolved);
    EXPECT_EQ(result, 0) << name;
    added += result == 0 ? 1 : 0;
  }
  module_.Switch(true);
  Work();
  module_.Switch(false);
  std::map<std::string, size_t> counts;
  for (const SeenEvent& event : module_.Read()) counts[event.name]++;
  std::cout << added << " tracepoints, " << counts.size() << " of them recorded:";
  for (const auto& [name, count] : counts) std::cout << " " << name << "=" << count;
  std::cout << "\n";
  utsname kernel{};
  ASSERT_EQ(uname(&kernel), 0);
  // The one that kmod/qemu builds itself (debug.config) is small.
  EXPECT_GT(added, std::string_view(kernel.release).ends_with("-debug") ? 400u : 500u);
  EXPECT_GT(counts.size(), 60u);
}

TEST_F(KernelEventsTest, EverySystemCallIsTakenAndRecorded) {
  for (const kernel::Syscall& call : calls_->all()) {
    EXPECT_EQ(module_.Add(calls_->ResolveEntry(call, 64).value()), 0) << call.name;
    EXPECT_EQ(module_.Add(calls_->ResolveExit(call, 64).value()), 0) << call.name;
  }
  module_.Switch(true);
  Work();
  module_.Switch(false);
  EXPECT_GT(module_.Read().size(), 100u);
}

TEST_F(KernelEventsTest, TasksHaveTheirNamesAndNumbers) {
  for (const char* name : {"sched_switch", "sched_process_fork", "sched_process_exec",
                           "sched_process_exit", "signal_generate", "task_rename"})
    AddTracepoint(name);
  module_.Switch(true);
  const pid_t child = RunChild("/bin/true");
  ::signal(SIGUSR1, SIG_IGN);
  ::kill(::getpid(), SIGUSR1);
  module_.Switch(false);
  const auto events = module_.Read();
  const std::string tid = std::to_string(child);
  const std::string self = std::to_string(::getpid());
  const auto fork = Find(events, "sched_process_fork", {{"child_tid", tid}});
  EXPECT_EQ(fork.at("parent_tid"), self);
  EXPECT_EQ(fork.at("parent_comm"), "kernel_events_t");
  EXPECT_EQ(Find(events, "sched_process_exec", {{"tid", tid}}).at("filename"), "/bin/true");
  EXPECT_EQ(Find(events, "task_rename", {{"tid", tid}, {"newcomm", "true"}}).at("oldcomm"),
            "kernel_events_t");
  const auto exit = Find(events, "sched_process_exit", {{"tid", tid}});
  EXPECT_EQ(exit.at("comm"), "true");
  EXPECT_EQ(exit.at("prio"), "20");
  EXPECT_EQ(Find(events, "sched_switch", {{"next_tid", tid}}).at("next_prio"), "20");
  const auto sent = Find(events, "signal_generate", {{"sig", "10"}});
  EXPECT_EQ(sent.at("pid"), self);
  EXPECT_EQ(sent.at("comm"), "kernel_events_t");
}

TEST_F(KernelEventsTest, SystemCallsHaveTheirArguments) {
  for (const char* name : {"openat", "read", "write", "connect", "lseek", "newfstatat", "readlink"})
    AddSyscall(name);
  module_.Switch(true);
  const int file = ::openat(AT_FDCWD, "/proc/self/comm", O_RDONLY);
  char comm[32] = {};
  const ssize_t got = ::read(file, comm, sizeof(comm));
  ::lseek(file, 3, SEEK_SET);
  const int target = ::socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address{
      .sin_family = AF_INET, .sin_port = htons(7777), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  ::connect(target, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  EXPECT_EQ(::write(-1, "abcd", 4), -1);
  EXPECT_EQ(::read(-1, comm, sizeof(comm)), -1);
  module_.Switch(false);
  ::close(target);
  ::close(file);
  const auto events = module_.Read();
  const std::string fd = std::to_string(file);
  const auto open = Find(events, "syscall_entry_openat", {{"filename", "/proc/self/comm"}});
  EXPECT_EQ(open.at("dfd"), "-100");
  Find(events, "syscall_exit_openat", {{"ret", fd}});
  EXPECT_EQ(Find(events, "syscall_entry_read", {{"fd", fd}}).at("count"), "32");
  EXPECT_EQ(Find(events, "syscall_exit_read", {{"ret", std::to_string(got)}}).at("buf_data"),
            "6b65726e656c5f6576656e74735f740a")
      << "kernel_events_t";
  EXPECT_EQ(Find(events, "syscall_exit_read", {{"ret", "-9"}}).at("buf_data"), "");
  EXPECT_EQ(Find(events, "syscall_entry_write", {{"fd", "4294967295"}}).at("buf_data"), "61626364");
  EXPECT_EQ(Find(events, "syscall_entry_lseek", {{"fd", fd}}).at("offset"), "3");
  const auto connect = Find(events, "syscall_entry_connect", {{"dport", "7777"}});
  EXPECT_EQ(connect.at("family"), "2");
  EXPECT_EQ(connect.at("v4addr"), "7f000001");
}

TEST_F(KernelEventsTest, FunctionsHaveTheirParameters) {
  const auto symbols = kernel::KernelSymbols::Load().value();
  const kernel::ProbePlace entry{.event = "write_in", .function = "vfs_write"};
  const kernel::ProbePlace exit{.event = "write_out", .function = "vfs_write"};
  const Catalogue& catalogue = Catalogue::BuiltIn();
  ASSERT_EQ(module_.Add(kernel::ResolveKprobe(*btf_, catalogue, symbols, entry, kWide).value()), 0);
  ASSERT_EQ(module_.Add(kernel::ResolveKretprobe(*btf_, catalogue, symbols, exit, kWide).value()),
            0);
  const int null = ::open("/dev/null", O_WRONLY);
  const std::string odd(4711, 'x');
  module_.Switch(true);
  EXPECT_EQ(::write(null, odd.data(), odd.size()), 4711);
  module_.Switch(false);
  ::close(null);
  const auto events = module_.Read();
  EXPECT_EQ(Find(events, "write_in", {{"count", "4711"}}).at("buf"),
            std::to_string(reinterpret_cast<uint64_t>(odd.data())));
  const auto out = Find(events, "write_out", {{"ret", "4711"}});
  EXPECT_NE(out.at("duration"), "0");
}

}  // namespace
}  // namespace weft::vm
