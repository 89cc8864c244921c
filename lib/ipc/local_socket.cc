// SPDX-License-Identifier: Apache-2.0
// See local_socket.h.
#include "lib/ipc/local_socket.h"

#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "lib/ipc/descriptor_budget.h"
#include "lib/ipc/limits.h"

namespace weft::ipc {
namespace {

// Are this process's descriptors in flight (SCM_RIGHTS) exempt from the kernel's limit? The kernel
// asks for a capability in the first user namespace, which always has this number.
bool IsPrivileged() {
  constexpr ino_t kFirstUserNamespace = 0xEFFFFFFD;
  struct stat st{};
  if (stat("/proc/self/ns/user", &st) != 0 || st.st_ino != kFirstUserNamespace) return false;
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective & (1u << CAP_SYS_ADMIN | 1u << CAP_SYS_RESOURCE)) != 0;
}

// Each caller in the backlog has a descriptor in flight. Without a privilege, the kernel lets a
// user have as many in flight as the limit of open files. A quarter of them is for the messages
// between weft's processes.
int Backlog() {
  constexpr int kMost = kListenBacklog;
  if (IsPrivileged()) return kMost;
  return static_cast<int>(std::min<size_t>(kMost, DescriptorLimit() / 4 * 3));
}

}  // namespace

Result<UniqueFd> ListenAt(const std::string& folder, const std::string& name, unsigned mode) {
  const std::string path = folder + "/" + name;
  const std::string unfinished = path + ".new";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unfinished.size() >= sizeof(address.sun_path))
    return Fail(ErrorCode::kInvalid, folder + ": name too long for a folder with sockets");
  std::memcpy(address.sun_path, unfinished.c_str(), unfinished.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return FailErrno("socket");
  unlink(unfinished.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(unfinished.c_str(), mode) != 0 || listen(fd.get(), Backlog()) != 0 ||
      rename(unfinished.c_str(), path.c_str()) != 0)
    return FailErrno(path);
  return fd;
}

}  // namespace weft::ipc
