// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/kernel_types.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "node-agent/kernel/tracepoint.h"

namespace weft::kernel {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKernel = "vmlinux";
// The file with a module's tracepoints: the kernel shows a module's sections as files.
constexpr const char* kTracepoints = "sections/__tracepoints_ptrs";

}  // namespace

Result<KernelTypes> KernelTypes::Load(const std::string& folder, const std::string& loaded) {
  KernelTypes types;
  WEFT_ASSIGN(Btf kernel, Btf::Load(folder + "/" + std::string(kKernel)));
  types.kernel_ = std::make_shared<const Btf>(std::move(kernel));
  std::error_code error;
  for (const auto& item : fs::directory_iterator(folder, error)) {
    const std::string name = item.path().filename();
    if (name == kKernel) continue;
    Result<Btf> module = Btf::Load(item.path(), types.kernel_);
    if (!module) {
      types.problems_.push_back("the types of module \"" + name +
                                "\" cannot be read: " + module.error().message);
    } else if (!TracepointNames(*module).empty()) {
      types.modules_.push_back(std::move(*module));
    }
  }
  for (const auto& item : fs::directory_iterator(loaded, error)) {
    const fs::path name = item.path().filename();
    if (fs::exists(item.path() / kTracepoints, error) && !fs::exists(folder / name, error))
      types.problems_.push_back("module \"" + name.string() +
                                "\" has tracepoints, but was built without types (BTF)");
  }
  std::ranges::sort(types.problems_);
  return types;
}

std::vector<std::string> KernelTypes::Match(const Catalogue& catalogue, const std::string& pattern,
                                            const std::vector<std::string>& exclusions) const {
  std::vector<std::string> names = MatchTracepoints(*kernel_, catalogue, pattern, exclusions);
  for (const Btf& module : modules_) {
    const auto more = MatchTracepoints(module, catalogue, pattern, exclusions);
    names.insert(names.end(), more.begin(), more.end());
  }
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

Result<Resolved> KernelTypes::Resolve(const Catalogue& catalogue, std::string_view tracepoint,
                                      const ResolveOptions& options) const {
  for (const Btf& module : modules_)
    if (std::ranges::binary_search(TracepointNames(module), tracepoint))
      return ResolveTracepoint(module, catalogue, tracepoint, options);
  return ResolveTracepoint(*kernel_, catalogue, tracepoint, options);
}

}  // namespace weft::kernel
