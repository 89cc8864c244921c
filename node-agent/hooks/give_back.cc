// SPDX-License-Identifier: Apache-2.0
// See give_back.h.
#include "node-agent/hooks/give_back.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <vector>

#include "node-agent/hooks/code_change.h"
#include "node-agent/hooks/hook_table.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/process_memory.h"
#include "node-agent/hooks/stopped_process.h"

namespace weft::hooks {
namespace {

template <typename T>
Result<T> ReadWord(const ProcessMemory& memory, uint64_t address) {
  T word{};
  if (!memory.Read(address, &word, sizeof(word)))
    return Fail(ErrorCode::kNotFound, "its libweft.so cannot be read");
  return word;
}

// The calls of hooked functions that run (ust-injector/preload/hook_calls.h). The process is
// stopped.
class RunningCalls {
 public:
  RunningCalls(const ProcessMemory& memory, const weft_hook_places& places)
      : memory_(memory), places_(places) {}

  // Finds the slots that lead to a stub, and what each is to have instead.
  Status Find() {
    slots_.clear();
    WEFT_ASSIGN(const auto first, ReadWord<uint64_t>(memory_, places_.calls));
    WEFT_ASSIGN(const auto used, ReadWord<uint32_t>(memory_, places_.calls_used));
    if (places_.call_bytes < sizeof(weft_hook_call_head) || places_.call_bytes > kMaxCallBytes)
      return Fail(ErrorCode::kCorrupt, "its table of calls is damaged");
    heads_.resize(first == 0 ? 0 : std::min(used, WEFT_HOOK_STUBS));
    for (size_t i = 0; i < heads_.size(); ++i) {
      const uint64_t at = first + i * places_.call_bytes;
      WEFT_ASSIGN(heads_[i], ReadWord<weft_hook_call_head>(memory_, at));
    }
    for (const weft_hook_call_head& head : heads_)
      if (head.turn % 2 != 0) Add(head.slot);
    return {};
  }

  // Lets these calls return to their callers. A part of it may be done.
  [[nodiscard]] Status Restore() const {
    for (const auto& [slot, caller] : slots_) WEFT_TRY(memory_.Write(slot, AsBytes(caller)));
    return {};
  }

  [[nodiscard]] bool Has(uint64_t slot) const { return slots_.contains(slot); }

  // Returns the number of the stub whose call returns to `address`; 0: that is in no stub.
  [[nodiscard]] uint32_t StubAt(uint64_t address) const {
    const uint64_t distance = address - places_.stubs;
    return distance < uint64_t{WEFT_HOOK_STUBS} * WEFT_HOOK_STUB_BYTES &&
                   distance % WEFT_HOOK_STUB_BYTES == WEFT_HOOK_STUB_RETURN
               ? static_cast<uint32_t>(distance / WEFT_HOOK_STUB_BYTES)
               : 0;
  }

 private:
  // A function that was jumped to at the end of another one has that one's slot, and its stub is
  // there. What is not of the slot's own call is what another call left.
  void Add(uint64_t slot) {
    uint64_t content = 0;
    const uint32_t stub = memory_.Read(slot, &content, sizeof(content)) ? StubAt(content) : 0;
    if (stub == 0 || stub >= heads_.size() || heads_[stub].slot != slot ||
        heads_[stub].turn % 2 == 0)
      return;
    const auto data = ReadWord<weft_hook_stub_data>(
        memory_, places_.stub_data + stub * sizeof(weft_hook_stub_data));
    if (data) slots_.emplace(slot, data->caller);
  }

  const ProcessMemory& memory_;
  const weft_hook_places& places_;
  std::vector<weft_hook_call_head> heads_;
  std::map<uint64_t, uint64_t> slots_;
};

class Giver {
 public:
  Giver(const ProcessMemory& memory, const HookTable& table, const std::vector<MappedRange>& ranges,
        const std::vector<LoadedObject>& objects)
      : memory_(memory), table_(table), calls_(memory, table.header().places) {
    for (const LoadedObject& object : objects)
      if (HookTable::IsLibrary(object))
        for (const MappedRange& range : object.code) library_.push_back({range.begin, range.end});
    for (const weft_hook_area& area : table.header().areas)
      if (area.code != 0) library_.push_back({area.code, area.code + area.code_bytes});
    // The library reads the clock there.
    for (const MappedRange& range : ranges)
      if (range.path == "[vdso]") vdso_.push_back({range.begin, range.end});
  }

  Status Give() {
    std::vector<Change> all, seen;  // with and without what unwinders ask
    for (const auto& [address, hook] : table_.hooks()) {
      if ((hook.flags & WEFT_HOOK_REPLACES) == 0 || !table_.IsOn(hook).value_or(false)) continue;
      all.push_back(TakeOff(hook));
      if (!IsForUnwinders(hook)) seen.push_back(TakeOff(hook));
    }
    if (all.empty()) return {};
    // An agent that dies from here on leaves functions of which the next one takes nothing for
    // granted.
    const uint64_t replaced_at = table_.header_at() + offsetof(weft_hooks, replaced);
    WEFT_TRY(memory_.Write(replaced_at, AsBytes(uint64_t{0})));
    // A thread may be in the library, or unwind, again and again.
    const auto end = std::chrono::steady_clock::now() + kGiveBackPatience;
    Status given;
    do {
      given = Give(all, true);
    } while (!given && given.error().code == ErrorCode::kTimeout &&
             std::chrono::steady_clock::now() < end);
    if (!given && given.error().code == ErrorCode::kTimeout && !seen.empty())
      given = Give(seen, false);
    return given;
  }

