// SPDX-License-Identifier: Apache-2.0
#include "node-agent/kernel/usdt_operand.h"

#include <array>
#include <charconv>
#include <optional>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

struct Register {
  uint8_t number = 0;
  uint8_t first_bit = 0;
};

std::unexpected<Error> NoOperand(std::string_view text) {
  return Fail(ErrorCode::kCorrupt, "'" + std::string(text) + "' is no operand");
}

std::unexpected<Error> NotRecorded(std::string_view text, std::string_view why) {
  return Fail(ErrorCode::kUnsupported, "'" + std::string(text) + "' " + std::string(why));
}

// Parses all of `text` as a number, decimal or 0x, perhaps with a sign.
std::optional<int64_t> ParseNumber(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<int64_t>(negative ? uint64_t{0} - value : value);
}

// x86-64 psABI, figure 3.36: the first eight in DWARF's order.
std::optional<Register> X86Register(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kOld = {"ax", "dx", "cx", "bx",
                                                           "si", "di", "bp", "sp"};
  for (size_t i = 0; i < kOld.size(); ++i) {
    const std::string_view whole = kOld[i];
    const auto number = static_cast<uint8_t>(i);
    if (name == whole ||
        (name.size() == 3 && (name[0] == 'r' || name[0] == 'e') && name.substr(1) == whole))
      return Register{.number = number};
    const bool halves = whole[1] == 'x';
    if (halves && name.size() == 2 && name[0] == whole[0]) {
      if (name[1] == 'l') return Register{.number = number};
      if (name[1] == 'h') return Register{.number = number, .first_bit = 8};
    }
    if (!halves && name.size() == 3 && name.substr(0, 2) == whole && name[2] == 'l')
      return Register{.number = number};
  }
  if (!name.starts_with('r')) return std::nullopt;
  name.remove_prefix(1);
  if (name.ends_with('d') || name.ends_with('w') || name.ends_with('b')) name.remove_suffix(1);
  const auto number = ParseNumber(name);
  if (!number || *number < 8 || *number > 15) return std::nullopt;
  return Register{.number = static_cast<uint8_t>(*number)};
}

// "sym", "sym+8", "8+sym", "-8".
bool ParseDisplacement(std::string_view text, UsdtOperand* operand) {
  if (text.empty()) return true;
  if (const auto number = ParseNumber(text)) {
    operand->number = *number;
    return true;
  }
  const size_t sign = text.find_first_of("+-", 1);
  std::string_view name = text.substr(0, sign);
  std::string_view rest = sign == std::string_view::npos ? "" : text.substr(sign);
  if (const auto number = ParseNumber(name)) {  // the number first
    if (!rest.starts_with('+')) return false;
    operand->number = *number;
    operand->variable = rest.substr(1);
    return operand->variable.find_first_of("+-") == std::string::npos && rest.size() > 1;
  }
  operand->variable = name;
  if (rest.empty()) return !name.empty();
  const auto number = ParseNumber(rest);
  operand->number = number.value_or(0);
  return number.has_value();
}

Result<UsdtOperand> ParseX86Memory(std::string_view text, UsdtOperand operand) {
  const size_t open = text.find('(');
  if (!ParseDisplacement(text.substr(0, open), &operand)) return NoOperand(text);
  if (open == std::string_view::npos) {
    if (operand.variable.empty()) return NotRecorded(text, "is at a fixed address");
    operand.kind = UsdtOperand::Kind::kVariable;
    return operand;
  }
  if (!text.ends_with(')')) return NoOperand(text);
  const std::string_view base = text.substr(open + 1, text.size() - open - 2);
  if (base.find(',') != std::string_view::npos) return NotRecorded(text, "has an index register");
  if (base == "%rip") {
    if (operand.variable.empty()) return NotRecorded(text, "is at no variable's place");
    operand.kind = UsdtOperand::Kind::kVariable;
    return operand;
  }
  const auto reg = base.starts_with('%') ? X86Register(base.substr(1)) : std::nullopt;
  if (!reg || reg->first_bit != 0) return NoOperand(text);
  if (!operand.variable.empty()) return NotRecorded(text, "is a variable and a register");
  operand.kind = UsdtOperand::Kind::kMemory;
  operand.reg = reg->number;
  return operand;
}

