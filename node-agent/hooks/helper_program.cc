// SPDX-License-Identifier: Apache-2.0
// See helper_program.h.
#include "node-agent/hooks/helper_program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "lib/base/copy_fd.h"
#include "lib/base/unique_fd.h"

namespace weft::hooks {
namespace {

// The process, until it is reaped.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

 private:
  pid_t pid_;
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> Spawn(const HelperCall& call, int answer, int file, int second) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (call.input >= 0)
    posix_spawn_file_actions_adddup2(&actions, call.input, 0);
  else
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, answer, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, file, 3);
  if (second >= 0) posix_spawn_file_actions_adddup2(&actions, second, 4);
  // Those that this process's parent left open, too.
  posix_spawn_file_actions_addclosefrom_np(&actions, second >= 0 ? 5 : 4);
  std::vector<std::string> words{call.program.substr(call.program.rfind('/') + 1)};
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  pid_t pid = 0;
  const int e = posix_spawn(&pid, call.program.c_str(), &actions, &attributes,
                            Pointers(words).data(), Pointers(call.environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (e == 0) return pid;
  errno = e;
  return FailErrno(call.program);
}

Result<std::string> ReadAnswer(const HelperCall& call, int from) {
  const auto end = std::chrono::steady_clock::now() + call.patience;
  std::string text;
  char buffer[65536];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd waits[]{{from, POLLIN, 0}, {call.stop, POLLIN, 0}};  // -1 is passed over
    if (left.count() <= 0 || poll(waits, 2, static_cast<int>(left.count())) == 0)
      return Fail(ErrorCode::kTimeout, call.program + " takes too long");
    if (waits[1].revents != 0) return Fail(ErrorCode::kClosed, "weft ends");
    const ssize_t count = read(from, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FailErrno(call.program);
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > call.max_bytes)
      return Fail(ErrorCode::kLimit, call.program + " answers too much");
  }
}

}  // namespace

Result<std::string> RunHelper(const HelperCall& call) {
  // Not the numbers that others get.
  const UniqueFd safe = CopyFd(call.file);
  const UniqueFd second(call.second < 0 ? -1 : fcntl(call.second, F_DUPFD_CLOEXEC, 5));
  int ends[2];
  if (!safe || (call.second >= 0 && !second) || pipe2(ends, O_CLOEXEC) != 0)
    return FailErrno(call.program);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  WEFT_ASSIGN(const pid_t pid, Spawn(call, to.get(), safe.get(), second.get()));
  const Child child(pid);
  to.reset();
  return ReadAnswer(call, from.get());
}

std::string HelperPath(const std::string& name) {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  const std::string self(path, size > 0 ? static_cast<size_t>(size) : 0);
  return self.substr(0, self.rfind('/') + 1) + name;
}

}  // namespace weft::hooks
