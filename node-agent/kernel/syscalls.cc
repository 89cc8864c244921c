// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/syscalls.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "lib/event/match.h"
#include "node-agent/kernel/event_builder.h"
#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

constexpr uint32_t kReturn = 7;  // the argument of SYSCALL_EXIT (lib/abi/fetch.h)

#if defined(__x86_64__)
constexpr std::string_view kFunctionPrefix = "__x64_sys_";
constexpr std::string_view kCompatPrefixes[] = {"__ia32_compat_sys_", "__ia32_sys_"};
constexpr std::string_view kCompatOwnPrefix = "__ia32_compat_sys_";
#elif defined(__aarch64__)
constexpr std::string_view kFunctionPrefix = "__arm64_sys_";
constexpr std::string_view kCompatPrefixes[] = {"__arm64_compat_sys_", "__arm64_sys_"};
constexpr std::string_view kCompatOwnPrefix = "__arm64_compat_sys_";
#endif

// The prefix of the body that the functions of all tables share. For a call without arguments, 6.1
// has only this function; its other names are aliases.
constexpr std::string_view kBodyPrefix = "__do_sys_";
constexpr std::string_view kCompatBodyPrefix = "__do_compat_sys_";

bool HasFunction(const Btf& btf, std::string_view prefix, const std::string& name) {
  return btf.Find(BtfKind::kFunction, std::string(prefix) + name).has_value();
}

bool HasNativeFunction(const Btf& btf, const std::string& name) {
  return HasFunction(btf, kFunctionPrefix, name) || HasFunction(btf, kBodyPrefix, name);
}

bool HasCompatFunction(const Btf& btf, const std::string& name) {
  return std::ranges::any_of(
             kCompatPrefixes,
             [&](std::string_view prefix) { return HasFunction(btf, prefix, name); }) ||
         HasFunction(btf, kBodyPrefix, name) || HasFunction(btf, kCompatBodyPrefix, name);
}

std::optional<std::string> ReadFormat(const std::string& tracefs, const std::string& name) {
  if (tracefs.empty()) return std::nullopt;
  std::ifstream file(tracefs + "/events/syscalls/sys_enter_" + name + "/format");
  if (!file) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

// C's name of a parameter's type in BTF, as tracefs would have it.
std::string TypeText(const Btf& btf, uint32_t id) {
  for (int depth = 0; depth < kMaxTypeDepth; ++depth) {
    const BtfType type = btf.Type(id);
    if (type.kind == BtfKind::kPointer) {
      const bool constant = btf.Type(type.size_or_ref).kind == BtfKind::kConst;
      const bool is_char = btf.Resolve(type.size_or_ref).name == "char";
      if (is_char) return constant ? "const char *" : "char *";
      return "void *";
    }
    if (!type.name.empty()) return std::string(type.name);
    id = type.size_or_ref;
  }
  return {};
}

// Adds the parameters of a function whose types the kernel has; false: it is none of these.
bool AddParametersOf(const Btf& btf, std::string_view prefix, const std::string& name,
                     std::vector<SyscallParameter>* parameters) {
  const auto body = btf.Find(BtfKind::kFunction, std::string(prefix) + name);
  if (!body) return false;
  for (const BtfParameter& item : btf.Parameters(btf.Type(body->size_or_ref)))
    parameters->push_back({TypeText(btf, item.type), std::string(item.name)});
  return true;
}

// Registers of a 32-bit program. A function of its own for these extends their signs, the others do
// not.
void Narrow(bool extends_signs, Field* field) {
  for (FetchStep& op : field->ops) {
    if (op.code != FetchCode::kArgument || op.arg >= 6 || op.size != sizeof(uint64_t)) continue;
    op.size = sizeof(uint32_t);
    if (!extends_signs) op.flags &= static_cast<uint8_t>(~uint32_t{kFetchSigned});
  }
}

constexpr const char* kUnknown = "unknown";

bool IsNumber(const std::string& pattern) {
  return !pattern.empty() && pattern.find_first_not_of("0123456789") == std::string::npos;
}

std::string EventName(const std::string& call, bool compat, bool exit) {
  return std::string(compat ? "compat_" : "") + (exit ? "syscall_exit_" : "syscall_entry_") + call;
}

// A file's number is an int, whatever the kernel's parameter is: -1 is -1.
bool IsDescriptor(const SyscallParameter& parameter) {
  return parameter.type.starts_with("unsigned ") &&
         (parameter.name.ends_with("fd") || parameter.name == "fildes");
}

// No call's name is a number.
bool Matches(const std::string& pattern, const Syscall& call) {
  if (IsNumber(pattern)) return !call.compat && pattern == std::to_string(call.number);
  return weft_glob_match_str(pattern.c_str(), call.name.c_str()) ||
         weft_glob_match_str(pattern.c_str(), call.table_name.c_str());
}

}  // namespace

