// SPDX-License-Identifier: Apache-2.0
// See hook_process.h.
#include "node-agent/hooks/hook_process.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "lib/api/filters.h"
#include "lib/api/function_args.h"
#include "lib/api/function_sets.h"
#include "node-agent/hooks/code_change.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/give_back.h"
#include "node-agent/hooks/go_functions.h"
#include "node-agent/hooks/helper_program.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

class Planner {
 public:
  Planner(const ProcessMemory& memory, const std::vector<HookRule>& rules, FunctionCache& cache,
          HookTable& table, HookReport& report, const DebugSource& source)
      : memory_(memory),
        rules_(rules),
        cache_(cache),
        table_(table),
        report_(report),
        source_(source) {
    has_shadow_stack_ = HasShadowStack(memory.pid());
    if (has_shadow_stack_)
      why_no_exits_ = "the process has a shadow stack";
    else if (const std::string why = table.WhyUnknownToUnwinders(); !why.empty())
      why_no_exits_ =
          "weft was loaded into the running program, and exceptions would not find their way past "
          "an exit: " +
          why + "; or start the program with weft to record exits";
  }

  void Plan(const LoadedObject& object) {
    report_.objects.insert(object.name);
    // Rules that are refused, and those that say that they mean this object.
    std::vector<size_t> chosen, refused, named;
    const std::string why_not = WhyNotObject(object.name);
    for (size_t i = 0; i < rules_.size(); ++i) {
      const std::string& pattern = rules_[i].rule.object;
      if (!MeansObject(pattern, object.name)) continue;
      if (!pattern.empty()) named.push_back(i);
      const bool is_hooked =
          why_not.empty() || (IsCLibrary(object.name) && api::IsOfCLibrarySet(rules_[i].rule.name));
      if (is_hooked)
        chosen.push_back(i);
      else if (!pattern.empty())
        refused.push_back(i);
    }
    RefuseAll(object, refused, why_not);
    if (chosen.empty() || report_.is_full()) return;
    const auto file = cache_.Read(memory_, object, rules_, chosen, source_);
    if (!file) return RefuseAll(object, named, file.error().message);
    if (file->is_go && !table_.takes_go())
      return RefuseAll(
          object, named,
          "libweft.so did not take the program for one of Go (it has no build id: start it without "
          "weft, "
          "then weft record --pid), or this is no Linux 5.9 or later on a processor with FSGSBASE");
    if (!file->why_no_types.empty()) report_.untyped[object.name] = file->why_no_types;
    if (!file->why_no_symbols.empty()) report_.unnamed[object.name] = file->why_no_symbols;
    for (const auto& [rule, names] : file->near)
      for (NearName near : names) {
        near.object = object.name;
        report_.near[rule].Offer({near});
      }
    for (const auto& [rule, as] : file->recorded_as)
      report_.recorded_as.try_emplace(rule,
                                      RecordedAs{as.name + " (" + object.name + ")", as.rule});
    for (const Function& function : file->functions) Plan(object, *file, function);
  }

  // Call it when all objects were planned. Notes each rule that names no object and whose function
  // only the C library has: such a rule does not mean the C library's functions.
  void SearchCLibrary(const std::vector<LoadedObject>& objects) {
    std::set<std::string> names;
    for (size_t i = 0; i < rules_.size(); ++i)
      if (MayBeOfCLibrary(i)) names.insert(rules_[i].rule.name);
    for (const LoadedObject& object : objects) {
      if (names.empty()) return;
      if (!IsCLibrary(object.name)) continue;
      const auto file = memory_.OpenObject(object);
      if (!file) continue;
      const auto found = FindFunctions(file->get(), names, /*is_static=*/false);
      for (size_t i = 0; found && i < rules_.size(); ++i)
        if (MayBeOfCLibrary(i) && found->contains(rules_[i].rule.name))
          report_.of_c_library.try_emplace(i, object.name);
    }
  }

  // Call it at the end: hooks that no rule asks for any more are taken off.
  std::vector<Change> Changes() {
    std::vector<Change> off;
    for (const auto& [address, hook] : hooks_before_)
      if ((hook.flags & WEFT_HOOK_REPLACES) == 0 && !wanted_.contains(address) &&
          table_.IsOn(hook).value_or(false))
        off.push_back(TakeOff(hook));
    off.insert(off.end(), changes_.begin(), changes_.end());
    return off;
  }

