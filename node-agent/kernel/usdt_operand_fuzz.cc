// SPDX-License-Identifier: Apache-2.0
// Any text as the arguments of a USDT probe: refused or parsed, and what was parsed is within
// bounds.
#include <cstdlib>

#include "node-agent/kernel/limits.h"
#include "node-agent/kernel/usdt_operand.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::kernel;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const OperandSyntax syntax : {OperandSyntax::kX86, OperandSyntax::kArm64}) {
    const auto operands = ParseUsdtOperands(text, syntax);
    if (operands.size() > kMaxUsdtArguments) std::abort();
    for (const auto& operand : operands)
      if (operand && (operand->size > 8 || operand->reg > 31)) std::abort();
  }
  return 0;
}
