// SPDX-License-Identifier: Apache-2.0
// Gets weft.ko ready on this machine, or tells why that is not possible.
//
// It takes the first of these: a loaded module with our interface; a file that was built for
// exactly this kernel, in one of the folders or where the distribution has modules; a module built
// here, if that is requested. If the loaded module is another build than the file that was found,
// the file replaces it, unless the module is in use, or has a later version and our interface. The
// agent uses it in a thread of its own, because a build takes a minute. Needs root. Thread-safety:
// the functions have no state; two calls at the same time do no harm.
#ifndef WEFT_NODE_AGENT_KERNEL_DRIVER_H_
#define WEFT_NODE_AGENT_KERNEL_DRIVER_H_

#include <functional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"
#include "node-agent/kernel/modinfo.h"

namespace weft::kernel {

// Reasons of the condition KernelTracing.
inline constexpr const char* kModulesDisabled = "ModulesDisabled";
inline constexpr const char* kSignatureRequired = "SignatureRequired";
inline constexpr const char* kLockedDown = "LockedDown";
inline constexpr const char* kNoBuildForKernel = "NoBuildForKernel";
inline constexpr const char* kNotPermitted = "NotPermitted";
inline constexpr const char* kIncompatible = "Incompatible";
inline constexpr const char* kLoadFailed = "LoadFailed";  // none of the above

// The machine, as the driver sees it and changes it. Tests replace it.
struct Host {
  std::string release;  // uname -r
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string device = "/dev/weft";
  // The prefix of the node's own files; in a pod, /proc/1/root.
  std::string root;
  std::string headers;  // of the kernel, in that root

  std::function<int(const UniqueFd& file)> load;  // 0 or an errno
  std::function<int()> unload;                    // 0 or an errno; never waits
  std::function<Result<UniqueFd>(const std::string& device)> open;
  std::function<int(const std::string& device, unsigned major, unsigned minor)> make_node;
};
Host ThisHost();

struct DriverOptions {
  std::vector<std::string> folders;  // each: FOLDER/RELEASE/weft.ko
  std::vector<std::string> builds;   // looked at then, each: FOLDER/ANY/weft.ko, of any kernel
  std::string sources;               // folder of weft.ko's sources; "": nothing is built here
  std::string build_folder;          // where it is built; the path is the same here and on the node
};

struct DriverState {
  bool is_ready = false;
  std::string reason;  // "Loaded", or one of the above
  std::string message;
};

// Takes as long as it takes.
DriverState PrepareDriver(const Host& host, const DriverOptions& options);

// The file to load for the host's kernel, of the options' folders or the distribution's. kNotFound:
// there is none, with what was looked at.
struct DriverFile {
  std::string path;
  ModuleInfo info;
};
Result<DriverFile> FindDriver(const Host& host, const DriverOptions& options);

// Why the host did not load a file; `error` is finit_module's errno.
DriverState WhyNotLoaded(const Host& host, const DriverFile& file, int error);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_DRIVER_H_
