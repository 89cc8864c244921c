// SPDX-License-Identifier: Apache-2.0
// posix_spawn: it reports a program that cannot be executed as an error of the call.
#include "lib/ipc/child.h"

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <csignal>

#include <cstring>

#include "lib/base/empty_input.h"

extern char** environ;

namespace weft::ipc {
namespace {

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    posix_spawn_file_actions_init(&actions_);
  }
  ~Attributes() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  int Prepare(int input, int connection, int lease) {
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int e = posix_spawnattr_setsigdefault(&attributes_, &all);
    if (e == 0) e = posix_spawnattr_setsigmask(&attributes_, &none);
    int flags = POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID;
    // The child gets back the scheduling that TakeTurns gave up: the attributes name SCHED_OTHER.
    if (sched_getscheduler(0) == SCHED_BATCH) flags |= POSIX_SPAWN_SETSCHEDULER;
    if (e == 0) e = posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
    // In this order: where the caller has no standard input, the connection may be descriptor 0.
    if (e == 0) e = posix_spawn_file_actions_adddup2(&actions_, connection, kKeeperFd);
    if (e == 0) e = posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    if (e == 0 && lease >= 0) e = posix_spawn_file_actions_adddup2(&actions_, lease, kLeaseFd);
    return e;
  }
  posix_spawnattr_t* attributes() { return &attributes_; }
  posix_spawn_file_actions_t* actions() { return &actions_; }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<Child> StartChild(const std::string& program, const std::vector<std::string>& arguments,
                         int lease) {
  WEFT_ASSIGN(auto ends, Connection::MakePair());
  WEFT_ASSIGN(const UniqueFd input, OpenEmptyInput());
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  Attributes attributes;
  pid_t pid = -1;
  int e = attributes.Prepare(input.get(), ends.second.get(), lease);
  if (e == 0)
    e = posix_spawn(&pid, program.c_str(), attributes.actions(), attributes.attributes(),
                    argv.data(), environ);
  if (e != 0) return std::unexpected(Error{ErrorCode::kIo, e, program + ": " + std::strerror(e)});
  return Child{pid, Connection(std::move(ends.first))};
}

std::string DescribeExit(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = sigabbrev_np(WTERMSIG(status));
    return "killed by signal " + std::to_string(WTERMSIG(status)) +
           (name != nullptr ? std::string(" (SIG") + name + ")" : "");
  }
  return "exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace weft::ipc