 private:
  // Does the rule name one function, outside the sets, and has neither hooked nor refused one?
  [[nodiscard]] bool MayBeOfCLibrary(size_t i) const {
    const api::FunctionRule& rule = rules_[i].rule;
    const auto is_first = [i](const auto& entry) { return std::get<0>(entry.first) == i; };
    return !rule.set && rule.name.find('*') == std::string::npos &&
           (rule.object.empty() || rule.object == "*") && !api::IsOfCLibrarySet(rule.name) &&
           !report_.recorded_as.contains(i) && std::ranges::none_of(report_.hooked, is_first) &&
           std::ranges::none_of(report_.refused, [i](const RefusedFunction& refused) {
             return refused.rule == i && !refused.function.empty();
           });
  }

  void RefuseAll(const LoadedObject& object, const std::vector<size_t>& rules,
                 const std::string& why) {
    for (const size_t rule : rules)
      report_.Refuse({.rule = rule, .object = object.name, .function = "", .why = why});
  }

  void Plan(const LoadedObject& object, const FunctionFile& file, const Function& function) {
    const auto refuse = [&](const std::string& why, bool exit_only = false) {
      report_.Refuse({.rule = function.rule,
                      .object = object.name,
                      .function = function.name,
                      .why = why,
                      .exit_only = exit_only});
    };
    if (!function.why_not.empty()) return refuse(function.why_not);
    api::FunctionRule rule = rules_[function.rule].rule;
    TypeSource source = TypeSource::kTrace;
    if (const std::string why = AddTypes(file, function, rule, source); !why.empty())
      return refuse(why);
    for (const Moment moment : kMoments)
      if (const std::string why = rule.Records(moment) ? WhyNotFiltered(rule, moment) : "";
          !why.empty())
        return refuse(why);
    for (const Moment moment : kMoments)
      if (rule.Records(moment) && ComparesOtherTypes(rule, function.name, moment))
        return refuse(
            "its filter compares a number with text, or text with a number; an argument is text if "
            "args of the rule say so: {name: path, type: string}");
    NewHook hook{.address = object.begin - file.lowest + function.value,
                 .code = {},
                 .rule = &rule,
                 .function = function.name,
                 .moments = {},
                 .is_go = file.is_go};
    for (const Moment moment : kMoments)
      if (rule.Records(moment)) hook.moments.insert(moment);
    const std::string why_no_exit = file.is_go
                                        ? "Go moves its stacks, so its returns are left alone"
                                    : why_no_exits_.empty() ? function.why_no_exit
                                                            : why_no_exits_;
    if (!why_no_exit.empty() && hook.moments != std::set{Moment::kEntry}) {
      refuse(why_no_exit, true);
      if (!hook.moments.contains(Moment::kEntry)) return;
      hook.moments = {Moment::kEntry};
    }
    if (const Status read = ReadCode(object, function, hook); !read)
      return refuse(read.error().message);
    const auto next = std::ranges::upper_bound(file.values, function.value);
    if (next != file.values.end() && *next - function.value < WEFT_HOOK_JUMP_BYTES)
      return refuse(kSecondBegin);
    if (has_shadow_stack_ && CallsInFirstBytes(hook.code))
      return refuse("it calls a function in its first bytes, and the process has a shadow stack");
    if (const Status want = Want(hook); !want) return refuse(want.error().message);
    wanted_.insert(hook.address);
    report_.samples.try_emplace(object.begin, hook.address);
    HookedFunction& hooked = report_.hooked[{function.rule, object.name, function.name}];
    hooked.source = source;
    ++hooked.addresses;
  }

