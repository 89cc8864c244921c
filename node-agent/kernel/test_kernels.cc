// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/test_kernels.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "lib/base/ascii.h"

namespace weft::kernel::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRunning = "/sys/kernel/btf";
constexpr const char* kTracefs = "/sys/kernel/tracing/events";

// Returns the file of that name below a folder; empty: there is none.
fs::path FindBelow(const fs::path& folder, std::string_view name) {
  std::error_code error;
  for (const auto& item : fs::recursive_directory_iterator(folder, error))
    if (item.path().filename() == name) return item.path();
  return {};
}

Btf Loaded(const std::string& path, std::shared_ptr<const Btf> base) {
  Result<Btf> btf = Btf::Load(path, std::move(base));
  if (!btf) throw std::runtime_error(btf.error().message);
  return std::move(*btf);
}

// Returns the BTF of a module's file, which may be packed.
std::string ModuleBtf(const TestKernel& kernel, const std::string& module) {
  const fs::path modules = fs::path(kernel.folder) / "lib/modules";
  fs::path file = FindBelow(modules, module + ".ko");
  std::string out = fs::temp_directory_path() /
                    ("weft-" + kernel.label + "-" + module + "-" + std::to_string(getpid()));
  std::string unpack;
  if (file.empty()) {
    file = FindBelow(modules, module + ".ko.xz");
    if (file.empty()) throw std::runtime_error(kernel.folder + ": no module " + module);
    unpack = "xz -dc '" + file.string() + "' > '" + out + ".ko' && ";
    file = out + ".ko";
  }
  const std::string command = unpack + "objcopy --dump-section .BTF='" + out + "' '" +
                              file.string() + "' /dev/null 2>&1; rm -f '" + out + ".ko'";
  if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
  return out;
}

std::string LabelOf(const std::string& name) {
  std::string label = "v" + name;
  std::ranges::replace_if(label, [](char c) { return !IsWord(c); }, '_');
  return label;
}

// Returns the names that stand first or second in the brackets of TRACE_EVENT, DEFINE_EVENT and
// their like.
std::set<std::string> EventsOf(const fs::path& path) {
  static const std::regex kEvent(R"((?:EVENT\w*|DECLARE_TRACE\w*)\s*\(\s*(\w+)(?:\s*,\s*(\w+))?)");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> names;
  for (std::sregex_iterator at(text.begin(), text.end(), kEvent), end; at != end; ++at) {
    names.insert((*at)[1]);
    names.insert((*at)[2]);
  }
  return names;
}

}  // namespace

fs::path KernelCache() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  const bool has_cache = cache != nullptr && *cache != '\0';
  return (has_cache ? fs::path(cache) : fs::path(home != nullptr ? home : "/root") / ".cache") /
         "weft/kernels";
}

std::vector<TestKernel> TestKernels() {
  std::vector<TestKernel> kernels;
  if (const char* wanted = std::getenv("WEFT_KERNELS")) {
    std::istringstream names(wanted);
    for (std::string name; std::getline(names, name, ',');)
      kernels.push_back({LabelOf(name), KernelCache() / name});
    return kernels;
  }
  std::error_code error;
  if (fs::exists(std::string(kRunning) + "/vmlinux")) kernels.push_back({"running", ""});
  for (const auto& item : fs::directory_iterator(KernelCache(), error)) {
    // A kernel without packaged sources was built here, with little but checks
    // (kmod/qemu/debug.config).
    if (!fs::exists(item.path() / "btf", error) || !fs::exists(item.path() / "usr/src", error))
      continue;
    kernels.push_back({LabelOf(item.path().filename()), item.path()});
  }
  return kernels;
}

std::vector<Btf> LoadKernel(const TestKernel& kernel) {
  std::vector<Btf> all;
  const bool running = kernel.folder.empty();
  const std::string path = running ? std::string(kRunning) + "/vmlinux" : kernel.folder + "/btf";
  const auto base = std::make_shared<const Btf>(Loaded(path, nullptr));
  all.push_back(Loaded(path, nullptr));
  for (const std::string module : {"ext4", "xfs"}) {
    const std::string file =
        running ? std::string(kRunning) + "/" + module : ModuleBtf(kernel, module);
    if (running && !fs::exists(file)) continue;
    all.push_back(Loaded(file, base));
    if (!running) fs::remove(file);
  }
  return all;
}

bool KnowsSubsystems(const TestKernel& kernel) {
  std::error_code error;
  return !kernel.folder.empty() || fs::exists(kTracefs, error);
}

std::set<std::string> SubsystemNames(const TestKernel& kernel, std::string_view subsystem) {
  std::error_code error;
  std::set<std::string> names;
  if (kernel.folder.empty()) {
    for (const auto& item : fs::directory_iterator(fs::path(kTracefs) / subsystem, error))
      names.insert(item.path().filename());
    return names;
  }
  for (const auto& tree : fs::directory_iterator(kernel.folder + "/usr/src", error)) {
    const fs::path header = tree.path() / "include/trace/events" / (std::string(subsystem) + ".h");
    if (fs::exists(header, error)) names = EventsOf(header);
  }
  return names;
}

std::map<std::string, uint32_t> SyscallTable(const TestKernel& kernel, bool compat) {
  std::map<std::string, uint32_t> table;
  if (kernel.folder.empty()) return table;
  const std::string name = compat ? "unistd_32.h" : "unistd_64.h";
  std::error_code error;
  for (const auto& tree : fs::directory_iterator(kernel.folder + "/usr/src", error)) {
    std::ifstream file(tree.path() / "arch/x86/include/generated/uapi/asm" / name);
    for (std::string define, call, number; file >> define;)
      if (define == "#define" && file >> call >> number && call.starts_with("__NR_"))
        table[call.substr(5)] = static_cast<uint32_t>(std::stoul(number));
  }
  return table;
}

}  // namespace weft::kernel::testing
