// SPDX-License-Identifier: GPL-2.0-only
// See child.h.
#include "kmod/tests/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace weft::kmod {
namespace {

bool Write(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text << std::flush;
  return static_cast<bool>(file);
}

bool Ended(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

bool InChild(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  return child > 0 && Ended(child);
}

bool InUserNamespace(uint32_t first_uid, uint32_t first_gid, const std::function<bool()>& body) {
  std::array<int, 2> made{}, mapped{};
  if (::pipe2(made.data(), O_CLOEXEC) != 0 || ::pipe2(mapped.data(), O_CLOEXEC) != 0) return false;
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    // It ends when the other side did: no byte comes then.
    ::close(mapped[1]);
    const bool ready = ::unshare(CLONE_NEWUSER) == 0 && ::write(made[1], "", 1) == 1 &&
                       ::read(mapped[0], &byte, 1) == 1;
    ::_exit(ready && body() ? 0 : 1);
  }
  ::close(made[1]);
  const std::string place = "/proc/" + std::to_string(child);
  const bool wrote = child > 0 && ::read(made[0], &byte, 1) == 1 &&
                     Write(place + "/uid_map", "0 " + std::to_string(first_uid) + " 1000") &&
                     Write(place + "/gid_map", "0 " + std::to_string(first_gid) + " 1000") &&
                     ::write(mapped[1], "", 1) == 1;
  for (const int fd : {made[0], mapped[0], mapped[1]}) ::close(fd);
  return child > 0 && Ended(child) && wrote;
}

}  // namespace weft::kmod
