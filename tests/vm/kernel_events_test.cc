// SPDX-License-Identifier: Apache-2.0
// What the agent makes of a kernel's types (node-agent/kernel), given to that kernel: weft.ko takes
// every event, nothing breaks while all of them are recorded, and values are those that this test
// knows.
#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <string_view>

#include "lib/abi/context.h"
#include "node-agent/kernel/module.h"
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
  // Adds a system call by its table's name; returns false if this kernel does not have it.
  bool AddSyscall(const std::string& name, bool compat = false) {
    for (const kernel::Syscall* call : calls_->Match(name, {})) {
      if (call->compat != compat || (call->table_name != name && call->name != name)) continue;
      EXPECT_EQ(module_.Add(calls_->ResolveEntry(*call, 64).value()), 0) << name;
      EXPECT_EQ(module_.Add(calls_->ResolveExit(*call, 64).value()), 0) << name;
      return true;
    }
    return false;
  }

  // Returns the fields of the one event of that name whose fields include all of `known`.
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

// Does something of every kind: processes, files, signals, timers, sockets.
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

TEST_F(KernelEventsTest, ContextsThatTheModuleLacksAreNamed) {
  const kernel::Backend& backend = kernel::ThisBackend();
  const auto session = backend.MakeSession(/*all=*/true);
  ASSERT_TRUE(session) << session.error().message;
  kernel::Ring ring{.subbuf_shift = 12, .subbufs_shift = 1};
  ring.contexts = {{.id = WEFT_CONTEXT_VPID},
                   {.id = WEFT_CONTEXT_IP},
                   {.id = WEFT_CONTEXT_PERF_CPU, .name = "none", .perf_type = UINT32_MAX}};
  const auto refused = backend.MakeRing(*session, ring);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  const std::string& message = refused.error().message;
  EXPECT_TRUE(
      message.starts_with("weft.ko: context \"ip\": Operation not supported; context "
                          "\"perf:cpu:none\": "))
      << message;
  ring.contexts.resize(1);
  EXPECT_TRUE(backend.MakeRing(*session, ring));
}

TEST_F(KernelEventsTest, ARingWithoutMemoryIsRefusedWithARemedy) {
  const kernel::Backend& backend = kernel::ThisBackend();
  const auto session = backend.MakeSession(/*all=*/true);
  ASSERT_TRUE(session);
  const auto refused = backend.MakeRing(
      *session, {.subbuf_shift = WEFT_RING_MAX_SLOT_SHIFT - 1, .subbufs_shift = 1});
  ASSERT_FALSE(refused);
  const std::string& why = refused.error().message;
  EXPECT_TRUE(why.starts_with("weft.ko: no memory for a ring of 2097152 KiB per CPU: ")) << why;
  EXPECT_NE(why.find("make the buffers smaller"), std::string::npos) << why;
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
  EXPECT_EQ(::openat(AT_FDCWD, "", O_RDONLY), -1);
  EXPECT_EQ(::openat(AT_FDCWD, reinterpret_cast<const char*>(8), O_RDONLY), -1);
  module_.Switch(false);
  ::close(target);
  ::close(file);
  const auto events = module_.Read();
  const std::string fd = std::to_string(file);
  const auto open = Find(events, "syscall_entry_openat", {{"filename", "/proc/self/comm"}});
  EXPECT_EQ(open.at("dfd"), "-100");
  Find(events, "syscall_entry_openat", {{"filename", ""}});
  Find(events, "syscall_entry_openat", {{"filename", "(fault)"}});
  Find(events, "syscall_exit_openat", {{"ret", fd}});
  EXPECT_EQ(Find(events, "syscall_entry_read", {{"fd", fd}}).at("count"), "32");
  EXPECT_EQ(Find(events, "syscall_exit_read", {{"ret", std::to_string(got)}}).at("buf_data"),
            "6b65726e656c5f6576656e74735f740a")
      << "kernel_events_t";
  EXPECT_EQ(Find(events, "syscall_exit_read", {{"ret", "-9"}}).at("buf_data"), "");
  EXPECT_EQ(Find(events, "syscall_entry_write", {{"fd", "-1"}}).at("buf_data"), "61626364");
  EXPECT_EQ(Find(events, "syscall_entry_lseek", {{"fd", fd}}).at("offset"), "3");
  const auto connect = Find(events, "syscall_entry_connect", {{"dport", "7777"}});
  EXPECT_EQ(connect.at("family"), "2");
  EXPECT_EQ(connect.at("v4addr"), "7f000001");
}

