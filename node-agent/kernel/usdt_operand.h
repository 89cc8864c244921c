// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a USDT probe in its note: a list of the assembler's operands, such as
// "-4@-20(%rbp) 8@%rax 4@$5" (x86-64) or "-4@[sp, 12] 8@x0 4@5" (arm64). The text is foreign.
// Source: systemtap's sys/sdt.h; the assemblers' syntax of operands. Thread-safety: plain values
// and functions.
#ifndef WEFT_NODE_AGENT_KERNEL_USDT_OPERAND_H_
#define WEFT_NODE_AGENT_KERNEL_USDT_OPERAND_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace weft::kernel {

struct UsdtOperand {
  enum class Kind {
    kRegister,
    kConstant,  // `number`
    kMemory,    // at register + number
    kVariable,  // at the address of `variable` + number
  };
  Kind kind = Kind::kRegister;
  uint8_t size = 8;  // bytes: 1, 2, 4, 8
  bool is_signed = false;
  uint8_t reg = 0;        // DWARF's number
  uint8_t first_bit = 0;  // of a register's part (%ah)
  int64_t number = 0;
  std::string variable;

  bool operator==(const UsdtOperand&) const = default;
};

enum class OperandSyntax { kX86, kArm64 };
#if defined(__aarch64__)
inline constexpr OperandSyntax kOwnSyntax = OperandSyntax::kArm64;
#else
inline constexpr OperandSyntax kOwnSyntax = OperandSyntax::kX86;
#endif

// Returns one entry per argument. An operand that cannot be recorded is an error of kUnsupported
// that says why (an index register, a float, another segment); text that is no operand is an error
// of kCorrupt. There are at most kMaxUsdtArguments.
std::vector<Result<UsdtOperand>> ParseUsdtOperands(std::string_view text,
                                                   OperandSyntax syntax = kOwnSyntax);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_USDT_OPERAND_H_
