// SPDX-License-Identifier: Apache-2.0
// See driver.h. Source of the errors: finit_module(2), delete_module(2), kernel_lockdown(7).
#include "node-agent/kernel/driver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "lib/abi/kernel.h"
#include "node-agent/kernel/driver_build.h"
#include "node-agent/kernel/module.h"

namespace weft::kernel {
namespace {

constexpr const char* kName = "weft";
constexpr const char* kFile = "/weft.ko";
// Folders below /lib/modules/RELEASE in which DKMS and packages put modules.
constexpr const char* kPackaged[] = {"/updates/dkms", "/updates", "/extra"};

// Returns the first line of a small file; std::nullopt: it does not exist.
std::optional<std::string> LineOf(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) return std::nullopt;
  return line;
}

DriverState No(const char* reason, std::string message) {
  return {.is_ready = false, .reason = reason, .message = std::move(message)};
}

// Returns the mode that is in force ("none [integrity] confidentiality"); "": none. In a pod, it
// reads the node's own file.
std::string Lockdown(const Host& host) {
  for (const std::string& root : {host.root + "/sys", host.sys}) {
    const auto line = LineOf(root + "/kernel/security/lockdown");
    if (!line) continue;
    const size_t begin = line->find('['), end = line->find(']');
    if (begin == std::string::npos || end == std::string::npos || end < begin) continue;
    const std::string mode = line->substr(begin + 1, end - begin - 1);
    return mode == "none" ? "" : mode;
  }
  return "";
}

bool RequiresSignature(const Host& host) {
  return LineOf(host.sys + "/module/module/parameters/sig_enforce") == "Y";
}

// Returns why modules cannot be loaded; "": they can.
std::string WhyDisabled(const Host& host) {
  const auto disabled = LineOf(host.proc + "/sys/kernel/modules_disabled");
  if (!disabled) return "this kernel was built without loadable modules";
  if (*disabled == "1")
    return "kernel.modules_disabled is 1: no module can be loaded until the next boot";
  return "";
}

struct LoadedModule {
  std::string version, srcversion;  // "": it does not say
};

std::optional<LoadedModule> FindLoaded(const Host& host) {
  const std::string folder = host.sys + "/module/" + kName;
  if (access(folder.c_str(), F_OK) != 0) return std::nullopt;
  return LoadedModule{.version = LineOf(folder + "/version").value_or(""),
                      .srcversion = LineOf(folder + "/srcversion").value_or("")};
}

std::string Whose(const DriverFile& file) {
  return file.path + (file.info.is_signed ? " (signed)" : " (not signed)");
}

// Makes the device. A container has the devices of its start, not the node's devtmpfs.
Status MakeNode(const Host& host) {
  const auto numbers = LineOf(host.sys + "/class/misc/" + kName + "/dev");
  unsigned major = 0, minor = 0;
  if (!numbers || std::sscanf(numbers->c_str(), "%u:%u", &major, &minor) != 2)
    return Fail(ErrorCode::kNotFound, "weft.ko has no device");
  struct stat st{};
  if (stat(host.device.c_str(), &st) == 0) {
    if (!S_ISCHR(st.st_mode))
      return Fail(ErrorCode::kConflict, host.device + ": is no device, and in the way");
    if (st.st_rdev == makedev(major, minor)) return {};
    unlink(host.device.c_str());  // of a module that was loaded before
  }
  const int error = host.make_node(host.device, major, minor);
  if (error == 0 || error == EEXIST) return {};
  return Fail(error == EPERM || error == EACCES ? ErrorCode::kPermission : ErrorCode::kIo,
              host.device + ": " + std::strerror(error));
}

DriverState OpenLoaded(const Host& host, const std::string& how) {
  const Status made = MakeNode(host);
  const auto device = made ? host.open(host.device) : std::unexpected(made.error());
  if (device) return {.is_ready = true, .reason = "Loaded", .message = how};
  switch (device.error().code) {
    case ErrorCode::kUnsupported:
      return No(kIncompatible,
                device.error().message + "; it is in use, or nothing else was found");
    case ErrorCode::kPermission:
      return No(kNotPermitted, device.error().message);
    default:
      return No(kLoadFailed, device.error().message);
  }
}

// Is it another build than what is loaded, and did that make room for it? A later version stays, as
// long as it speaks our interface: a folder with an old file must not take back an upgrade.
bool Replaced(const Host& host, const Result<DriverFile>& file, const LoadedModule& loaded) {
  if (!file || file->info.srcversion == loaded.srcversion) return false;
  const bool is_older = strverscmp(file->info.version.c_str(), loaded.version.c_str()) < 0;
  if (is_older && OpenLoaded(host, "").reason != kIncompatible) return false;
  return host.unload() == 0;
}

// ./dev kmod build names its folders as it names kernels ("6.12").
void AddBuilds(const std::string& folder, std::vector<std::string>* paths) {
  const size_t before = paths->size();
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    std::string path = item.path().string() + kFile;
    if (std::filesystem::exists(path, error)) paths->push_back(std::move(path));
  }
  std::sort(paths->begin() + static_cast<ptrdiff_t>(before), paths->end());
}