TEST_F(KernelEventsTest, SystemCallsHaveTheirOutputs) {
  for (const char* name : {"pipe2", "wait4", "poll", "sendmsg", "recvmsg"})
    EXPECT_TRUE(AddSyscall(name)) << name;
  int ends[2];
  int pair[2];
  char text[16] = {};
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = "/nowhere/at-all"};
  iovec parts[2] = {{const_cast<char*>("hello"), 5}, {const_cast<char*>(", you"), 5}};
  iovec place = {text, sizeof(text)};
  msghdr out{.msg_iov = parts, .msg_iovlen = 2};
  msghdr lost{.msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = parts, .msg_iovlen = 1};
  msghdr in{.msg_iov = &place, .msg_iovlen = 1};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  const int alone = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  module_.Switch(true);
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  pollfd ready{.fd = ends[1], .events = POLLOUT};
  ::poll(&ready, 1, 0);
  EXPECT_EQ(::sendmsg(pair[0], &out, MSG_DONTWAIT), 10);
  EXPECT_EQ(::recvmsg(pair[1], &in, 0), 10);
  EXPECT_EQ(::sendmsg(alone, &lost, 0), -1);
  const pid_t child = RunChild("/bin/false");
  module_.Switch(false);
  for (const int fd : {ends[0], ends[1], pair[0], pair[1], alone}) ::close(fd);
  const auto events = module_.Read();
  const auto pipe = Find(events, "syscall_exit_pipe2", {{"ret", "0"}});
  EXPECT_EQ(pipe.at("read_fd"), std::to_string(ends[0]));
  EXPECT_EQ(pipe.at("write_fd"), std::to_string(ends[1]));
  EXPECT_EQ(Find(events, "syscall_exit_poll", {{"ret", "1"}}).at("first_revents"), "4");
  const auto sent = Find(events, "syscall_entry_sendmsg", {{"fd", std::to_string(pair[0])}});
  EXPECT_EQ(sent.at("iovlen"), "2");
  EXPECT_EQ(sent.at("iov_len"), "05000000000000000500000000000000");
  EXPECT_EQ(sent.at("iov_data"), "68656c6c6f2c20796f75");
  EXPECT_EQ(Find(events, "syscall_exit_recvmsg", {{"ret", "10"}}).at("iov_data"),
            "68656c6c6f2c20796f75");
  const auto unix = Find(events, "syscall_entry_sendmsg", {{"fd", std::to_string(alone)}});
  EXPECT_EQ(unix.at("family"), "1");
  EXPECT_EQ(unix.at("path"), "/nowhere/at-all");
  EXPECT_EQ(Find(events, "syscall_exit_wait4", {{"ret", std::to_string(child)}}).at("status"),
            "256");
}

// Bytes at the end of readable memory.
class BeforeNothing {
 public:
  ~BeforeNothing() { ::munmap(pages_, 2 * kPage); }
  BeforeNothing() { ::mprotect(pages_ + kPage, kPage, PROT_NONE); }
  BeforeNothing(const BeforeNothing&) = delete;
  BeforeNothing& operator=(const BeforeNothing&) = delete;

  const sockaddr* Put(std::string_view bytes) {
    char* at = pages_ + kPage - bytes.size();
    std::memcpy(at, bytes.data(), bytes.size());
    return reinterpret_cast<const sockaddr*>(at);
  }

