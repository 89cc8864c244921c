// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/statedump.h"

#include <algorithm>
#include <span>
#include <vector>

#include "node-agent/kernel/event_builder.h"

namespace weft::kernel {
namespace {

// A declaration as in C. For a pointer to a structure, it has only the structure's name and a star.
struct Declared {
  std::string_view name, type;
};

constexpr std::string_view kNumber = "long unsigned int";
constexpr std::string_view kInt = "int";
constexpr std::string_view kText = "char*";
constexpr std::string_view kTask = "task_struct*";

constexpr Declared kStart[] = {{"number", kNumber}};
constexpr Declared kEnd[] = {{"number", kNumber}, {"found", kNumber}, {"lost", kNumber}};
constexpr Declared kTaskArguments[] = {{"task", kTask}, {"parent", kTask}, {"vtid", kInt},
                                       {"vpid", kInt},  {"vppid", kInt},   {"status", kInt}};
constexpr Declared kFile[] = {
    {"task", kTask}, {"file", "file*"}, {"fd", kInt}, {"path", kText}, {"vpid", kInt}};
constexpr Declared kSocket[] = {{"task", kTask},       {"file", "file*"}, {"fd", kInt},
                                {"socket", "socket*"}, {"sk", "sock*"},   {"vpid", kInt}};
constexpr Declared kMapping[] = {{"task", kTask},
                                 {"vma", "vm_area_struct*"},
                                 {"path", kText},
                                 {"vpid", kInt},
                                 {"inode", "inode*"}};
constexpr Declared kInterface[] = {{"net", "net*"}, {"device", "net_device*"}};
constexpr Declared kBlockDevice[] = {{"device", "device*"}};
constexpr Declared kInterrupt[] = {{"irq", kInt}, {"data", "irq_data*"}, {"action", "irqaction*"}};
constexpr Declared kCpu[] = {{"cpu", kInt},     {"cpuinfo", "cpuinfo_x86*"},
                             {"package", kInt}, {"core", kInt},
                             {"node", kInt},    {"online", kInt}};

struct State {
  std::string_view name;
  uint32_t number;  // enum weft_kernel_state
  std::span<const Declared> arguments;
};

constexpr State kStates[] = {
    {"start", WEFT_KERNEL_STATE_START, kStart},
    {"end", WEFT_KERNEL_STATE_END, kEnd},
    {"process", WEFT_KERNEL_STATE_PROCESS, kTaskArguments},
    {"thread", WEFT_KERNEL_STATE_THREAD, kTaskArguments},
    {"file", WEFT_KERNEL_STATE_FILE, kFile},
    {"socket", WEFT_KERNEL_STATE_SOCKET, kSocket},
    {"mapping", WEFT_KERNEL_STATE_MAPPING, kMapping},
    {"interface", WEFT_KERNEL_STATE_INTERFACE, kInterface},
    {"block_device", WEFT_KERNEL_STATE_BLOCK_DEVICE, kBlockDevice},
    {"interrupt", WEFT_KERNEL_STATE_INTERRUPT, kInterrupt},
    {"cpu", WEFT_KERNEL_STATE_CPU, kCpu},
};

}  // namespace

// Pointers have no names: one walk finds those to structures and to char.
Statedump::Statedump(const Btf& btf) : btf_(btf) {
  for (uint32_t id = 1; id < btf.end(); ++id) {
    const BtfType pointer = btf.Type(id);
    if (pointer.kind != BtfKind::kPointer) continue;
    const BtfType target = btf.Type(pointer.size_or_ref);
    const bool text = target.kind == BtfKind::kInt && target.name == "char";
    if (target.kind == BtfKind::kStruct || text) pointers_.emplace(target.name, id);
  }
}

// Returns 0, an unknown type, if this kernel has no such type.
uint32_t Statedump::TypeOf(std::string_view declared) const {
  if (declared.ends_with('*')) {
    declared.remove_suffix(1);
    const auto found = pointers_.find(declared);
    return found == pointers_.end() ? 0 : found->second;
  }
  const auto number = btf_.Find(BtfKind::kInt, declared);
  return number ? number->id : 0;
}

Result<Resolved> Statedump::Resolve(const Catalogue& catalogue, const StateEntry& entry,
                                    const ResolveOptions& options) const {
  const auto state = std::ranges::find(kStates, entry.of, &State::name);
  if (state == std::end(kStates))
    return Fail(ErrorCode::kInvalid, "event '" + entry.event + "': what is '" + entry.of + "'?");
  if (state->number >= WEFT_KERNEL_STATE_BLOCK_DEVICE && !options.cluster_wide)
    return Fail(ErrorCode::kPermission,
                "event '" + entry.event + "' belongs to no namespace: for a ClusterTrace only");
  std::vector<Argument> arguments;
  for (const Declared& argument : state->arguments)
    arguments.push_back({.name = std::string(argument.name), .type = TypeOf(argument.type)});
  // The dump visits only tasks in scope, and shows only parents in scope.
  const FieldMaker maker{.btf = btf_,
                         .catalogue = catalogue,
                         .arguments = arguments,
                         .addresses = options.shows_addresses(),
                         .open_tasks = {0}};
  EventBuilder builder(entry.event, WEFT_KERNEL_STATE);
  for (const FieldSpec& spec : entry.fields) builder.Add(spec.name, maker.Make(spec));
  Resolved resolved{.number = state->number};
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

}  // namespace weft::kernel
