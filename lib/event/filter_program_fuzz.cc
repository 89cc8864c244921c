// SPDX-License-Identifier: Apache-2.0
// Any bytes as a filter program: refused, or linked and run without leaving the event, the program
// or the stack. The first byte chooses: the rest is a whole program, or the instructions of one
// whose header and symbols are in order (which gets past the validator far more often).
#include <cstdlib>

#include "lib/event/filter_fuzz_event.h"
#include "lib/event/filter_program_builder.h"

namespace {

using weft::testing::ProgramBuilder;

ProgramBuilder Symbols() {
  ProgramBuilder b;
  b.features = WEFT_FILTER_FEATURE_FLOAT;
  for (const char* field : {"a", "b", "d", "e", "s", "t", "x", "y", "z", "n"})
    b.Symbol(WEFT_FILTER_SYMBOL_FIELD, field);
  for (const char* field : {"n", "f", "q"})
    b.Symbol(WEFT_FILTER_SYMBOL_FIELD, field, WEFT_FILTER_SYMBOL_INDEX, 1);
  b.Symbol(WEFT_FILTER_SYMBOL_FIELD, "q", WEFT_FILTER_SYMBOL_INDEX, 7);
  for (const char* context : {"i", "s"}) b.Symbol(WEFT_FILTER_SYMBOL_CONTEXT, context);
  for (const char* context : {"p:i", "p:f", "p:s", "p:n"})
    b.Symbol(WEFT_FILTER_SYMBOL_APP, context);
  return b;
}

// Each instruction takes two bytes: its operation and its operand.
std::vector<uint8_t> Build(const uint8_t* data, size_t size) {
  static constexpr std::string_view kTexts[] = {"", "abc", "a*", "*\\*", "*b*"};
  static constexpr uint64_t kNumbers[] = {0, 1, 63, 64, ~0ull, 0x3fe0000000000000ull, 1ull << 63};
  ProgramBuilder b = Symbols();
  for (size_t i = 0; i + 1 < size && b.insn_count() < WEFT_FILTER_MAX_INSNS; i += 2) {
    const uint8_t op = data[i] % WEFT_FILTER_OP_COUNT;
    const uint8_t operand = data[i + 1];
    switch (op) {
      case WEFT_FILTER_OP_PUSH_INT:
      case WEFT_FILTER_OP_PUSH_FLOAT:
        b.Insn(op, 0, kNumbers[operand % std::size(kNumbers)]);
        break;
      case WEFT_FILTER_OP_PUSH_STRING:
      case WEFT_FILTER_OP_PUSH_PATTERN:
        b.Text(op, kTexts[operand % std::size(kTexts)]);
        break;
      case WEFT_FILTER_OP_PUSH_SYMBOL:
        b.Insn(op, operand % 20);
        break;
      case WEFT_FILTER_OP_AND_ELSE:
      case WEFT_FILTER_OP_OR_ELSE:
        b.Insn(op, static_cast<uint16_t>(b.insn_count() + 1 + operand % 16));
        break;
      default:
        b.Insn(op);
        break;
    }
  }
  return b.Insn(WEFT_FILTER_OP_RETURN).Bytes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static weft::testing::EventAndContexts input;
  if (size == 0) return 0;
  const std::vector<uint8_t> program =
      (data[0] & 1) != 0 ? std::vector<uint8_t>(data + 1, data + size) : Build(data + 1, size - 1);
  const int valid = weft_filter_validate(program.data(), static_cast<uint32_t>(program.size()));
  const weft::testing::LinkedFilter filter(program, input.event.encoded(), &input.contexts);
  if (valid != 0 && filter.error != valid) std::abort();
  (void)filter.Run(input.event, &input.contexts);
  return 0;
}
