// SPDX-License-Identifier: Apache-2.0
// See hook_table.h.
#include "node-agent/hooks/hook_table.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "lib/abi/control.h"
#include "lib/api/value_type.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/go_functions.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

// A thunk: push the hook's address; jump to the library; both by the words behind them.
constexpr uint8_t kThunkHead[] = {0xff, 0x35, 10,   0,   0, 0,  // push 10(%rip)
                                  0xff, 0x25, 12,   0,   0, 0,  // jmp *12(%rip)
                                  0xcc, 0xcc, 0xcc, 0xcc};
// That of a function that is replaced: jump to the second word behind it; the first is not used.
constexpr uint8_t kDetourHead[] = {0xff, 0x25, 18,   0,    0,    0,  // jmp *18(%rip)
                                   0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
static_assert(sizeof(kDetourHead) == sizeof(kThunkHead));
constexpr size_t kResumeOffset = sizeof(kThunkHead) + 2 * sizeof(uint64_t);
constexpr const char* kLibrary = "libweft.so";
constexpr const char* kLoadedLibrary = "memfd:libweft.so";  // by an agent (node-agent/attach)

template <typename T>
void Append(std::vector<uint8_t>& to, const T& value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof(value));
}

bool IsWithin(uint64_t address, uint64_t bytes, uint64_t begin, uint64_t size) {
  return address >= begin && address - begin <= size && bytes <= size - (address - begin);
}

bool IsSound(const weft_hook_area& place) {
  return place.code != 0 && place.code_bytes <= WEFT_HOOK_CODE_BYTES &&
         place.data_bytes <= WEFT_HOOK_DATA_BYTES && place.data_bytes >= sizeof(weft_hook_table) &&
         place.code % 4096 == 0 && place.data % 4096 == 0 && place.code < INT64_MAX / 2 &&
         place.data < INT64_MAX / 2;
}

uint64_t& EventOf(weft_hook& hook, Moment moment) {
  return moment == Moment::kEntry ? hook.entry : moment == Moment::kExit ? hook.exit : hook.call;
}

Result<std::vector<uint8_t>> MakeCode(Bytes head, uint64_t first, uint64_t second, uint64_t thunk,
                                      uint64_t address, Bytes code) {
  std::vector<uint8_t> bytes(head.begin(), head.end());
  Append(bytes, first);
  Append(bytes, second);
  WEFT_ASSIGN(const std::vector<uint8_t> moved, Displace(address, code, thunk + kResumeOffset));
  bytes.insert(bytes.end(), moved.begin(), moved.end());
  return bytes;
}

// Reads what the library says. Returns where it lies.
Result<uint64_t> ReadHooks(const ProcessMemory& memory, const LoadedObject& library,
                           weft_hooks& hooks) {
  WEFT_ASSIGN(const UniqueFd file, memory.OpenObject(library));
  const auto distance = FindDynamicSymbol(file.get(), WEFT_HOOKS_SYMBOL);
  if (!distance)
    return Fail(ErrorCode::kNotFound, "its libweft.so is older than this weft: restart it");
  const uint64_t hooks_at = library.begin + *distance;
  if (!memory.Read(hooks_at, &hooks, sizeof(hooks)))
    return Fail(ErrorCode::kNotFound, "its libweft.so cannot be read");
  return hooks_at;
}

Status Corrupt() { return Fail(ErrorCode::kCorrupt, "its table of hooks is damaged"); }

}  // namespace

uint64_t DigestOf(const NewHook& hook) {
  std::string text = hook.function;
  for (const Moment moment : hook.moments) text += "\1" + EventName("", moment);
  if (FiltersExit(*hook.rule)) text += "\1filter";
  for (const api::FunctionArg& arg : hook.rule->args)
    text.append("\1")
        .append(arg.name)
        .append("\2")
        .append(api::NameOf(arg.type))
        .append("\2" + arg.length + "\2" + arg.path);
  // Another object may be loaded in the place of one that is gone.
  text.append(
      reinterpret_cast<const char*>(hook.code.data()),
      std::min<size_t>(hook.code.size(), WEFT_HOOK_JUMP_BYTES + ZYDIS_MAX_INSTRUCTION_LENGTH));
  if (hook.rule->returns) text += "\3" + std::to_string(static_cast<int>(*hook.rule->returns));
  return weft_fnv1a64(text.data(), text.size());
}

