// SPDX-License-Identifier: Apache-2.0
// See replace_functions.h.
#include "node-agent/hooks/replace_functions.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lib/api/trace.h"
#include "node-agent/hooks/code_change.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/hook_table.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/process_memory.h"

namespace weft::hooks {
namespace {

// By enum weft_replaced. `call`: the system call that the function makes; 0: any, or none.
struct Replaced {
  const char* name;
  bool makes_call;
  uint32_t call;
};
constexpr Replaced kReplaced[] = {
    {"_dl_find_object", false, 0}, {"dl_iterate_phdr", false, 0}, {"clone", true, 56},
    {"prctl", true, 157},          {"setns", true, 308},          {"syscall", true, 0},
    {"unshare", true, 272},        {"vfork", true, 58},           {"__errno_location", false, 0}};
static_assert(std::size(kReplaced) == WEFT_REPLACED_COUNT);

bool Contains(Bytes code, Bytes wanted) { return !std::ranges::search(code, wanted).empty(); }

// A static program may have a function of its own of such a name: that of a C library makes the
// system call.
bool MakesCall(Bytes code, const Replaced& of) {
  static constexpr uint8_t kCall[] = {0x0f, 0x05};
  std::vector<uint8_t> number{0xb8};  // mov $number, %eax
  const Bytes bytes = AsBytes(of.call);
  number.insert(number.end(), bytes.begin(), bytes.end());
  return Contains(code, kCall) && (of.call == 0 || Contains(code, number));
}

class Replacer {
 public:
  Replacer(const ProcessMemory& memory, HookTable& table) : memory_(memory), table_(table) {}

  Status Replace(const std::vector<LoadedObject>& objects, std::chrono::nanoseconds& stopped) {
    Find(objects);
    std::map<size_t, weft_hook> hooks;
    for (const auto& [number, function] : found_) {
      // The library's function must be able to set errno.
      if (kReplaced[number].makes_call && !found_.contains(WEFT_REPLACED_ERRNO_LOCATION)) continue;
      const weft_replacement& by = table_.header().replacements[number];
      uint64_t original = function.address;
      if (by.function != 0) {
        const auto hook = Prepare(number, function, by.function);
        if (!hook) continue;
        hooks.emplace(number, *hook);
        original = hook->resume;
      }
      if (by.original != 0) WEFT_TRY(memory_.Write(by.original, AsBytes(original)));
    }
    std::vector<Change> changes;
    for (const auto& [number, hook] : hooks)
      if (!table_.IsOn(hook).value_or(true)) changes.push_back(PutJump(hook));
    WEFT_TRY(ChangeCode(changes, memory_, stopped));
    const auto is_on = [&](size_t number) {
      const auto hook = hooks.find(number);
      return hook != hooks.end() && table_.IsOn(hook->second).value_or(false);
    };
    uint64_t state = WEFT_REPLACED_TRIED;
    // glibc before 2.35, and musl, have no _dl_find_object; static programs have what they use.
    const auto is_on_if_there = [&](size_t number) {
      return is_on(number) || !found_.contains(number);
    };
    if (is_certain_ && is_on_if_there(WEFT_REPLACED_DL_FIND_OBJECT) &&
        is_on_if_there(WEFT_REPLACED_DL_ITERATE_PHDR) &&
        (is_on(WEFT_REPLACED_DL_FIND_OBJECT) || is_on(WEFT_REPLACED_DL_ITERATE_PHDR)))
      state |= WEFT_REPLACED_UNWINDERS_KNOW;
    else if (!is_certain_)
      state |= WEFT_REPLACED_OTHERS_FOUND;
    else if (!found_.contains(WEFT_REPLACED_DL_FIND_OBJECT) &&
             !found_.contains(WEFT_REPLACED_DL_ITERATE_PHDR))
      state |= WEFT_REPLACED_NONE_FOUND;
    return memory_.Write(table_.header_at() + offsetof(weft_hooks, replaced), AsBytes(state));
  }