 private:
  static constexpr size_t kPage = 4096;
  char* pages_ = static_cast<char*>(
      ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

TEST_F(KernelEventsTest, SocketAddressesEndAtTheirLength) {
  using std::string_literals::operator""s;
  for (const char* name : {"bind", "connect", "getsockname", "sendto"})
    EXPECT_TRUE(AddSyscall(name)) << name;
  const std::string unix_family = "\1\0"s;
  const std::string abstract = unix_family + "\0weft\0events\0"s;
  const std::string longest = unix_family + "\0"s + std::string(107, 'l');
  const std::string inet = "\2\0\0\x50\x7f\0\0\1"s + std::string(8, '\0');
  BeforeNothing memory;
  std::array<int, 8> fds{};
  for (int& fd : fds) fd = ::socket(&fd < &fds[5] ? AF_UNIX : AF_INET, SOCK_DGRAM, 0);
  const auto connect = [&](int fd, const std::string& bytes) {
    ::connect(fd, memory.Put(bytes), static_cast<socklen_t>(bytes.size()));
  };
  sockaddr_un name{};
  std::ranges::fill(name.sun_path, 'y');
  sockaddr_un none = name;
  socklen_t size = sizeof(name), none_size = sizeof(none);
  module_.Switch(true);
  EXPECT_EQ(::bind(fds[0], memory.Put(abstract), static_cast<socklen_t>(abstract.size())), 0);
  EXPECT_EQ(::getsockname(fds[0], reinterpret_cast<sockaddr*>(&name), &size), 0);
  EXPECT_EQ(::getsockname(fds[1], reinterpret_cast<sockaddr*>(&none), &none_size), 0);
  connect(fds[1], unix_family + "/nowhere/at-all");
  connect(fds[2], unix_family);
  connect(fds[3], longest);
  ::sendto(fds[4], "x", 1, 0, nullptr, 0);
  ::sendto(fds[1], "x", 1, 0, reinterpret_cast<const sockaddr*>(8), 16);
  connect(fds[5], inet);
  connect(fds[6], inet.substr(0, 3));
  ::connect(fds[7], memory.Put(inet), static_cast<socklen_t>(-1));
  module_.Switch(false);
  const auto events = module_.Read();
  const auto entry = [&](const std::string& call, size_t which) {
    return Find(events, "syscall_entry_" + call, {{"fd", std::to_string(fds[which])}});
  };
  EXPECT_EQ(entry("bind", 0).at("path"), "@weft@events@");
  EXPECT_EQ(Find(events, "syscall_exit_getsockname", {{"path", "@weft@events@"}}).at("family"),
            "1");
  const auto unnamed = Find(events, "syscall_exit_getsockname", {{"path", ""}});
  EXPECT_EQ(unnamed.at("family"), "1");
  EXPECT_EQ(unnamed.at("dport"), "0") << "behind the end";
  EXPECT_EQ(entry("connect", 1).at("path"), "/nowhere/at-all");
  EXPECT_EQ(entry("connect", 2).at("path"), "");
  EXPECT_EQ(entry("connect", 2).at("family"), "1");
  EXPECT_EQ(entry("connect", 3).at("path"), "@" + std::string(107, 'l'));
  EXPECT_EQ(entry("sendto", 4).at("path"), "");
  EXPECT_EQ(entry("sendto", 4).at("family"), "0");
  EXPECT_EQ(entry("sendto", 1).at("path"), "(fault)");
  const auto of_inet = entry("connect", 5);
  EXPECT_EQ(of_inet.at("dport"), "80");
  EXPECT_EQ(of_inet.at("v4addr"), "7f000001");
  EXPECT_EQ(of_inet.at("v6addr"), std::string(32, '0'));
  EXPECT_EQ(of_inet.at("path"), "");
  EXPECT_EQ(entry("connect", 6).at("family"), "2");
  EXPECT_EQ(entry("connect", 6).at("dport"), "0");
  EXPECT_EQ(entry("connect", 7).at("family"), "0");
  for (const int fd : fds) ::close(fd);
}

TEST_F(KernelEventsTest, SystemCallsHaveTheDataBehindTheirPointers) {
  for (const char* name : {"setsockopt", "getsockopt", "getresuid", "setgroups", "getgroups",
                           "getrandom", "statfs", "rt_sigprocmask", "pselect6"})
    EXPECT_TRUE(AddSyscall(name)) << name;
  std::vector<gid_t> before(64);
  before.resize(static_cast<size_t>(::getgroups(64, before.data())));
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  int type = 0;
  socklen_t size = sizeof(type);
  std::array<uid_t, 3> users{};
  std::array<gid_t, 2> groups = {7, 0x1092};
  std::array<uint8_t, 2> random{};
  struct statfs files{};
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(socket, &set);
  const timespec soon{};
  module_.Switch(true);
  EXPECT_EQ(::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)), 0);
  EXPECT_EQ(::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size), 0);
  EXPECT_EQ(::getresuid(&users[0], &users[1], &users[2]), 0);
  EXPECT_EQ(::setgroups(groups.size(), groups.data()), 0);
  EXPECT_EQ(::getgroups(groups.size(), groups.data()), 2);
  EXPECT_EQ(::syscall(SYS_getrandom, random.data(), random.size(), 0), 2);
  EXPECT_EQ(::statfs("/proc", &files), 0);
  EXPECT_EQ(::sigprocmask(SIG_BLOCK, &signals, nullptr), 0);
  EXPECT_GE(::pselect(socket + 1, &set, nullptr, nullptr, &soon, nullptr), 0);
  module_.Switch(false);
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  ::setgroups(before.size(), before.data());
  ::close(socket);
  const auto events = module_.Read();
  const auto option = Find(events, "syscall_entry_setsockopt", {{"optname", "9"}});
  EXPECT_EQ(option.at("socket_option"), "9");
  EXPECT_EQ(option.at("value"), "1");
  EXPECT_EQ(option.at("optval_data"), "01000000");
  const auto got = Find(events, "syscall_exit_getsockopt", {{"ret", "0"}});
  EXPECT_EQ(got.at("value"), std::to_string(SOCK_STREAM));
  EXPECT_EQ(got.at("length"), "4");
  EXPECT_EQ(got.at("optval_data"), "01000000");
  EXPECT_EQ(Find(events, "syscall_exit_getresuid", {{"ret", "0"}}).at("euid"),
            std::to_string(users[1]));
  EXPECT_EQ(Find(events, "syscall_entry_setgroups", {}).at("groups"), "0700000092100000");
  EXPECT_EQ(Find(events, "syscall_exit_getgroups", {{"ret", "2"}}).at("groups"),
            "0700000092100000");
  std::array<char, 5> hex{};
  std::snprintf(hex.data(), hex.size(), "%02x%02x", random[0], random[1]);
  EXPECT_EQ(Find(events, "syscall_exit_getrandom", {{"ret", "2"}}).at("buf_data"), hex.data());
  EXPECT_EQ(Find(events, "syscall_exit_statfs", {{"ret", "0"}}).at("f_type"),
            std::to_string(files.f_type));
  EXPECT_EQ(Find(events, "syscall_entry_rt_sigprocmask", {{"how", "0"}}).at("signals"),
            std::to_string(1u << (SIGUSR1 - 1)));
  EXPECT_EQ(Find(events, "syscall_entry_pselect6", {}).at("readfds"),
            std::to_string(uint64_t{1} << socket));
}

