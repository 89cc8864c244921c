// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/user_probes.h"

#include <array>
#include <span>

#include "lib/api/value_type.h"
#include "node-agent/kernel/event_builder.h"
#include "node-agent/kernel/limits.h"
#include "node-agent/kernel/usdt_operand.h"

namespace weft::kernel {
namespace {

using api::ValueType;

// Numbers of the arguments of UPROBE and URETPROBE (lib/abi/fetch.h).
constexpr uint8_t kAddress = 6;
constexpr uint8_t kReturned = 7;
constexpr uint8_t kDuration = 8;

// The places of integer arguments, in order: each operation has this code and one of these numbers.
struct Convention {
  FetchCode code = FetchCode::kArgument;
  std::span<const uint8_t> numbers;
  bool text_has_length = false;  // strings are two: pointer and length
};
constexpr std::array<uint8_t, 6> kPlatform = {0, 1, 2, 3, 4, 5};
// The registers of Go's ABIInternal, by DWARF's numbers.
#if defined(__aarch64__)
constexpr std::array<uint8_t, 16> kGo = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
constexpr std::array<uint8_t, 9> kGo = {0, 3, 2, 5, 4, 8, 9, 10, 11};
#endif

// Functions of Go's have a package in front; those of C that it is linked with have none.
bool IsGoFunction(const UserProgram& program, const std::string& function) {
  return program.is_go() && function.find('.') != std::string::npos;
}

Convention ConventionOf(const UserProgram& program, const std::string& function) {
  if (!IsGoFunction(program, function)) return {.numbers = kPlatform};
  return {.code = FetchCode::kRegister, .numbers = kGo, .text_has_length = true};
}

FetchStep Take(FetchCode code, uint8_t number, uint8_t size, bool is_signed = false) {
  return {.code = code,
          .arg = number,
          .size = size,
          .flags = is_signed ? uint8_t{kFetchSigned} : uint8_t{0}};
}

FetchStep Store(uint8_t size) { return {.code = FetchCode::kStore, .size = size}; }

FieldDescription Integer(const std::string& name, uint8_t size, bool is_signed) {
  return {.name = name,
          .flags = is_signed ? uint8_t{WEFT_FIELD_SIGNED} : uint8_t{0},
          .elem_size = size};
}

FieldDescription Pointer(const std::string& name) {
  return {.name = name, .flags = WEFT_FIELD_POINTER, .elem_size = sizeof(uint64_t), .base = 16};
}

Field WholeRegister(FieldDescription description, FetchCode code, uint8_t number) {
  return {std::move(description), {Take(code, number, sizeof(uint64_t)), Store(sizeof(uint64_t))}};
}

// Makes a field of text: a pointer to text with a NUL at its end.
Field Text(const std::string& name, FetchCode code, uint8_t number) {
  return {{.name = name, .kind = FieldKind::kString, .elem_size = 1},
          {Take(code, number, sizeof(uint64_t)),
           {.code = FetchCode::kString, .flags = kFetchUser, .limit = kDefaultStringBytes}}};
}

// Makes a field of text: a pointer, and the length in another register.
Field TextOfLength(const std::string& name, FetchCode code, uint8_t number, uint8_t length) {
  return {{.name = name,
           .kind = FieldKind::kSequence,
           .flags = WEFT_FIELD_TEXT,
           .elem_size = 1,
           .length_size = sizeof(uint32_t)},
          {Take(code, length, sizeof(uint64_t)),
           {.code = FetchCode::kCount},
           Take(code, number, sizeof(uint64_t)),
           {.code = FetchCode::kSequence,
            .size = 1,
            .flags = kFetchUser,
            .limit = kDefaultStringBytes}}};
}

Field Value(const std::string& name, ValueType type, FetchCode code, uint8_t number) {
  if (type == ValueType::kString) return Text(name, code, number);
  if (type == ValueType::kPointer) return WholeRegister(Pointer(name), code, number);
  const uint8_t size = SizeOf(type);
  return {Integer(name, size, IsSigned(type)),
          {Take(code, number, size, IsSigned(type)), Store(size)}};
}

// Floats have registers of their own, which are not counted with these.
void AddArguments(const Convention& convention, const std::vector<api::FunctionArg>& arguments,
                  EventBuilder* builder) {
  size_t next = 0;
  for (const api::FunctionArg& argument : arguments) {
    if (IsFloat(argument.type)) {
      builder->Add(argument.name, Fail(ErrorCode::kUnsupported,
                                       "floats are in registers that the kernel does not save"));
      continue;
    }
    const bool two = argument.type == ValueType::kString && convention.text_has_length;
    const size_t first = next;
    next += two ? 2 : 1;
    if (next > convention.numbers.size()) {
      builder->Add(argument.name, Fail(ErrorCode::kUnsupported, "is not in a register"));
      continue;
    }
    const uint8_t number = convention.numbers[first];
    builder->Add(argument.name, two ? TextOfLength(argument.name, convention.code, number,
                                                   convention.numbers[first + 1])
                                    : Value(argument.name, argument.type, convention.code, number));
  }
}

void AddRegisters(const Convention& convention, EventBuilder* builder) {
  for (size_t i = 0; i < kPlatform.size(); ++i) {
    const std::string name = "arg" + std::to_string(i);
    builder->Add(name, WholeRegister(Pointer(name), convention.code, convention.numbers[i]));
  }
}

// Fails with kLimit if a number does not fit: a constant that no ADD holds, or a place too far
// away.
Result<int32_t> Narrow(int64_t number, const char* what) {
  if (number < INT32_MIN || number > INT32_MAX) return Fail(ErrorCode::kLimit, what);
  return static_cast<int32_t>(number);
}

// Returns operations that leave an operand's value in A.
Result<std::vector<FetchStep>> Load(const UserProgram& program, const UsdtSite& site,
                                    const UsdtOperand& operand) {
  constexpr auto kInstruction = static_cast<uint8_t>(WEFT_FETCH_REGISTERS - 1);
  constexpr uint8_t kWord = sizeof(uint64_t);
  const uint8_t sign = operand.is_signed ? kFetchSigned : 0;
  FetchStep load{.code = FetchCode::kLoad,
                 .size = operand.size,
                 .flags = static_cast<uint8_t>(kFetchUser | sign)};
  switch (operand.kind) {
    case UsdtOperand::Kind::kRegister:
      if (operand.first_bit == 0)
        return std::vector{
            Take(FetchCode::kRegister, operand.reg, operand.size, operand.is_signed)};
      return std::vector{Take(FetchCode::kRegister, operand.reg, kWord),
                         FetchStep{.code = FetchCode::kBits,
                                   .size = static_cast<uint8_t>(8 * operand.size),
                                   .flags = sign,
                                   .offset = operand.first_bit}};
    case UsdtOperand::Kind::kConstant: {
      const int64_t cut =
          operand.size == kWord ? operand.number : static_cast<int32_t>(operand.number);
      WEFT_ASSIGN(const int32_t number, Narrow(cut, "a constant of more than 32 bits"));
      return std::vector{Take(FetchCode::kRegister, WEFT_FETCH_REG_ZERO, kWord),
                         FetchStep{.code = FetchCode::kAdd, .offset = number}};
    }
    case UsdtOperand::Kind::kMemory: {
      WEFT_ASSIGN(load.offset, Narrow(operand.number, "too far from its register"));
      return std::vector{Take(FetchCode::kRegister, operand.reg, kWord), load};
    }
    case UsdtOperand::Kind::kVariable:
      break;
  }
  // The variable is as far from the probe in the process as in the file, wherever the file was
  // loaded.
  const auto address = program.AddressOf(operand.variable);
  if (!address) return Fail(ErrorCode::kNotFound, "no variable '" + operand.variable + "'");
  const uint64_t distance = *address + static_cast<uint64_t>(operand.number) - site.address;
  WEFT_ASSIGN(load.offset, Narrow(static_cast<int64_t>(distance), "too far from the probe"));
  return std::vector{Take(FetchCode::kRegister, kInstruction, kWord), load};
}

Result<Field> OperandField(const UserProgram& program, const UsdtSite& site,
                           const std::string& name, const Result<UsdtOperand>& operand) {
  if (!operand) return std::unexpected(operand.error());
  WEFT_ASSIGN(std::vector<FetchStep> ops, Load(program, site, *operand));
  ops.push_back(Store(operand->size));
  return Field{Integer(name, operand->size, operand->is_signed), std::move(ops)};
}

Result<Resolved> ResolveSite(const UserProgram& program, const std::string& event,
                             const UsdtSite& site) {
  EventBuilder builder(event, WEFT_KERNEL_UPROBE);
  builder.Add("ip", WholeRegister(Pointer("ip"), FetchCode::kArgument, kAddress));
  size_t number = 0;
  for (const Result<UsdtOperand>& operand : ParseUsdtOperands(site.arguments)) {
    const std::string name = "arg" + std::to_string(number++);
    builder.Add(name, OperandField(program, site, name, operand));
  }
  Resolved resolved{
      .offset = site.offset, .semaphore = site.semaphore, .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

}  // namespace

Result<Resolved> ResolveUprobe(const UserProgram& program, const UserPlace& place) {
  WEFT_ASSIGN(const uint64_t offset, program.FindFunction(place.function, place.offset));
  const Convention convention = ConventionOf(program, place.function);
  EventBuilder builder(place.event, WEFT_KERNEL_UPROBE);
  builder.Add("ip", WholeRegister(Pointer("ip"), FetchCode::kArgument, kAddress));
  if (place.arguments.empty())
    AddRegisters(convention, &builder);
  else
    AddArguments(convention, place.arguments, &builder);
  Resolved resolved{.offset = offset, .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

Result<Resolved> ResolveUretprobe(const UserProgram& program, const UserPlace& place) {
  WEFT_ASSIGN(const uint64_t offset, program.FindFunction(place.function, 0));
  if (place.offset != 0) return Fail(ErrorCode::kInvalid, "a probe at a return has no offset");
  if (program.is_go())
    return Fail(ErrorCode::kUnsupported,
                "returns in a program of Go cannot be probed: its stacks move, and it would crash");
  EventBuilder builder(place.event, WEFT_KERNEL_URETPROBE);
  builder.Add("ip", WholeRegister(Pointer("ip"), FetchCode::kArgument, kAddress));
  if (!place.returns)
    builder.Add("ret", WholeRegister(Pointer("ret"), FetchCode::kArgument, kReturned));
  else if (IsFloat(*place.returns))
    builder.Add("ret", Fail(ErrorCode::kUnsupported,
                            "floats are in registers that the kernel does not save"));
  else
    builder.Add("ret", Value("ret", *place.returns, FetchCode::kArgument, kReturned));
  builder.Add("duration", WholeRegister(Integer("duration", sizeof(uint64_t), false),
                                        FetchCode::kArgument, kDuration));
  Resolved resolved{.offset = offset, .subjects = WEFT_KERNEL_SUBJECT_CURRENT};
  WEFT_TRY(builder.Finish(&resolved));
  return resolved;
}

Result<std::vector<Resolved>> ResolveUsdt(const UserProgram& program, const std::string& event,
                                          const std::string& probe,
                                          std::vector<std::string>* left_out) {
  const size_t colon = probe.find(':');
  if (colon == std::string::npos)
    return Fail(ErrorCode::kInvalid, "'" + probe + "' is not provider:name");
  WEFT_ASSIGN(const std::vector<UsdtSite> sites,
              program.FindUsdt(probe.substr(0, colon), probe.substr(colon + 1), left_out));
  std::vector<Resolved> events;
  for (const UsdtSite& site : sites) {
    WEFT_ASSIGN(Resolved resolved, ResolveSite(program, event, site));
    events.push_back(std::move(resolved));
  }
  return events;
}

}  // namespace weft::kernel
