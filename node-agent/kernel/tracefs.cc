// SPDX-License-Identifier: Apache-2.0
// See tracefs.h. The private mount: fsopen(2), fsmount(2), from Linux 5.2.
#include "node-agent/kernel/tracefs.h"

#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace weft::kernel {
namespace {

constexpr const char* kEvents = "/events/syscalls";

// Makes a mount that is attached nowhere and ends with its descriptor; no descriptor: errno says
// why.
UniqueFd MountNowhere() {
  const UniqueFd context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
  if (!context ||
      syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return {};
  return UniqueFd(static_cast<int>(syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
}

}  // namespace

Tracefs Tracefs::Open() {
  const std::string own = "/sys/kernel/tracing";
  const std::string places[] = {own, "/sys/kernel/debug/tracing", "/proc/1/root" + own};
  return Open(places);
}

Tracefs Tracefs::Open(std::span<const std::string> mounted) {
  Tracefs tracefs;
  for (const std::string& place : mounted) {
    if (access((place + kEvents).c_str(), X_OK) != 0) continue;
    tracefs.path_ = place;
    return tracefs;
  }
  tracefs.mount_ = MountNowhere();
  const std::string place = "/proc/self/fd/" + std::to_string(tracefs.mount_.get());
  if (tracefs.mount_ && access((place + kEvents).c_str(), X_OK) == 0) {
    tracefs.path_ = place;
    return tracefs;
  }
  tracefs.problem_ = std::string("tracefs is not mounted, and cannot be: ") + std::strerror(errno) +
                     ": most system calls are recorded without names and types of their "
                     "parameters; mount it (mount -t tracefs none /sys/kernel/tracing), or take a "
                     "kernel with CONFIG_FTRACE_SYSCALLS";
  return tracefs;
}

}  // namespace weft::kernel