Result<DriverFile> BuildHere(const Host& host, const DriverOptions& options) {
  WEFT_ASSIGN(const std::string path,
              BuildModule(host, options.sources, options.build_folder + "/" + host.release));
  WEFT_ASSIGN(ModuleInfo info, ReadModuleInfo(path));
  return DriverFile{path, std::move(info)};
}

DriverState Load(const Host& host, const DriverFile& file) {
  const UniqueFd fd(open(file.path.c_str(), O_RDONLY | O_CLOEXEC));
  const int error = fd ? host.load(fd) : errno;
  // EEXIST: another process loaded it first.
  if (error != 0 && error != EEXIST) return WhyNotLoaded(host, file, error);
  return OpenLoaded(host, "weft.ko " + file.info.version + " from " + file.path);
}

}  // namespace

Host ThisHost() {
  utsname names{};
  uname(&names);
  Host host;
  host.release = names.release;
  host.headers = "/lib/modules/" + host.release + "/build";
  host.load = [](const UniqueFd& file) {
    return syscall(SYS_finit_module, file.get(), "", 0) == 0 ? 0 : errno;
  };
  host.unload = [] { return syscall(SYS_delete_module, kName, O_NONBLOCK) == 0 ? 0 : errno; };
  host.open = [](const std::string& device) { return OpenModule(device); };
  host.make_node = [](const std::string& device, unsigned major, unsigned minor) {
    return mknod(device.c_str(), S_IFCHR | 0600, makedev(major, minor)) == 0 ? 0 : errno;
  };
  return host;
}

Result<DriverFile> FindDriver(const Host& host, const DriverOptions& options) {
  std::vector<std::string> paths;
  paths.reserve(options.folders.size() + std::size(kPackaged));
  for (const std::string& folder : options.folders)
    paths.push_back(folder + "/" + host.release + kFile);
  for (const std::string& folder : options.builds) AddBuilds(folder, &paths);
  for (const char* folder : kPackaged)
    paths.push_back(host.root + "/lib/modules/" + host.release + folder + kFile);
  std::string looked_for, passed_over;
  for (const std::string& path : paths) {
    looked_for += (looked_for.empty() ? "; looked for " : ", ") + path;
    auto info = ReadModuleInfo(path);
    if (!info && info.error().code == ErrorCode::kNotFound) continue;
    std::string why;
    if (!info) {
      why = info.error().message;
    } else if (info->name != kName) {
      why = path + ": is not weft.ko";
    } else if (info->release() != host.release) {
      why = path + ": was built for kernel " + info->release();
    } else if (info->abi != 0 && info->abi != WEFT_KERNEL_ABI_MAJOR) {
      why = path + ": has version " + std::to_string(info->abi) + " of the interface";
    } else {
      return DriverFile{path, std::move(*info)};
    }
    passed_over += "; " + why;
  }
  return Fail(ErrorCode::kNotFound,
              "there is no weft.ko for kernel " + host.release + passed_over + looked_for);
}

DriverState WhyNotLoaded(const Host& host, const DriverFile& file, int error) {
  const std::string what = Whose(file) + ": " + std::strerror(error);
  const std::string lockdown = Lockdown(host);
  switch (error) {
    case EKEYREJECTED:
    case ENOKEY:
    case ENOPKG:
    case EBADMSG:
      return No(kSignatureRequired,
                what + ": this kernel loads modules that are signed with a key it trusts");
    case EPERM:
    case EACCES:
      if (const std::string why = WhyDisabled(host); !why.empty()) return No(kModulesDisabled, why);
      if (!lockdown.empty())
        return No(kLockedDown, what + ": kernel lockdown (" + lockdown +
                                   ") asks for a module that is signed with a key it trusts");
      return No(kNotPermitted, what + ": loading a module needs CAP_SYS_MODULE");
    case ENOSYS:
      return No(kModulesDisabled, "this kernel was built without loadable modules");
    case ENOEXEC:
    case ENOENT:
    case EINVAL:
      return No(kIncompatible, what + ": it was built for another kernel than " + host.release);
    default:
      return No(kLoadFailed, what);
  }
}

DriverState PrepareDriver(const Host& host, const DriverOptions& options) {
  Result<DriverFile> file = FindDriver(host, options);
  if (const auto loaded = FindLoaded(host); loaded && !Replaced(host, file, *loaded))
    return OpenLoaded(host, "weft.ko " + loaded->version + " was loaded already");
  if (const std::string why = WhyDisabled(host); !why.empty()) return No(kModulesDisabled, why);
  if (!file && !options.sources.empty()) {
    auto built = BuildHere(host, options);
    if (!built) return No(kNoBuildForKernel, file.error().message + "; " + built.error().message);
    file = std::move(built);
  }
  if (!file) return No(kNoBuildForKernel, file.error().message);
  // Loading would fail, and the kernel would log it as an offence.
  if (!file->info.is_signed && RequiresSignature(host))
    return WhyNotLoaded(host, *file, EKEYREJECTED);
  return Load(host, *file);
}

}  // namespace weft::kernel