#if defined(__x86_64__)

// Makes the call of a 32-bit program; addresses must be below 4 GiB.
int64_t Call32(uint32_t number, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0,
               uint32_t e = 0) {
  int64_t result = number;
  asm volatile("int $0x80"
               : "+a"(result)
               : "b"(uint64_t{a}), "c"(uint64_t{b}), "d"(uint64_t{c}), "S"(uint64_t{d}),
                 "D"(uint64_t{e})
               : "memory", "r8", "r9", "r10", "r11");
  return result;
}

// Memory that a 32-bit program could have.
class LowMemory {
 public:
  LowMemory()
      : at_(static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0))) {}
  ~LowMemory() { ::munmap(at_, kBytes); }
  LowMemory(const LowMemory&) = delete;
  LowMemory& operator=(const LowMemory&) = delete;

  template <typename T>
  uint32_t Put(const T& value) {
    return PutBytes(&value, sizeof(value));
  }
  uint32_t PutBytes(const void* bytes, size_t size) {
    char* const place = at_ + used_;
    std::memcpy(place, bytes, size);
    used_ += (size + 7) / 8 * 8;
    return static_cast<uint32_t>(reinterpret_cast<uint64_t>(place));
  }

 private:
  static constexpr size_t kBytes = 4096;
  char* at_;
  size_t used_ = 0;
};