 private:
  struct Found {
    uint64_t address = 0;
    uint64_t size = 0;
    bool is_static = false;
    bool is_c_library = false;  // or the static program
  };

  void Find(const std::vector<LoadedObject>& objects) {
    const auto is_c_library = [](const LoadedObject& object) { return IsCLibrary(object.name); };
    const bool is_static = std::ranges::none_of(objects, is_c_library);
    std::set<std::string> names;
    for (const Replaced& replaced : kReplaced) names.insert(replaced.name);
    for (const LoadedObject& object : objects) {
      if (HookTable::IsLibrary(object)) continue;
      const auto file = memory_.OpenObject(object);
      if (!file) is_certain_ = false;
      // A file that is no ELF file defines nothing.
      std::map<std::string, NamedFunction> functions;
      if (file) functions = FindFunctions(file->get(), names, is_static).value_or(functions);
      for (const auto& [name, function] : functions)
        Add(name, {.address = object.begin + function.value,
                   .size = function.size,
                   .is_static = is_static,
                   .is_c_library = is_static || is_c_library(object)});
    }
  }

  void Add(const std::string& name, const Found& function) {
    const auto* const at = std::ranges::find_if(
        kReplaced, [&](const Replaced& replaced) { return name == replaced.name; });
    const auto number = static_cast<size_t>(at - kReplaced);
    const bool is_first = !found_.contains(number);
    // Unwinders may ask another object's function, which may keep what it was told before.
    if (!at->makes_call && number != WEFT_REPLACED_ERRNO_LOCATION &&
        !(is_first && function.is_c_library))
      is_certain_ = false;
    if (function.is_c_library) found_.emplace(number, function);
  }

  // Writes the hook of a function, unless an agent did that.
  Result<weft_hook> Prepare(size_t number, const Found& function, uint64_t replaced_by) {
    if (const auto old = table_.hooks().find(function.address);
        old != table_.hooks().end() && (old->second.flags & WEFT_HOOK_REPLACES) != 0)
      return old->second;
    const api::FunctionRule nothing;
    NewHook hook{.address = function.address, .rule = &nothing, .function = kReplaced[number].name};
    hook.replaced_by = replaced_by;
    if (function.size < WEFT_HOOK_JUMP_BYTES || function.size > kMaxFunctionBytes)
      return Fail(ErrorCode::kUnsupported, "its symbol has another size");
    hook.code.resize(function.size);
    if (!memory_.Read(hook.address, hook.code.data(), hook.code.size()))
      return Fail(ErrorCode::kUnsupported, "its code cannot be read");
    if (function.is_static && kReplaced[number].makes_call &&
        !MakesCall(hook.code, kReplaced[number]))
      return Fail(ErrorCode::kUnsupported, "it is another function");
    WEFT_TRY(CheckEntry(hook.address, hook.code, [this](uint64_t at, void* to, size_t size) {
      return memory_.Read(at, to, size);
    }));
    return table_.Add(hook);
  }

  const ProcessMemory& memory_;
  HookTable& table_;
  std::map<size_t, Found> found_;  // by enum weft_replaced
  bool is_certain_ = true;         // which functions unwinders ask
};

}  // namespace

Status ReplaceFunctions(int32_t pid, std::chrono::nanoseconds& stopped) {
  // Its parent has the same functions, and is not stopped with it.
  if (IsOnParentsMemory(pid)) return {};
  WEFT_ASSIGN(const std::vector<MappedRange> ranges, ReadRanges(pid));
  const std::vector<LoadedObject> objects = ObjectsOf(ranges);
  WEFT_ASSIGN(const ProcessMemory memory, ProcessMemory::Open(pid));
  WEFT_ASSIGN(HookTable table, HookTable::OpenWhenFree(memory, objects));
  // Go's programs have no exits, unwind by their own tables, and make system calls themselves.
  if (!table.is_attached() || table.takes_go() ||
      (table.header().replaced & WEFT_REPLACED_TRIED) != 0 || HasShadowStack(pid))
    return {};
  return Replacer(memory, table).Replace(objects, stopped);
}

}  // namespace weft::hooks