  // Adds to the rule what the debug information knows of a function. Returns why the rule does not
  // fit it; "": it does.
  static std::string AddTypes(const FunctionFile& file, const Function& function,
                              api::FunctionRule& rule, TypeSource& source) {
    if (rule.set) return "";
    const auto known = file.types.find(function.value);
    const bool has_arguments = std::ranges::any_of(rule.args, api::IsPositional);
    const auto add = [&](const std::vector<api::FunctionArg>& args, TypeSource of) {
      if (!has_arguments) {
        rule.args.insert(rule.args.begin(), args.begin(), args.end());
        source = of;
      }
      return WhyNotArgs(rule);
    };
    if (known == file.types.end())
      return add(RawRegisters(file.is_go),
                 file.is_awaited ? TypeSource::kAwaited : TypeSource::kRegisters);
    if (std::string why = WhyNotFitting(rule, known->second); !why.empty()) return why;
    if (!rule.returns) rule.returns = known->second.returns;
    // Before the arguments that it has are added: they are counted, or have their own names.
    if (std::string why = ResolvePaths(known->second, rule); !why.empty()) return why;
    return add(known->second.args,
               file.has_servers_types ? TypeSource::kServer : TypeSource::kDebugInformation);
  }

  static bool ComparesOtherTypes(const api::FunctionRule& rule, const std::string& function,
                                 Moment moment) {
    if (rule.filter.empty()) return false;
    weft_event event{};
    const auto description = Describe(rule, function, moment, event);
    return description && api::EventFilter(rule.filter).Fit(*description) == api::FilterFit::kTypes;
  }

  // Reads the function as it is without a hook.
  Status ReadCode(const LoadedObject& object, const Function& function, NewHook& hook) const {
    const bool is_code = std::ranges::any_of(object.code, [&](const MappedRange& range) {
      return hook.address >= range.begin && hook.address < range.end &&
             function.size <= range.end - hook.address;
    });
    if (!is_code) return Fail(ErrorCode::kUnsupported, "its symbol is not in the object's code");
    hook.code.resize(CodeBytes(hook.address, function.size));
    if (!memory_.Read(hook.address, hook.code.data(), hook.code.size()))
      return Fail(ErrorCode::kUnsupported, "its code cannot be read");
    const auto old = table_.hooks().find(hook.address);
    if (old != table_.hooks().end() && hook.code.size() >= WEFT_HOOK_JUMP_BYTES &&
        std::memcmp(hook.code.data(), old->second.jump, WEFT_HOOK_JUMP_BYTES) == 0)
      std::memcpy(hook.code.data(), old->second.original, WEFT_HOOK_JUMP_BYTES);
    if (!IsPadding(Bytes(hook.code).subspan(function.size)))
      hook.code.resize(function.size);  // if it was read with what follows
    return {};
  }

  Status Want(const NewHook& hook) {
    const auto old = table_.hooks().find(hook.address);
    if (old != table_.hooks().end()) {
      if ((old->second.flags & WEFT_HOOK_REPLACES) != 0)
        return Fail(ErrorCode::kUnsupported, "libweft.so stands in front of it");
      const bool is_on = table_.IsOn(old->second).value_or(false);
      if (old->second.digest == DigestOf(hook)) {
        if (!is_on) changes_.push_back(PutJump(old->second));
        return {};
      }
      if (is_on) changes_.push_back(TakeOff(old->second));
    }
    if (hook.is_go) WEFT_TRY(FindGoStackCheck(hook.address, hook.code));
    WEFT_TRY(CheckEntry(hook.address, hook.code, [this](uint64_t at, void* to, size_t size) {
      return memory_.Read(at, to, size);
    }));
    WEFT_ASSIGN(const weft_hook added, table_.Add(hook));
    changes_.push_back(PutJump(added));
    return {};
  }

  const ProcessMemory& memory_;
  const std::vector<HookRule>& rules_;
  FunctionCache& cache_;
  HookTable& table_;
  HookReport& report_;
  const DebugSource& source_;
  bool has_shadow_stack_ = false;
  std::string why_no_exits_;  // of all functions
  std::set<uint64_t> wanted_;
  const std::map<uint64_t, weft_hook> hooks_before_ = table_.hooks();
  std::vector<Change> changes_;
};

// An agent wakes the library before it hooks functions: exits need what it replaces then.
bool IsSilent(const ProcessMemory& memory, const HookTable& table) {
  uint32_t silent = 0;
  return table.is_attached() &&
         memory.Read(table.header().places.silent, &silent, sizeof(silent)) &&
         silent == WEFT_SILENT_DETACHED;
}