TEST_F(KernelEventsTest, SystemCallsOf32BitProgramsHaveTheirArguments) {
  if (!AddSyscall("writev", true)) GTEST_SKIP() << "this kernel runs no 32-bit programs";
  for (const char* name :
       {"openat", "read", "lseek", "nanosleep", "clock_gettime", "stat64", "pread64"})
    EXPECT_TRUE(AddSyscall(name, true)) << name;
  ASSERT_TRUE(AddSyscall("writev"));
  LowMemory low;
  const uint32_t path = low.PutBytes("/proc/self/comm", 16);
  const uint32_t text = low.PutBytes("hello", 6);
  const uint32_t parts = low.Put(std::array<uint32_t, 4>{text, 5, text + 1, 2});
  const uint32_t time = low.Put(std::array<int32_t, 2>{0, 1234});
  const uint32_t space = low.Put(std::array<char, 128>{});
  const int null = ::open("/dev/null", O_WRONLY);
  module_.Switch(true);
  const int64_t file = Call32(295, static_cast<uint32_t>(AT_FDCWD), path, O_RDONLY);
  const int64_t got = Call32(3, static_cast<uint32_t>(file), space, 100);
  EXPECT_EQ(Call32(19, static_cast<uint32_t>(file), static_cast<uint32_t>(-1), SEEK_CUR), got - 1);
  EXPECT_EQ(Call32(180, static_cast<uint32_t>(file), space, 100, 3), got - 3);
  EXPECT_EQ(Call32(146, static_cast<uint32_t>(null), parts, 2), 7);
  EXPECT_EQ(Call32(162, time), 0);
  EXPECT_EQ(Call32(195, path, space), 0);
  EXPECT_EQ(Call32(265, CLOCK_MONOTONIC, time), 0);
  module_.Switch(false);
  ::close(static_cast<int>(file));
  ::close(null);
  const auto events = module_.Read();
  const std::string fd = std::to_string(file);
  ASSERT_GT(got, 3);
  const auto open = Find(events, "compat_syscall_entry_openat", {{"filename", "/proc/self/comm"}});
  EXPECT_EQ(open.at("dfd"), "-100");
  Find(events, "compat_syscall_exit_openat", {{"ret", fd}});
  EXPECT_EQ(Find(events, "compat_syscall_entry_read", {{"fd", fd}}).at("count"), "100");
  EXPECT_EQ(Find(events, "compat_syscall_exit_read", {{"ret", std::to_string(got)}}).at("buf_data"),
            "6b65726e656c5f6576656e74735f740a");
  EXPECT_EQ(Find(events, "compat_syscall_entry_lseek", {{"fd", fd}}).at("offset"), "-1");
  EXPECT_EQ(Find(events, "compat_syscall_entry_ia32_pread64", {{"fd", fd}}).at("pos_low"), "3");
  const auto write = Find(events, "compat_syscall_entry_writev", {{"fd", std::to_string(null)}});
  EXPECT_EQ(write.at("vec"), std::to_string(parts));
  EXPECT_EQ(write.at("vlen"), "2");
  EXPECT_EQ(write.at("iov_len"), "0500000002000000");
  EXPECT_EQ(write.at("iov_data"), "68656c6c6f656c");
  const auto sleep = Find(events, "compat_syscall_entry_nanosleep_time32", {{"nsec", "1234"}});
  EXPECT_EQ(sleep.at("sec"), "0");
  const auto stat = Find(events, "compat_syscall_exit_ia32_stat64", {{"ret", "0"}});
  EXPECT_EQ(stat.at("st_mode"), std::to_string(S_IFREG | 0644));
  const auto clock = Find(events, "compat_syscall_exit_clock_gettime32", {{"ret", "0"}});
  EXPECT_LT(std::stoul(clock.at("nsec")), 1'000'000'000u);
  for (const SeenEvent& event : events) EXPECT_NE(event.name, "syscall_entry_writev");
}

#endif

TEST_F(KernelEventsTest, FunctionsHaveTheirParameters) {
  const auto symbols = kernel::KernelSymbols::Load().value();
  const kernel::ProbePlace entry{.event = "write_in", .function = "vfs_write"};
  const kernel::ProbePlace exit{.event = "write_out", .function = "vfs_write"};
  const Catalogue& catalogue = Catalogue::BuiltIn();
  ASSERT_EQ(module_.Add(kernel::ResolveKprobe(*btf_, catalogue, symbols, entry, kWide).value()), 0);
  ASSERT_EQ(module_.Add(kernel::ResolveKretprobe(*btf_, catalogue, symbols, exit, kWide).value()),
            0);
  // These are a namespace's events: vfs_write writes a program's memory, kernel_write the kernel's.
  const kernel::ResolveOptions of_tenant{.has_user_addresses = true};
  const kernel::ProbePlace own{.event = "of_tenant", .function = "vfs_write"};
  const kernel::Resolved hidden =
      kernel::ResolveKprobe(*btf_, catalogue, symbols, own, of_tenant).value();
  ASSERT_EQ(module_.Add(hidden), 0);
  const kernel::ProbePlace freed{.event = "freed", .function = "kfree"};
  ASSERT_EQ(module_.Add(kernel::ResolveKprobe(*btf_, catalogue, symbols, freed, of_tenant).value()),
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
  const auto shown = Find(events, "of_tenant", {{"count", "4711"}});
  EXPECT_EQ(shown.at("buf"), std::to_string(reinterpret_cast<uint64_t>(odd.data())));
  EXPECT_FALSE(shown.contains("file"));
  for (const SeenEvent& event : events) {
    if (event.name == "freed") {
      for (const auto& [field, value] : event.fields) EXPECT_EQ(value, "0") << field;
    }
  }
  const auto out = Find(events, "write_out", {{"ret", "4711"}});
  EXPECT_NE(out.at("duration"), "0");
}

}  // namespace
}  // namespace weft::vm
