// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/kernel_types.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "node-agent/kernel/tracepoint.h"

namespace weft::kernel {
namespace {

constexpr std::string_view kKernel = "vmlinux";

}  // namespace

Result<KernelTypes> KernelTypes::Load(const std::string& folder) {
  KernelTypes types;
  WEFT_ASSIGN(Btf kernel, Btf::Load(folder + "/" + std::string(kKernel)));
  types.kernel_ = std::make_shared<const Btf>(std::move(kernel));
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    if (item.path().filename() == kKernel) continue;
    Result<Btf> module = Btf::Load(item.path(), types.kernel_);
    if (!module) {
      types.problems_.push_back(module.error().message);
    } else if (!TracepointNames(*module).empty()) {
      types.modules_.push_back(std::move(*module));
    }
  }
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