// Do types have to come from a server, if they are in no file?
bool NeedsTypes(const api::FunctionRule& rule) {
  return !rule.set &&
         (std::ranges::none_of(rule.args, api::IsPositional) || !PathsOf(rule.args).empty());
}

// Can more symbols of an object have what its rules name? All objects of a process would be asked
// for, if a rule did not have to name the object.
bool NeedsSymbols(const FunctionFile& file, const std::vector<HookRule>& rules,
                  const std::vector<size_t>& chosen) {
  if (file.is_go && file.why_no_symbols.empty()) return false;  // Go's table has all
  return std::ranges::any_of(chosen, [&](size_t i) {
    const api::FunctionRule& rule = rules[i].rule;
    if (rule.set || rule.object.empty()) return false;
    return rule.name.find('*') != std::string::npos ||
           std::ranges::none_of(file.functions, [&](const Function& f) { return f.rule == i; });
  });
}

// Notes why a server did not give a file.
void NoteMissing(const Error& error, FunctionFile& read, std::string& why) {
  read.asks_again = true;
  if (error.code == ErrorCode::kTimeout)
    read.is_awaited = true;
  else
    why = error.message;
}

// Reads the functions of an object with all symbols that are to be had.
Result<FunctionFile> ReadAll(int file, const std::string& root, const LoadedObject& object,
                             const std::vector<HookRule>& rules, const std::vector<size_t>& chosen,
                             const DebugSource& source) {
  const std::vector<UniqueFd> more =
      OpenMoreSymbols(HelperPath("weft-types"), file, root, object.path);
  auto all = ReadFunctions(file, rules, chosen, more);
  if (all && more.empty() && source.is_there() && NeedsSymbols(*all, rules, chosen)) {
    auto symbols = FindSymbols(file, source);
    if (!symbols)
      NoteMissing(symbols.error(), *all, all->why_no_symbols);
    else if (!symbols->empty())
      all = ReadFunctions(file, rules, chosen, *symbols);
  }
  // A pattern may mean too many functions only because of the further symbols.
  return all ? std::move(all) : ReadFunctions(file, rules, chosen);
}

// The memory that a file's functions take, coarsely.
size_t BytesOf(const FunctionFile& file) {
  size_t bytes = sizeof(file) + file.values.size() * sizeof(file.values[0]);
  for (const Function& function : file.functions)
    bytes += sizeof(function) + function.name.size() + function.symbol.size() +
             function.why_not.size() + function.why_no_exit.size();
  return bytes + BytesOf(file.types);
}

}  // namespace

void HookReport::Refuse(RefusedFunction function) {
  if (is_full()) return;
  if (refused.size() + 1 == kMaxRefused)
    function = {.rule = function.rule,
                .object = function.object,
                .function = "",
                .why = "more than " + std::to_string(kMaxRefused) +
                       " functions of the process cannot be hooked, so those of further files are "
                       "not either: name fewer"};
  refused.push_back(std::move(function));
}

bool HookReport::is_full() const { return refused.size() >= kMaxRefused; }

Result<FunctionFile> FunctionCache::Read(const ProcessMemory& memory, const LoadedObject& object,
                                         const std::vector<HookRule>& rules,
                                         const std::vector<size_t>& chosen,
                                         const DebugSource& source) {
  WEFT_ASSIGN(const UniqueFd file, memory.OpenObject(object));
  struct stat st{};
  if (fstat(file.get(), &st) != 0) return FailErrno(object.path);
  const Key key(st.st_dev, st.st_ino, static_cast<uint64_t>(st.st_size),
                st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec);
  // The rules that are chosen depend on the name, which another name of the file may change.
  if (const auto known = files_.find(key);
      known != files_.end() && known->second.name == object.name)
    return known->second;
  const std::string root = "/proc/" + std::to_string(memory.pid()) + "/root";
  WEFT_ASSIGN(FunctionFile read, ReadAll(file.get(), root, object, rules, chosen, source));
  read.name = object.name;
  AddTypes(file.get(), root, object, rules, chosen, source, read);
  Remember(key, read);
  return read;
}