Result<Syscalls> Syscalls::Load(const Btf& btf, const Catalogue& catalogue,
                                const std::string& tracefs, uint32_t features) {
  Syscalls syscalls(btf, catalogue, tracefs);
  syscalls.has_parts_ = (features & WEFT_KERNEL_PARTS) != 0;
  syscalls.has_socket_addresses_ = (features & WEFT_KERNEL_SOCKET_ADDRESSES) != 0;
  for (const SyscallNumber& number : catalogue.numbers()) {
    syscalls.Add(number, false);
    syscalls.Add(number, true);
  }
  if (syscalls.all_.empty())
    return Fail(ErrorCode::kUnsupported, "this kernel's BTF names no system calls of this machine");
  syscalls.AddMultiplexed();
  return syscalls;
}

void Syscalls::Add(const SyscallNumber& number, bool compat) {
  const std::optional<uint32_t>& value = compat ? number.compat : number.native;
  if (!value) return;
  const auto exists = [&](const std::string& name) {
    return compat ? HasCompatFunction(*btf_, name) : HasNativeFunction(*btf_, name);
  };
  std::string function = number.name;
  const std::string alias =
      compat ? catalogue_->CompatFunctionOf(number.name) : catalogue_->FunctionOf(number.name);
  if (exists(alias)) function = alias;
  if (!exists(function)) return;
  all_.push_back({.name = function, .table_name = number.name, .number = *value, .compat = compat});
}

void Syscalls::AddMultiplexed() {
  for (const MultiplexedSyscall& by : MultiplexedSyscalls()) {
    const auto is_it = [&by](const Syscall& call) {
      return call.compat && call.table_name == by.multiplexer;
    };
    const auto found = std::ranges::find_if(all_, is_it);
    if (found == all_.end()) continue;
    multiplexed_.push_back({.name = std::string(by.name),
                            .table_name = std::string(by.name),
                            .number = found->number,
                            .compat = true,
                            .by = &by});
  }
}

// Returns the kernel's parameters of the function for 32-bit programs, or else those of the call
// that it stands for.
std::vector<SyscallParameter> Syscalls::CompatParametersOf(const std::string& function) const {
  std::vector<SyscallParameter> parameters;
  if (const auto* known = catalogue_->CompatParameters(function)) {
    for (const std::string& text : *known) {
      const size_t name = text.rfind(' ') + 1;
      parameters.push_back({text.substr(0, name - 1), text.substr(name)});
    }
    return parameters;
  }
  if (AddParametersOf(*btf_, kCompatBodyPrefix, function, &parameters)) return parameters;
  for (const std::string_view suffix : {"", "_time32", "_time64", "32", "16"}) {
    if (!function.ends_with(suffix)) continue;
    const std::string other = function.substr(0, function.size() - suffix.size());
    if (ReadFormat(tracefs_, other) || HasFunction(*btf_, kBodyPrefix, other))
      return ParametersOf(other);
  }
  return ParametersOf(function);
}

std::vector<SyscallParameter> Syscalls::ParametersOf(const std::string& function) const {
  if (const auto text = ReadFormat(tracefs_, function)) {
    auto parameters = ParseSyscallFormat(*text);
    if (parameters) return std::move(*parameters);
  }
  std::vector<SyscallParameter> parameters;
  if (AddParametersOf(*btf_, kBodyPrefix, function, &parameters)) return parameters;
  for (int i = 0; i < 6; ++i) parameters.push_back({"", "arg" + std::to_string(i)});
  return parameters;
}

uint32_t Syscalls::TypeOf(const SyscallParameter& parameter) const {
  const std::string_view name = IsDescriptor(parameter) ? "int" : IntegerName(parameter.type);
  for (const BtfKind kind : {BtfKind::kTypedef, BtfKind::kInt}) {
    const auto type = btf_->Find(kind, name);
    if (type && btf_->Resolve(type->id).kind == BtfKind::kInt) return type->id;
  }
  return 0;
}

