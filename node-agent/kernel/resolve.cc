// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/resolve.h"

#include <algorithm>
#include <optional>

#include "lib/event/match.h"
#include "node-agent/kernel/event_builder.h"
#include "node-agent/kernel/tracepoint.h"

namespace weft::kernel {
namespace {

constexpr std::string_view kCurrent = "current";

// Returns the arguments and "current" that an event concerns, as bits of lib/abi/kernel.h.
uint32_t SubjectsOf(const TracepointEntry& entry, const Tracepoint& tracepoint,
                    std::vector<std::string>* left_out) {
  uint32_t subjects = 0;
  for (const std::string& name : entry.subjects) {
    if (name == kCurrent) {
      subjects |= WEFT_KERNEL_SUBJECT_CURRENT;
      continue;
    }
    const auto at = std::ranges::find(tracepoint.arguments, name, &Argument::name);
    if (at == tracepoint.arguments.end()) {
      left_out->push_back("subject " + name + ": this kernel has no such argument");
    } else {
      subjects |= 1u << static_cast<uint32_t>(at - tracepoint.arguments.begin());
    }
  }
  return subjects;
}

// Returns the type's name if the argument points to a structure.
std::string_view StructureOf(const Btf& btf, const Argument& argument) {
  const BtfType pointer = btf.Resolve(argument.type);
  if (pointer.kind != BtfKind::kPointer) return {};
  const BtfType target = btf.Resolve(pointer.size_or_ref);
  return target.kind == BtfKind::kStruct ? target.name : std::string_view{};
}

// Adds every argument as it is; for structures that the catalogue knows, it adds the catalogue's
// fields.
void AddArguments(const FieldMaker& maker, EventBuilder* builder) {
  for (uint32_t i = 0; i < maker.arguments.size(); ++i) {
    const Argument& argument = maker.arguments[i];
    const std::string_view structure = StructureOf(maker.btf, argument);
    const auto* fields = structure.empty() ? nullptr : maker.catalogue.Structure(structure);
    if (fields == nullptr) {
      builder->Add(argument.name, maker.MakeArgument(i));
      continue;
    }
    for (FieldSpec spec : *fields) {
      spec.name = argument.name + "_" + spec.name;
      for (Path& path : spec.paths) path.argument = "$" + std::to_string(i);
      builder->Add(spec.name, maker.Make(spec));
    }
  }
}

bool Matches(const std::string& pattern, const std::string& name) {
  return weft_glob_match_str(pattern.c_str(), name.c_str());
}

}  // namespace

Result<Resolved> ResolveTracepoint(const Btf& btf, const Catalogue& catalogue,
                                   std::string_view tracepoint_name,
                                   const ResolveOptions& options) {
  const TracepointEntry* entry = catalogue.Tracepoint(tracepoint_name);
  if (entry != nullptr && !entry->exception.empty())
    return Fail(ErrorCode::kUnsupported, "tracepoint '" + std::string(tracepoint_name) +
                                             "' cannot be recorded: " + entry->exception);
  WEFT_ASSIGN(const Tracepoint tracepoint, FindTracepoint(btf, tracepoint_name));

  Resolved resolved{.target = tracepoint.name};
  std::vector<std::string> unknown;
  if (entry != nullptr) resolved.subjects = SubjectsOf(*entry, tracepoint, &unknown);
  if (resolved.subjects == 0 && !options.cluster_wide)
    return Fail(ErrorCode::kPermission, "tracepoint '" + tracepoint.name +
                                            "' belongs to no namespace: for a ClusterTrace only");

  FieldMaker maker{.btf = btf,
                   .catalogue = catalogue,
                   .arguments = tracepoint.arguments,
                   .addresses = options.shows_addresses()};
  // An event that concerns one task only is recorded only if that task is in the scope.
  const uint32_t subjects = resolved.subjects;
  if ((subjects & (subjects - 1)) == 0 && (subjects & WEFT_KERNEL_SUBJECT_CURRENT) == 0)
    for (uint32_t i = 0; i < tracepoint.arguments.size(); ++i)
      if (subjects >> i & 1) maker.open_tasks.insert(i);
  EventBuilder builder(catalogue.EventName(tracepoint_name), WEFT_KERNEL_TRACEPOINT);
  if (entry == nullptr || entry->arguments) {
    AddArguments(maker, &builder);
  } else {
    for (const FieldSpec& spec : entry->fields) builder.Add(spec.name, maker.Make(spec));
  }
  WEFT_TRY(builder.Finish(&resolved));
  resolved.left_out.insert(resolved.left_out.end(), unknown.begin(), unknown.end());
  return resolved;
}

std::vector<std::string> MatchTracepoints(const Btf& btf, const Catalogue& catalogue,
                                          const std::string& pattern,
                                          const std::vector<std::string>& exclusions) {
  std::vector<std::string> names = TracepointNames(btf);
  std::erase_if(names, [&](const std::string& name) {
    const std::string event = catalogue.EventName(name);
    const auto means = [&](const std::string& glob) {
      return Matches(glob, name) || Matches(glob, event);
    };
    return !means(pattern) || std::ranges::any_of(exclusions, means);
  });
  return names;
}

}  // namespace weft::kernel