void FunctionCache::Remember(const Key& key, const FunctionFile& file) {
  const size_t bytes = BytesOf(file);
  lost_incomplete_ |= bytes > kMaxCachedBytes && file.asks_again;
  if (bytes > kMaxCachedBytes) return;
  // The entry of the same file under another name is replaced.
  const auto old = files_.find(key);
  size_t others = old == files_.end() ? bytes_ : bytes_ - BytesOf(old->second);
  if (others + bytes > kMaxCachedBytes || files_.size() >= kMaxCachedFiles ||
      !share_.Resize(others + bytes)) {
    lost_incomplete_ |= ForgetIncomplete();
    Clear();
    others = 0;
    if (!share_.Resize(bytes)) {
      lost_incomplete_ |= file.asks_again;
      return;
    }
  }
  bytes_ = others + bytes;
  files_.insert_or_assign(key, file);
}

void FunctionCache::AddTypes(int file, const std::string& root, const LoadedObject& object,
                             const std::vector<HookRule>& rules, const std::vector<size_t>& chosen,
                             const DebugSource& source, FunctionFile& read) {
  const std::vector<uint64_t> addresses = AddressesToType(read);
  if (addresses.empty()) return;
  const bool needs = std::ranges::any_of(
      read.functions, [&](const Function& f) { return NeedsTypes(rules[f.rule].rule); });
  const auto debug = OpenDebugFile(file, root, object.path, needs ? source : DebugSource{});
  if (!debug) {
    if (needs && source.is_there())
      NoteMissing(debug.error(), read, read.why_no_types);
    else if (debug.error().code != ErrorCode::kNotFound)
      read.why_no_types = debug.error().message;
    return;
  }
  std::set<std::string> paths;
  for (const size_t rule : chosen) {
    std::vector<std::string> of = PathsOf(rules[rule].rule.args);
    paths.insert(std::make_move_iterator(of.begin()), std::make_move_iterator(of.end()));
  }
  auto types = types_.Find(*debug, addresses, paths);
  read.has_servers_types = debug->is_from_server;
  if (needs && !debug->shared_status)
    NoteMissing(debug->shared_status.error(), read, read.why_no_types);
  if (types)
    read.types = std::move(*types);
  else
    read.why_no_types = types.error().message;
}

bool FunctionCache::ForgetIncomplete() {
  const bool had_any = std::exchange(lost_incomplete_, false);
  const size_t forgotten = std::erase_if(files_, [this](const auto& entry) {
    if (!entry.second.asks_again) return false;
    bytes_ -= BytesOf(entry.second);
    return true;
  });
  (void)share_.Resize(bytes_);  // to less, which is always allowed
  return forgotten != 0 || had_any;
}

Status HookProcess(int32_t pid, const std::vector<HookRule>& rules, FunctionCache& cache,
                   HookReport& report, const DebugSource& source) {
  // Its parent is hooked, and stopped for that, itself.
  if (IsOnParentsMemory(pid)) return {};
  WEFT_ASSIGN(const std::vector<MappedRange> ranges, ReadRanges(pid));
  const std::vector<LoadedObject> objects = ObjectsOf(ranges);
  WEFT_ASSIGN(const ProcessMemory memory, ProcessMemory::Open(pid));
  WEFT_ASSIGN(HookTable table, HookTable::Open(memory, objects));
  if (!rules.empty() && IsSilent(memory, table))
    return Fail(ErrorCode::kTimeout, "weft is not attached to it again yet");
  Planner planner(memory, rules, cache, table, report, source);
  for (const LoadedObject& object : objects) planner.Plan(object);
  planner.SearchCLibrary(objects);
  if (uint8_t byte = 0; !memory.Read(objects.front().begin, &byte, 1)) {
    report = {};  // it ended, or executed another program, meanwhile
    return {};
  }
  return ChangeCode(planner.Changes(), memory, report.stopped);
}

Status UnhookProcess(int32_t pid, HookReport& report) {
  FunctionCache nothing;
  WEFT_TRY(HookProcess(pid, {}, nothing, report));
  // Its parent is given them back itself.
  if (IsOnParentsMemory(pid)) return {};
  return GiveBackFunctions(pid);
}

}  // namespace weft::hooks