std::vector<Argument> Syscalls::ArgumentsOf(const std::vector<SyscallParameter>& parameters,
                                            bool exit) const {
  std::vector<Argument> arguments;
  arguments.reserve(parameters.size());
  for (const SyscallParameter& parameter : parameters)
    arguments.push_back({parameter.name, parameter.is_pointer() ? 0 : TypeOf(parameter)});
  while (arguments.size() < 6) arguments.push_back({});
  arguments.push_back({"__syscall_nr", TypeOf({"int", ""})});
  if (exit) arguments.push_back({"ret", TypeOf({"long", ""})});
  return arguments;
}

std::vector<const Syscall*> Syscalls::Match(const std::string& pattern,
                                            const std::vector<std::string>& exclusions) const {
  std::vector<const Syscall*> matching;
  for (const Syscall& call : all_) {
    const auto means = [&](const std::string& glob) { return Matches(glob, call); };
    if (means(pattern) && std::ranges::none_of(exclusions, means)) matching.push_back(&call);
  }
  for (const Syscall& call : multiplexed_) {
    const auto means = [&](const std::string& glob) { return Matches(glob, call); };
    const std::string multiplexer(call.by->multiplexer);
    if (means(pattern) && std::ranges::none_of(exclusions, means) &&
        !weft_glob_match_str(pattern.c_str(), multiplexer.c_str()))
      matching.push_back(&call);
  }
  return matching;
}

bool Syscalls::MeansUnknown(const std::string& pattern,
                            const std::vector<std::string>& exclusions) {
  const auto means = [](const std::string& glob) {
    return weft_glob_match_str(glob.c_str(), kUnknown);
  };
  return means(pattern) && std::ranges::none_of(exclusions, means);
}

bool Syscalls::LacksNumberOf(const std::string& name) const {
  return Match(name, {}).empty() && HasNativeFunction(*btf_, name);
}

Result<Resolved> Syscalls::ResolveEntry(const Syscall& call, uint32_t buffer_bytes) const {
  return Resolve(call, false, buffer_bytes);
}

Result<Resolved> Syscalls::ResolveExit(const Syscall& call, uint32_t buffer_bytes) const {
  return Resolve(call, true, buffer_bytes);
}

Result<Field> Syscalls::MakeField(const Syscall& call, const FieldMaker& maker,
                                  FieldSpec spec) const {
  if (!call.compat) return maker.Make(spec);
  const auto translate = [this](Path& path) {
    bool known = true;
    const auto to_compat = [&](std::string& type) {
      if (type.empty()) return;
      type = catalogue_->CompatStructure(type);
      known = known && !type.empty();
    };
    to_compat(path.type);
    for (PathStep& step : path.steps) to_compat(step.type);
    return known;
  };
  std::erase_if(spec.paths, [&](Path& path) { return !translate(path); });
  if (spec.paths.empty() || (spec.count && !translate(*spec.count)) ||
      (spec.length && !translate(*spec.length)))
    return Fail(ErrorCode::kUnsupported, "how 32-bit programs lay it out is not known");
  WEFT_ASSIGN(Field field, maker.Make(spec));
  Narrow(HasFunction(*btf_, kCompatOwnPrefix, call.name), &field);
  if (call.by != nullptr) field.ops = call.by->Redirect(field.ops);
  return field;
}

Result<std::vector<Resolved>> Syscalls::ResolveUnknown() const {
  std::vector<Resolved> events;
  for (const bool compat : {false, true}) {
    if (std::ranges::none_of(all_, [&](const Syscall& call) { return call.compat == compat; }))
      continue;
    for (const bool exit : {false, true}) {
      WEFT_ASSIGN(Resolved event, ResolveUnknown(compat, exit));
      events.push_back(std::move(event));
    }
  }
  return events;
}