Result<std::vector<uint8_t>> MakeThunk(uint64_t thunk, uint64_t hook, uint64_t enter,
                                       uint64_t address, Bytes code) {
  return MakeCode(kThunkHead, hook, enter, thunk, address, code);
}

Result<std::vector<uint8_t>> MakeDetour(uint64_t thunk, uint64_t function, uint64_t address,
                                        Bytes code) {
  return MakeCode(kDetourHead, 0, function, thunk, address, code);
}

bool HookTable::IsLibrary(const LoadedObject& object) {
  return object.name == kLibrary || object.name == kLoadedLibrary;
}

// A thread ends the constructor that it is in when an agent dies. One constructor does all that
// hooks need, and begins with the replacements.
bool HookTable::IsHalfLoaded(const ProcessMemory& memory, const LoadedObject& object) {
  weft_hooks hooks{};
  return object.name == kLoadedLibrary && ReadHooks(memory, object, hooks) &&
         hooks.replacements[WEFT_REPLACED_DL_FIND_OBJECT].function == 0;
}

std::string HookTable::WhyUnknownToUnwinders() const {
  if (!is_attached_ || (header_.replaced & WEFT_REPLACED_UNWINDERS_KNOW) != 0) return "";
  const std::string function = "function that tells unwinders of loaded objects";
  if ((header_.replaced & WEFT_REPLACED_TRIED) == 0)
    return "no " + function +
           " could be replaced, since the process could not be stopped, or an agent ended "
           "meanwhile; record it again";
  if ((header_.replaced & WEFT_REPLACED_NONE_FOUND) != 0)
    return "no " + function + " was found in its symbols";
  if ((header_.replaced & WEFT_REPLACED_OTHERS_FOUND) != 0)
    return "another file than its C library may have a " + function;
  return "a " + function +
         " could not be replaced, since its first bytes cannot be moved, or are too far from "
         "memory for hooks";
}

Result<HookTable> HookTable::Open(const ProcessMemory& memory,
                                  const std::vector<LoadedObject>& objects) {
  WEFT_ASSIGN(ProcessClaim claim, ProcessClaim::Take(memory.pid()));
  const auto library = std::ranges::find_if(objects, [&](const LoadedObject& object) {
    return IsLibrary(object) && !IsHalfLoaded(memory, object);
  });
  if (library == objects.end()) return Fail(ErrorCode::kNotFound, "it has not loaded libweft.so");
  weft_hooks hooks{};
  WEFT_ASSIGN(const uint64_t hooks_at, ReadHooks(memory, *library, hooks));
  if (hooks.magic != WEFT_HOOKS_MAGIC)
    return Fail(
        ErrorCode::kNotFound,
        "its libweft.so makes no system calls: its seccomp filter ends processes that "
        "make the calls of libweft.so, it runs on valgrind, or it was started with libweft.so "
        "before there was an agent (start it without)");
  if (hooks.version != WEFT_HOOKS_VERSION)
    return Fail(ErrorCode::kNotFound, "its libweft.so is of another version: restart it");
  HookTable table(std::move(claim), memory, hooks, hooks_at);
  table.is_attached_ = library->name == kLoadedLibrary;
  for (const weft_hook_area& area : hooks.areas)
    if (IsSound(area)) WEFT_TRY(table.Load(area));
  if (table.areas_.empty()) return Fail(ErrorCode::kNotFound, "it has no memory for hooks");
  return table;
}

