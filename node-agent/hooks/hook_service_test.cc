// SPDX-License-Identifier: Apache-2.0
// The service with a real process that calls it, in place of one with the library.
#include "node-agent/hooks/hook_service.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "lib/abi/hooks.h"
#include "lib/base/unique_fd.h"
#include "lib/ctf/test_trace.h"

namespace weft::hooks {
namespace {

constexpr const char* kControl = "app.ctl";

// Maps the control file, calls the service and waits for it as the library does, says so with a
// byte, and stays until it is killed. Only system calls: it is the child of a program with threads.
[[noreturn]] void CallService(const sockaddr_un& to, int control, int called, int answered) {
  const int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (mmap(nullptr, 1, PROT_READ, MAP_SHARED, control, 0) != MAP_FAILED &&
      connect(s, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0 &&
      write(called, "c", 1) == 1) {
    pollfd p{.fd = s, .events = POLLIN, .revents = 0};
    if (poll(&p, 1, -1) == 1 && write(answered, "a", 1) == 1)
      for (;;) pause();
  }
  _exit(1);
}

bool ReadByte(int fd) {
  char byte = 0;
  return read(fd, &byte, 1) == 1;
}

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  EXPECT_LT(path.size(), sizeof(to.sun_path));
  std::memcpy(to.sun_path, path.c_str(), std::min(path.size(), sizeof(to.sun_path) - 1));
  return to;
}

// A file system with one file, libweft.so, which answers until the file is opened, and never after
// that. linux/fuse.h.
class HangingFuse {
 public:
  // Mounts it in a mount namespace of this process's own. False: it may not.
  bool Mount(const char* folder) {
    fuse_ = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    const std::string options =
        "fd=" + std::to_string(fuse_) + ",rootmode=40000,user_id=0,group_id=0";
    return fuse_ >= 0 && unshare(CLONE_NEWNS) == 0 &&
           mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("weft-test", folder, "fuse", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
  }

  void Close() const { close(fuse_); }

  [[noreturn]] void Serve() {
    alignas(fuse_in_header) std::array<char, 2 * FUSE_MIN_READ_BUFFER> request;
    for (bool answers = true;;) {
      if (read(fuse_, request.data(), request.size()) <= 0) _exit(0);
      fuse_in_header head{};
      std::memcpy(&head, request.data(), sizeof(head));
      if (answers) Answer(head);
      answers &= head.opcode != FUSE_OPEN;
    }
  }

 private:
  template <typename Body>
  void Send(const fuse_in_header& to, int error, const Body& body) {
    struct {
      fuse_out_header head;
      Body body;
    } answer{.head = {.len = sizeof(fuse_out_header), .error = error, .unique = to.unique},
             .body = body};
    if (error == 0) answer.head.len += sizeof(body);
    if (write(fuse_, &answer, answer.head.len) < 0) _exit(1);
  }

  void Answer(const fuse_in_header& to) {
    fuse_attr attr{.ino = to.nodeid, .mode = S_IFDIR | 0755, .nlink = 1};
    if (to.opcode == FUSE_LOOKUP || to.nodeid != FUSE_ROOT_ID) {
      attr.ino = FUSE_ROOT_ID + 1;
      attr.mode = S_IFREG | 0755;
      attr.size = 4096;
    }
    if (to.opcode == FUSE_INIT)
      return Send(to, 0, fuse_init_out{.major = FUSE_KERNEL_VERSION, .minor = 31});
    if (to.opcode == FUSE_LOOKUP)
      return Send(to, 0, fuse_entry_out{.nodeid = attr.ino, .attr = attr});
    if (to.opcode == FUSE_GETATTR) return Send(to, 0, fuse_attr_out{.attr = attr});
    if (to.opcode == FUSE_OPEN) return Send(to, 0, fuse_open_out{});
    Send(to, -ENOSYS, fuse_open_out{});
  }

  int fuse_ = -1;
};

// What a child of the next function does: it serves the file system, and a child of its own maps
// the file and calls. Nothing else has the connection, which thus ends with this process.
[[noreturn]] void CallWithHangingFile(const char* folder, const sockaddr_un& to, int control,
                                      int called, int answered) {
  HangingFuse fuse;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!fuse.Mount(folder)) {
    (void)!write(called, "s", 1);  // for "skip"
    _exit(1);
  }
  if (fork() != 0) {
    close(called);  // so that reading ends if the child does
    close(answered);
    fuse.Serve();
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fuse.Close();
  const int file = open((std::string(folder) + "/libweft.so").c_str(), O_RDONLY | O_CLOEXEC);
  if (mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0) == MAP_FAILED) _exit(1);
  CallService(to, control, called, answered);
}

// A look at all processes may take long: what a process calls for meanwhile are the new rules.
TEST(HookServiceTest, ACallDuringALookGetsTheNewestRules) {
  const ctf::TempFolder folder;
  const UniqueFd control(
      ::open((folder.path() + "/" + kControl).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(control.get(), 4096), 0);
  const sockaddr_un to = AddressOf(folder.path() + "/" + WEFT_HOOKS_SOCKET);

  std::atomic<int> looks{0};
  std::binary_semaphore looking{0}, go_on{0};
  HookService service([&](int32_t) -> std::optional<std::string> {
    if (looks++ == 0) {
      looking.release();
      go_on.acquire();
    }
    return "pod";
  });
  HookedContainer container{.name = "pod/app",
                            .pod_uid = "pod",
                            .folder = folder.path(),
                            .control = kControl,
                            .rules = {}};
  ASSERT_TRUE(service.SetContainers({container}));
  looking.acquire();

  api::FunctionRule rule;
  rule.name = "f";
  container.rules.push_back({.trace = "t", .rule = rule});
  ASSERT_TRUE(service.SetContainers({container}));
  int called[2], answered[2];
  ASSERT_EQ(pipe(called), 0);
  ASSERT_EQ(pipe(answered), 0);
  const pid_t child = fork();
  if (child == 0) CallService(to, control.get(), called[1], answered[1]);
  close(called[1]);  // so that reading ends if the child does
  close(answered[1]);
  const bool has_called = ReadByte(called[0]);
  go_on.release();
  EXPECT_TRUE(has_called && ReadByte(answered[0]));
  // The child has no library, so the service says why it could not hook it.
  const std::vector<std::string> refusals = service.Refusals("t");
  EXPECT_TRUE(!refusals.empty() && refusals.front().starts_with("a process of pod/app: "))
      << testing::PrintToString(refusals);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : {called[0], answered[0]}) close(fd);
}

TEST(HookServiceTest, SummaryTellsThatNoProcessWasReady) {
  HookService service([](int32_t) { return std::optional<std::string>(); });
  api::FunctionRule rule;
  rule.name = "f";
  ASSERT_TRUE(service.SetContainers({{.name = "pod/app",
                                      .pod_uid = "pod",
                                      .folder = "",
                                      .control = kControl,
                                      .rules = {{.trace = "t", .rule = rule}}}}));
  const std::vector<std::string> summary = service.Summary();
  ASSERT_EQ(summary.size(), 1u);
  EXPECT_NE(summary[0].find("hooked 0 functions; no process was ready"), std::string::npos)
      << summary[0];
  EXPECT_EQ(service.Hooked(), 0u);
}

// A process, its folder, and what it says.
struct Caller {
  ctf::TempFolder folder;
  UniqueFd control, go, called, answered;
  pid_t pid = 0;

