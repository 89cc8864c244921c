// SPDX-License-Identifier: Apache-2.0
// The service with a real process that calls it, in place of one with the library.
#include "node-agent/hooks/hook_service.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <semaphore>

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

// A look at all processes may take long: what a process calls for meanwhile are the new rules.
TEST(HookServiceTest, ACallDuringALookGetsTheNewestRules) {
  const ctf::TempFolder folder;
  const UniqueFd control(
      ::open((folder.path() + "/" + kControl).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(control.get(), 4096), 0);
  sockaddr_un to{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder.path() + "/" + WEFT_HOOKS_SOCKET;
  ASSERT_LT(path.size(), sizeof(to.sun_path));
  std::memcpy(to.sun_path, path.c_str(), path.size());

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

}  // namespace
}  // namespace weft::hooks