// An agent died while a thread ran the library's constructor, which the thread still does; or the
// library is silent.
static bool MayBegin(const ProcessMemory& memory, const std::vector<LoadedObject>& objects) {
  return std::ranges::any_of(objects, [&](const LoadedObject& object) {
    weft_hooks hooks{};
    return object.name == kLoadedLibrary && ReadHooks(memory, object, hooks) && hooks.magic == 0 &&
           !HookTable::IsHalfLoaded(memory, object);
  });
}

Result<HookTable> HookTable::OpenWhenFree(const ProcessMemory& memory,
                                          const std::vector<LoadedObject>& objects) {
  const auto end = std::chrono::steady_clock::now() + kReplacePatience;
  for (;;) {
    auto table = Open(memory, objects);
    const bool passes =
        !table && (table.error().code == ErrorCode::kTimeout || MayBegin(memory, objects));
    if (!passes || std::chrono::steady_clock::now() >= end) return table;
    std::this_thread::sleep_for(kReplacePause);
  }
}

Status HookTable::Load(const weft_hook_area& place) {
  Area area{.place = place};
  if (!memory_->Read(place.data, &area.table, sizeof(area.table))) return Corrupt();
  if (area.table.code_used > place.code_bytes || area.table.code_used % 16 != 0 ||
      area.table.data_used > place.data_bytes || area.table.data_used % 8 != 0)
    return Corrupt();
  size_t count = 0;
  for (uint64_t at = area.table.first; at != 0;) {
    weft_hook hook{};
    if (++count > kMaxHooksOfTable || !IsWithin(at, sizeof(hook), place.data, place.data_bytes) ||
        !memory_->Read(at, &hook, sizeof(hook)))
      return Corrupt();
    // An agent may have died before it put the newest one on.
    const auto before = hooks_.find(hook.address);
    if (before == hooks_.end() || !IsOn(before->second).value_or(false) ||
        IsOn(hook).value_or(false))
      hooks_.insert_or_assign(hook.address, hook);
    area.table.last = at;  // an agent may have died before it wrote it
    at = hook.next;
  }
  areas_.push_back(area);
  return {};
}

Result<weft_hook> HookTable::Add(const NewHook& hook) {
  Error why{ErrorCode::kLimit, 0, "it is farther than 2 GiB from memory for hooks"};
  for (Area& area : areas_) {
    auto added = AddTo(area, hook);
    if (added || added.error().code == ErrorCode::kIo) return added;
    // What keeps a function from being hooked says more than that another area is too far.
    if (added.error().code != ErrorCode::kNotFound) why = std::move(added.error());
  }
  return std::unexpected(std::move(why));
}

Result<std::vector<uint8_t>> HookTable::MakeThunkOf(uint64_t thunk, uint64_t hook_at,
                                                    const NewHook& of, weft_hook& hook) const {
  hook.resume = thunk + kResumeOffset;
  if (of.replaced_by != 0) return MakeDetour(thunk, of.replaced_by, of.address, of.code);
  if (!of.is_go) return MakeThunk(thunk, hook_at, header_.enter, of.address, of.code);
  WEFT_ASSIGN(const GoStackCheck check, FindGoStackCheck(of.address, of.code));
  WEFT_ASSIGN(GoThunk made,
              MakeGoThunk(thunk, hook_at, header_.enter_go, of.address, check, of.code));
  hook.resume = thunk + made.resume;
  return std::move(made.bytes);
}