 private:
  Status Give(const std::vector<Change>& changes, bool with_unwinders) {
    std::chrono::nanoseconds stopped{};
    return ChangeCode(changes, memory_, stopped,
                      [&](const StoppedProcess& process) -> Result<bool> {
                        if (process.Executes(library_) || process.IsCalledFrom(library_, vdso_))
                          return false;
                        if (with_unwinders) {
                          WEFT_TRY(calls_.Find());
                          if (IsUnwinding(process)) return false;
                          WEFT_TRY(calls_.Restore());
                        }
                        WEFT_TRY(Silence());
                        return true;
                      });
  }

  [[nodiscard]] bool IsForUnwinders(const weft_hook& hook) const {
    return std::ranges::any_of(
        std::array{WEFT_REPLACED_DL_FIND_OBJECT, WEFT_REPLACED_DL_ITERATE_PHDR}, [&](auto number) {
          const auto original =
              ReadWord<uint64_t>(memory_, table_.header().replacements[number].original);
          return original && *original == hook.resume;
        });
  }

  // An unwinder that has read the return address of a stub asks for the stub next. In front of a
  // callback of the program's lies the library, which an exception may pass.
  [[nodiscard]] bool IsUnwinding(const StoppedProcess& process) const {
    const weft_hook_places& places = table_.header().places;
    const Span walk{places.walk, places.walk_end};
    return process.Holds([&](uint64_t at, uint64_t word) {
      return walk.Contains(word) || (calls_.StubAt(word) != 0 && !calls_.Has(at));
    });
  }

  // A library that is silent for good, because of a filter, stays so.
  [[nodiscard]] Status Silence() const {
    const uint64_t silent = table_.header().places.silent;
    WEFT_ASSIGN(const auto now, ReadWord<uint32_t>(memory_, silent));
    return now != 0 ? Status() : memory_.Write(silent, AsBytes(uint32_t{WEFT_SILENT_DETACHED}));
  }

  const ProcessMemory& memory_;
  const HookTable& table_;
  RunningCalls calls_;
  std::vector<Span> library_;  // code of the library and for it
  std::vector<Span> vdso_;
};

struct Opened {
  ProcessMemory memory;
  std::vector<MappedRange> ranges;
  std::vector<LoadedObject> objects;
};

Result<Opened> OpenProcess(int32_t pid) {
  WEFT_ASSIGN(std::vector<MappedRange> ranges, ReadRanges(pid));
  std::vector<LoadedObject> objects = ObjectsOf(ranges);
  WEFT_ASSIGN(ProcessMemory memory, ProcessMemory::Open(pid));
  return Opened{std::move(memory), std::move(ranges), std::move(objects)};
}

}  // namespace

Status GiveBackFunctions(int32_t pid) {
  WEFT_ASSIGN(const Opened process, OpenProcess(pid));
  WEFT_ASSIGN(const HookTable table, HookTable::OpenWhenFree(process.memory, process.objects));
  if (!table.is_attached()) return {};
  return Giver(process.memory, table, process.ranges, process.objects).Give();
}

Result<bool> IsDetached(int32_t pid) {
  WEFT_ASSIGN(const Opened process, OpenProcess(pid));
  WEFT_ASSIGN(const HookTable table, HookTable::OpenWhenFree(process.memory, process.objects));
  if (!table.is_attached()) return false;
  WEFT_ASSIGN(const auto silent, ReadWord<uint32_t>(process.memory, table.header().places.silent));
  return silent == WEFT_SILENT_DETACHED;
}

Status WakeLibrary(int32_t pid, bool has_filter) {
  WEFT_ASSIGN(const Opened process, OpenProcess(pid));
  WEFT_ASSIGN(const HookTable table, HookTable::OpenWhenFree(process.memory, process.objects));
  const weft_hook_places& places = table.header().places;
  WEFT_ASSIGN(const auto silent, ReadWord<uint32_t>(process.memory, places.silent));
  if (!table.is_attached() || silent != WEFT_SILENT_DETACHED) return {};
  if ((table.header().replaced & WEFT_REPLACED_TRIED) == 0)
    return Fail(ErrorCode::kTimeout, "its functions were given back meanwhile");
  if (has_filter)
    WEFT_TRY(process.memory.Write(places.filter, AsBytes(uint32_t{WEFT_FILTER_UNTRIED})));
  WEFT_TRY(process.memory.Write(places.clock_known, AsBytes(uint32_t{0})));
  return process.memory.Write(places.silent, AsBytes(uint32_t{0}));
}

}  // namespace weft::hooks