// Records its number and six words without names.
Result<Resolved> Syscalls::ResolveUnknown(bool compat, bool exit) const {
  std::vector<SyscallParameter> words;
  words.reserve(6);
  for (int i = 0; i < 6; ++i) words.push_back({"", "arg" + std::to_string(i)});
  const std::vector<Argument> arguments = ArgumentsOf(words, exit);
  const FieldMaker maker{.btf = *btf_,
                         .catalogue = *catalogue_,
                         .arguments = arguments,
                         .addresses = true,  // the process's own
                         .distrust = true,
                         .user_arguments = true};
  EventBuilder builder(EventName(kUnknown, compat, exit),
                       exit ? WEFT_KERNEL_SYSCALL_EXIT : WEFT_KERNEL_SYSCALL_ENTRY);
  const Syscall call{.compat = compat};
  builder.Add("id", MakeField(call, maker, {.name = "id", .paths = {{.argument = "$6"}}}));
  if (exit)
    builder.Add("ret", MakeField(call, maker, {.name = "ret", .paths = {{.argument = "$7"}}}));
  for (size_t i = 0; i < words.size() && !exit; ++i)
    builder.Add(words[i].name, MakeField(call, maker,
                                         {.name = words[i].name,
                                          .paths = {{.argument = "$" + std::to_string(i)}},
                                          .user = true}));
  Resolved resolved{.number = WEFT_KERNEL_SYSCALL_UNKNOWN,
                    .table = compat ? WEFT_KERNEL_SYSCALLS_COMPAT : WEFT_KERNEL_SYSCALLS_NATIVE,
                    .known = std::vector<uint8_t>(WEFT_KERNEL_SYSCALL_NUMBERS / 8),
                    .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  for (const Syscall& known : all_)
    if (known.compat == compat && known.number < WEFT_KERNEL_SYSCALL_NUMBERS)
      resolved.known[known.number / 8] |= static_cast<uint8_t>(1u << known.number % 8);
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

Result<Resolved> Syscalls::Resolve(const Syscall& call, bool exit, uint32_t buffer_bytes) const {
  const std::vector<SyscallParameter> parameters =
      call.compat ? CompatParametersOf(call.name) : ParametersOf(call.name);
  const std::vector<Argument> arguments = ArgumentsOf(parameters, exit);
  const FieldMaker maker{.btf = *btf_,
                         .catalogue = *catalogue_,
                         .arguments = arguments,
                         .addresses = true,  // the process's own
                         .distrust = true,
                         .user_arguments = true,
                         .has_parts = has_parts_,
                         .has_socket_addresses = has_socket_addresses_};
  EventBuilder builder(EventName(call.name, call.compat, exit),
                       exit ? WEFT_KERNEL_SYSCALL_EXIT : WEFT_KERNEL_SYSCALL_ENTRY);
  if (call.by != nullptr) builder.Add("call", call.by->CallField());
  const SyscallEntry* entry = catalogue_->Syscall(call.name);
  const SyscallField* result = entry == nullptr ? nullptr : entry->Find("ret");
  if (exit)
    builder.Add("ret", maker.Make({.name = "ret",
                                   .paths = {{.argument = "$7"}},
                                   .base = result == nullptr ? uint8_t{0} : result->spec.base}));
  static_assert(kReturn == 7);

  const auto wanted = [&](const SyscallField& field) {
    return exit ? field.direction != SyscallField::Direction::kIn
                : field.direction != SyscallField::Direction::kOut;
  };
  for (size_t i = 0; i < parameters.size(); ++i) {
    const SyscallParameter& parameter = parameters[i];
    const SyscallField* field = entry == nullptr ? nullptr : entry->Find(parameter.name);
    if (field != nullptr ? !wanted(*field) : exit) continue;
    FieldSpec spec{.name = parameter.name,
                   .paths = {{.argument = "$" + std::to_string(i)}},
                   .user = true,
                   .limit = kSyscallTextBytes};
    if (parameter.is_text()) spec.as = FieldSpec::As::kText;
    builder.Add(parameter.name, MakeField(call, maker, field != nullptr ? field->spec : spec));
  }
  if (entry != nullptr) {
    for (const SyscallField& field : entry->fields) {
      if (!wanted(field) || (field.buffer && buffer_bytes == 0)) continue;
      // The parameter belongs to another call of the entry.
      if (field.spec.paths.front() == Path{.argument = field.spec.name}) continue;
      FieldSpec spec = field.spec;
      if (field.buffer) spec.limit = std::min(buffer_bytes, WEFT_FETCH_MAX_STRING);
      builder.Add(spec.name, MakeField(call, maker, spec));
    }
  }
  Resolved resolved{
      .number = call.number,
      .table = call.compat ? WEFT_KERNEL_SYSCALLS_COMPAT : WEFT_KERNEL_SYSCALLS_NATIVE,
      .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  if (call.by != nullptr) resolved.condition = call.by->Condition();
  if (!exit && !parameters.empty() && parameters.front().type.empty())
    resolved.remarks.push_back("without names and types of its parameters, which " +
                               std::string(tracefs_.empty()
                                               ? "tracefs has: it is not to be had here"
                                               : "this kernel does not describe"));
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

}  // namespace weft::kernel