// All that is written lies in parts of the area that no table names, until the table does.
Result<weft_hook> HookTable::AddTo(Area& area, const NewHook& of) {
  const uint64_t thunk = area.place.code + area.table.code_used;
  uint64_t data = area.place.data + std::max<uint64_t>(area.table.data_used, sizeof(area.table));
  const uint64_t hook_at = data;
  weft_hook hook{.address = of.address, .digest = DigestOf(of)};
  WEFT_ASSIGN(const EventLayout layout, LayOut(*of.rule, of.is_go));
  hook.result = layout.result;
  hook.flags = layout.flags;
  hook.value_count = static_cast<uint32_t>(layout.values.size());
  std::ranges::copy(layout.values, hook.values);
  for (const weft_hook_value& value : layout.values)
    if (value.source == WEFT_HOOK_FLOATING)
      hook.floating_count = std::max(hook.floating_count, value.index + uint32_t{1});
  std::memcpy(hook.original, of.code.data(), WEFT_HOOK_JUMP_BYTES);
  const auto jump = JumpFrom(of.address, thunk);
  if (!jump) return Fail(ErrorCode::kNotFound, jump.error().message);
  std::ranges::copy(*jump, hook.jump);
  if (of.replaced_by != 0) hook.flags = WEFT_HOOK_REPLACES;
  WEFT_ASSIGN(const std::vector<uint8_t> code, MakeThunkOf(thunk, hook_at, of, hook));

  std::vector<uint8_t> bytes(sizeof(hook));
  if (!layout.details.empty()) hook.details = data + bytes.size();
  for (const weft_hook_detail& detail : layout.details) Append(bytes, detail);
  const auto add_event = [&](Moment moment) -> Result<uint64_t> {
    weft_event event{};
    WEFT_ASSIGN(const std::vector<uint8_t> description,
                Describe(*of.rule, of.function, moment, event));
    const uint64_t event_at = data + bytes.size();
    event.desc = reinterpret_cast<const weft_event_desc*>(event_at + sizeof(event));
    Append(bytes, event);
    bytes.insert(bytes.end(), description.begin(), description.end());
    return event_at;
  };
  for (const Moment moment : of.moments) {
    WEFT_ASSIGN(const uint64_t event_at, add_event(moment));
    EventOf(hook, moment) = event_at;
  }
  std::memcpy(bytes.data(), &hook, sizeof(hook));
  if (area.table.code_used + WEFT_HOOK_THUNK_BYTES > area.place.code_bytes ||
      code.size() > WEFT_HOOK_THUNK_BYTES ||
      !IsWithin(data, bytes.size(), area.place.data, area.place.data_bytes))
    return Fail(ErrorCode::kLimit, "the memory for hooks of this process is used up");

  WEFT_TRY(memory_->Write(thunk, code));
  WEFT_TRY(memory_->Write(hook_at, bytes));
  weft_hook_table table = area.table;
  table.code_used += (code.size() + 15) & ~size_t{15};
  table.data_used = hook_at + bytes.size() - area.place.data;
  // First that the room is used, then the hook in the chain: an agent that goes on after a death
  // between two of these writes does not use the room again.
  table.last = hook_at;
  if (table.first == 0) {
    table.first = hook_at;
    WEFT_TRY(memory_->Write(area.place.data, AsBytes(table)));
  } else {
    weft_hook_table before = table;
    before.last = area.table.last;
    WEFT_TRY(memory_->Write(area.place.data, AsBytes(before)));
    WEFT_TRY(memory_->Write(area.table.last + offsetof(weft_hook, next), AsBytes(hook_at)));
    WEFT_TRY(memory_->Write(area.place.data, AsBytes(table)));
  }
  area.table = table;
  hooks_.insert_or_assign(hook.address, hook);
  return hook;
}

Result<bool> HookTable::IsOn(const weft_hook& hook) const {
  uint8_t bytes[WEFT_HOOK_JUMP_BYTES];
  if (!memory_->Read(hook.address, bytes, sizeof(bytes)))
    return Fail(ErrorCode::kUnsupported, "its object is not loaded any more");
  if (std::memcmp(bytes, hook.jump, sizeof(bytes)) == 0) return true;
  if (std::memcmp(bytes, hook.original, sizeof(bytes)) == 0) return false;
  return Fail(ErrorCode::kUnsupported, "another program changed its code");
}

}  // namespace weft::hooks
