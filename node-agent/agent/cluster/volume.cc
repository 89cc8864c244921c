// SPDX-License-Identifier: Apache-2.0
// See volume.h.
#include "node-agent/agent/cluster/volume.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "lib/kube/library.h"

namespace weft::agent {

Result<UniqueFd> OpenVolume(const std::string& kubelet_dir, const std::string& pod_uid) {
  const std::string folder = kubelet_dir + "/pods/" + pod_uid;
  if (pod_uid.empty() || pod_uid.find('/') != std::string::npos)
    return Fail(ErrorCode::kInvalid, "\"" + pod_uid + "\": no pod's uid");
  const UniqueFd pod(open(folder.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!pod) {
    if (errno == ENOENT) return Fail(ErrorCode::kNotFound, folder + ": not there");
    return FailErrno(folder);
  }
  const std::string name = "volumes/kubernetes.io~configmap/" + std::string(kube::kVolume);
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH;
  const long fd = syscall(SYS_openat2, pod.get(), name.c_str(), &how, sizeof(how));
  if (fd >= 0) return UniqueFd(static_cast<int>(fd));
  if (errno == ENOENT) return Fail(ErrorCode::kNotFound, folder + "/" + name + ": not there");
  return FailErrno(folder + "/" + name);
}

std::string PathOf(const UniqueFd& folder) {
  return "/proc/self/fd/" + std::to_string(folder.get());
}

}  // namespace weft::agent