  Caller() {
    const std::string path = folder.path() + "/" + kControl;
    control.reset(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(control.get(), 4096), 0);
  }
  ~Caller() {
    if (pid > 0 && kill(pid, SIGKILL) == 0) waitpid(pid, nullptr, 0);
  }
  // The process calls when a byte comes to `go`.
  template <typename Call>
  void Start(Call call) {
    int goes[2], says[2], tells[2];
    ASSERT_EQ(pipe(goes) + pipe(says) + pipe(tells), 0);
    const sockaddr_un to = AddressOf(folder.path() + "/" + WEFT_HOOKS_SOCKET);
    pid = fork();
    if (pid == 0) {
      if (ReadByte(goes[0])) call(to, control.get(), says[1], tells[1]);
      _exit(1);
    }
    go.reset(goes[1]);
    called.reset(says[0]);
    answered.reset(tells[0]);
    for (const int fd : {goes[0], says[1], tells[1]}) close(fd);
  }
  [[nodiscard]] HookedContainer Container(const std::string& pod) const {
    return {.name = pod + "/app",
            .pod_uid = pod,
            .folder = folder.path(),
            .control = kControl,
            .rules = {{.trace = "t", .rule = {.name = "f"}}}};
  }
};

void WaitForRefusal(const HookService& service, const std::string& text) {
  while (testing::PrintToString(service.Refusals("t")).find(text) == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

// The file system's server reads the agent's requests and never answers: its thread cannot even be
// killed. Other pods have their hooks, and the service can end.
TEST(HookServiceTest, AFileThatNeverAnswersKeepsNoOtherPodWaiting) {
  Caller hangs, other;
  const ctf::TempFolder mount;
  std::atomic<pid_t> other_pid{0};
  HookService service(
      [&](int32_t pid) -> std::optional<std::string> {
        return pid == other_pid ? "other" : "hangs";
      },
      std::chrono::milliseconds(100));
  // Before the service has a thread: the children go on from a fork.
  hangs.Start([&](const sockaddr_un& to, int control, int called, int answered) {
    CallWithHangingFile(mount.path().c_str(), to, control, called, answered);
  });
  other.Start(CallService);
  other_pid = other.pid;
  ASSERT_TRUE(service.SetContainers({hangs.Container("hangs"), other.Container("other")}));
  for (Caller* one : {&hangs, &other}) {
    ASSERT_EQ(write(one->go.get(), "g", 1), 1);
    char byte = 0;
    ASSERT_EQ(read(one->called.get(), &byte, 1), 1);
    if (byte == 's') GTEST_SKIP() << "no FUSE file system can be mounted here";
    ASSERT_TRUE(ReadByte(one->answered.get()));
  }
  WaitForRefusal(service, "hangs/app: its files or its memory do not answer");
  WaitForRefusal(service, "other/app: it has not loaded libweft.so");

  // The Trace ends. The thread may still hook for it, so the service is not done before the thread.
  std::vector<HookedContainer> containers{hangs.Container("hangs"), other.Container("other")};
  for (HookedContainer& container : containers) container.rules.clear();
  ASSERT_TRUE(service.SetContainers(containers));
  while (!service.is_settled()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(service.is_done());
  EXPECT_TRUE(service.MayBeAt("hangs"));
  while (service.MayBeAt("other")) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(hangs.pid, SIGKILL);
  while (!service.is_done() || service.MayBeAt("hangs"))
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace
}  // namespace weft::hooks