Result<UsdtOperand> ParseX86(std::string_view text, UsdtOperand operand) {
  if (text.starts_with('$')) {
    const auto number = ParseNumber(text.substr(1));
    if (!number) return NotRecorded(text, "is an address that the linker made");
    operand.kind = UsdtOperand::Kind::kConstant;
    operand.number = *number;
    return operand;
  }
  if (!text.starts_with('%')) return ParseX86Memory(text, operand);
  if (text.find(':') != std::string_view::npos)
    return NotRecorded(text, "is in another segment (of a thread)");
  const auto reg = X86Register(text.substr(1));
  if (!reg) return NotRecorded(text, "is a register that the kernel does not save");
  operand.reg = reg->number;
  operand.first_bit = reg->first_bit;
  return operand;
}

// Source: DWARF for the Arm 64-bit Architecture, 4.1.
std::optional<Register> Arm64Register(std::string_view name) {
  constexpr uint8_t kSp = 31;
  if (name == "sp" || name == "wsp") return Register{.number = kSp};
  if (!name.starts_with('x') && !name.starts_with('w')) return std::nullopt;
  const auto number = ParseNumber(name.substr(1));
  if (!number || *number < 0 || *number > 30) return std::nullopt;
  return Register{.number = static_cast<uint8_t>(*number)};
}

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> Arm64Number(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('#')) text.remove_prefix(1);
  return ParseNumber(text);
}

Result<UsdtOperand> ParseArm64(std::string_view text, UsdtOperand operand) {
  if (const auto number = Arm64Number(text)) {
    operand.kind = UsdtOperand::Kind::kConstant;
    operand.number = *number;
    return operand;
  }
  if (!text.starts_with('[')) {
    const auto reg = Arm64Register(text);
    if (!reg) return NotRecorded(text, "is a register that the kernel does not save");
    operand.reg = reg->number;
    return operand;
  }
  if (!text.ends_with(']')) return NoOperand(text);
  const std::string_view inside = text.substr(1, text.size() - 2);
  const size_t comma = inside.find(',');
  const auto reg = Arm64Register(Trim(inside.substr(0, comma)));
  if (!reg) return NoOperand(text);
  operand.kind = UsdtOperand::Kind::kMemory;
  operand.reg = reg->number;
  if (comma == std::string_view::npos) return operand;
  const auto number = Arm64Number(inside.substr(comma + 1));
  if (!number) return NotRecorded(text, "has an index register");
  operand.number = *number;
  return operand;
}

// Parses "-4@...": the size and the operand behind it.
Result<UsdtOperand> ParseOne(std::string_view text, OperandSyntax syntax) {
  const size_t at = text.find('@');
  if (at == std::string_view::npos) return NotRecorded(text, "does not tell its size");
  if (text.substr(0, at).ends_with('f')) return NotRecorded(text, "is a float");
  const auto size = ParseNumber(text.substr(0, at));
  if (!size) return NoOperand(text);
  const int64_t bytes = *size < 0 && *size > -16 ? -*size : *size;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) return NoOperand(text);
  const UsdtOperand operand{.size = static_cast<uint8_t>(bytes), .is_signed = *size < 0};
  const std::string_view rest = text.substr(at + 1);
  return syntax == OperandSyntax::kX86 ? ParseX86(rest, operand) : ParseArm64(rest, operand);
}

// Returns where the next operand begins. Those of arm64 have blanks inside, but only behind a
// comma.
size_t EndOf(std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i)
    if (text[i] == ' ' && text[i - 1] != ',' &&
        text.substr(0, i).find('@') != std::string_view::npos)
      return i;
  return text.size();
}

}  // namespace

std::vector<Result<UsdtOperand>> ParseUsdtOperands(std::string_view text, OperandSyntax syntax) {
  std::vector<Result<UsdtOperand>> operands;
  for (text = Trim(text); !text.empty() && operands.size() < kMaxUsdtArguments;) {
    const size_t end = EndOf(text);
    operands.push_back(ParseOne(Trim(text.substr(0, end)), syntax));
    text = Trim(text.substr(end));
  }
  return operands;
}

}  // namespace weft::kernel
