// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/probes.h"

#include <algorithm>
#include <optional>

#include "node-agent/kernel/event_builder.h"

namespace weft::kernel {
namespace {

// Numbers of the arguments of KPROBE and KRETPROBE (lib/abi/fetch.h).
constexpr size_t kRegisters = 6;
constexpr uint32_t kAddress = 6;
constexpr uint32_t kReturned = 7;
constexpr uint32_t kDuration = 8;

struct Prototype {
  std::vector<BtfParameter> parameters;
  uint32_t returns = 0;  // type
};

bool IsOneRegister(const Btf& btf, uint32_t type) {
  const BtfType resolved = btf.Resolve(type);
  const bool number = resolved.kind == BtfKind::kInt || resolved.kind == BtfKind::kEnum ||
                      resolved.kind == BtfKind::kEnum64;
  return resolved.kind == BtfKind::kPointer || (number && resolved.size_or_ref <= 8);
}

// Nothing: BTF does not have it, or its parameters are not one a register.
std::optional<Prototype> PrototypeOf(const Btf& btf, const std::string& function) {
  const auto found = btf.Find(BtfKind::kFunction, function);
  if (!found) return std::nullopt;
  const BtfType type = btf.Type(found->size_or_ref);
  Prototype prototype{.parameters = btf.Parameters(type), .returns = type.size_or_ref};
  for (const BtfParameter& parameter : prototype.parameters)
    if (!IsOneRegister(btf, parameter.type)) return std::nullopt;
  return prototype;
}

// Returns the six registers with the parameters' names and types, then the address.
std::vector<Argument> ArgumentsOf(const std::optional<Prototype>& prototype) {
  std::vector<Argument> arguments;
  for (size_t i = 0; i < kRegisters; ++i) {
    Argument argument{.name = "arg" + std::to_string(i)};
    if (prototype && i < prototype->parameters.size()) {
      const BtfParameter& parameter = prototype->parameters[i];
      if (!parameter.name.empty()) argument.name = parameter.name;
      argument.type = parameter.type;
    }
    arguments.push_back(std::move(argument));
  }
  arguments.push_back({.name = "ip"});
  return arguments;
}

FieldSpec Numbered(const std::string& name, uint32_t number) {
  return {.name = name, .paths = {{.argument = "$" + std::to_string(number)}}};
}

}  // namespace

Result<Resolved> ResolveKprobe(const Btf& btf, const Catalogue& catalogue,
                               const KernelSymbols& symbols, const ProbePlace& place,
                               const ResolveOptions& options) {
  WEFT_TRY(symbols.CheckFunction(place.function, place.offset));
  const auto prototype =
      place.offset == 0 ? PrototypeOf(btf, place.function) : std::optional<Prototype>();
  const std::vector<Argument> arguments = ArgumentsOf(prototype);
  const FieldMaker maker{.btf = btf,
                         .catalogue = catalogue,
                         .arguments = arguments,
                         .addresses = options.shows_addresses(),
                         .distrust = true,
                         .has_user_addresses = options.has_user_addresses};
  EventBuilder builder(place.event, WEFT_KERNEL_KPROBE);
  builder.Add("ip", maker.MakeArgument(kAddress));
  const size_t count = prototype ? std::min(prototype->parameters.size(), kRegisters) : kRegisters;
  for (uint32_t i = 0; i < count; ++i) builder.Add(arguments[i].name, maker.MakeArgument(i));
  Resolved resolved{
      .target = place.function, .offset = place.offset, .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

Result<Resolved> ResolveKretprobe(const Btf& btf, const Catalogue& catalogue,
                                  const KernelSymbols& symbols, const ProbePlace& place,
                                  const ResolveOptions& options) {
  WEFT_TRY(symbols.CheckFunction(place.function, 0));
  if (place.offset != 0) return Fail(ErrorCode::kInvalid, "a probe at a return has no offset");
  const auto prototype = PrototypeOf(btf, place.function);
  std::vector<Argument> arguments = ArgumentsOf(prototype);
  const bool returns = !prototype || btf.Resolve(prototype->returns).kind != BtfKind::kVoid;
  const bool typed = prototype && IsOneRegister(btf, prototype->returns);
  arguments.push_back({.name = "ret", .type = typed ? prototype->returns : 0});
  const auto number = btf.Find(BtfKind::kInt, "long unsigned int");
  arguments.push_back({.name = "duration", .type = number ? number->id : 0});
  const FieldMaker maker{.btf = btf,
                         .catalogue = catalogue,
                         .arguments = arguments,
                         .addresses = options.shows_addresses(),
                         .distrust = true,
                         .has_user_addresses = options.has_user_addresses};
  EventBuilder builder(place.event, WEFT_KERNEL_KRETPROBE);
  builder.Add("ip", maker.MakeArgument(kAddress));
  if (returns) builder.Add("ret", maker.MakeArgument(kReturned));
  builder.Add("duration", maker.Make(Numbered("duration", kDuration)));
  Resolved resolved{.target = place.function, .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

}  // namespace weft::kernel
