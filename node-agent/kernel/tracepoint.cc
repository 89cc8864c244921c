// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/tracepoint.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "lib/abi/fetch.h"
#include "lib/event/text.h"

namespace weft::kernel {
namespace {

constexpr std::string_view kProbeType = "btf_trace_";
constexpr std::string_view kIterator = "__traceiter_";

// Returns the function's prototype, or that of the probe's type.
std::optional<BtfType> Prototype(const Btf& btf, std::string_view name) {
  if (const auto function = btf.Find(BtfKind::kFunction, std::string(kIterator).append(name)))
    return btf.Type(function->size_or_ref);
  const auto type = btf.Find(BtfKind::kTypedef, std::string(kProbeType).append(name));
  if (!type) return std::nullopt;
  const BtfType pointer = btf.Resolve(type->id);
  return btf.Type(pointer.size_or_ref);
}

bool FitsARegister(const Btf& btf, uint32_t type) {
  const BtfType resolved = btf.Resolve(type);
  switch (resolved.kind) {
    case BtfKind::kInt:
    case BtfKind::kEnum:
    case BtfKind::kEnum64:
      return std::has_single_bit(resolved.size_or_ref) && resolved.size_or_ref <= sizeof(uint64_t);
    case BtfKind::kPointer:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<std::string> TracepointNames(const Btf& btf) {
  std::vector<std::string> names;
  for (const BtfType& type : btf.FindPrefix(BtfKind::kTypedef, kProbeType))
    names.emplace_back(type.name.substr(kProbeType.size()));
  for (const BtfType& function : btf.FindPrefix(BtfKind::kFunction, kIterator))
    names.emplace_back(function.name.substr(kIterator.size()));
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  return names;
}

Result<Tracepoint> FindTracepoint(const Btf& btf, std::string_view name) {
  const auto prototype = Prototype(btf, name);
  // A tracepoint's own name may begin with a digit (9p_client_req).
  if (name.empty() || !prototype || prototype->kind != BtfKind::kPrototype ||
      !IsIdentifier(std::string(kProbeType).append(name)))
    return Fail(ErrorCode::kNotFound, "this kernel has no tracepoint '" + std::string(name) + "'");
  const std::vector<BtfParameter> parameters = btf.Parameters(*prototype);
  Tracepoint tracepoint{.name = std::string(name)};
  for (size_t i = 1; i < parameters.size(); ++i) {  // the first is the probe's data
    const BtfParameter& parameter = parameters[i];
    std::string argument(parameter.name);
    if (argument.empty()) argument = "arg" + std::to_string(i - 1);
    if (!FitsARegister(btf, parameter.type))
      return Fail(ErrorCode::kUnsupported, "tracepoint '" + tracepoint.name + "' passes '" +
                                               argument + "' by value, a structure");
    tracepoint.arguments.push_back({std::move(argument), parameter.type});
  }
  if (tracepoint.arguments.size() > WEFT_FETCH_MAX_ARGS)
    return Fail(ErrorCode::kUnsupported, "tracepoint '" + tracepoint.name + "' passes " +
                                             std::to_string(tracepoint.arguments.size()) +
                                             " arguments, more than " +
                                             std::to_string(WEFT_FETCH_MAX_ARGS));
  return tracepoint;
}

}  // namespace weft::kernel
