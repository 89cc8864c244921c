// SPDX-License-Identifier: Apache-2.0
// The bytes that expressions become, written by an encoder of its own.
#include "lib/event/filter_compiler.h"

#include <gtest/gtest.h>

#include <bit>

#include "lib/event/filter_program_builder.h"

namespace weft {
namespace {

using testing::ProgramBuilder;

std::vector<uint8_t> Compiled(std::string_view expression) {
  const auto program = CompileFilter(expression);
  EXPECT_TRUE(program.has_value()) << program.error().ToError(expression).message;
  return program.value_or(std::vector<uint8_t>{});
}

ProgramBuilder WithStack(uint16_t max_stack) {
  ProgramBuilder builder;
  builder.max_stack = max_stack;
  return builder;
}

// The worked example of docs/formats/filter.md, byte by byte.
TEST(FilterCompiler, GoldenBytes) {
  const std::vector<uint8_t> expected = {
      'W', 'F', 'L', 'T', 1,   0,   32, 0,  // magic, version, header size
      198, 0,   0,   0,   8,   0,   2,  0,  // size, instructions, symbols
      6,   0,   0,   0,   2,   0,   0,  0,  // literal bytes, stack, reserved
      0,   0,   0,   0,   0,   0,   0,  0,  // features, reserved
      1,   0,   2,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // field, literals[0, 2): "id"
      1,   0,   1,   0,   2,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // field, literals[2, 3): "s"
      6,   0,   0,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // PUSH_SYMBOL 0
      2,   0,   0,   0,   0,   0,   0,  0, 5, 0, 0, 0, 0, 0, 0, 0,  // PUSH_INT 5
      20,  0,   0,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // GT
      22,  0,   7,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // AND_ELSE 7
      6,   0,   1,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // PUSH_SYMBOL 1
      5,   0,   0,   0,   3,   0,   0,  0, 3, 0, 0, 0, 0, 0, 0, 0,  // PUSH_PATTERN literals[3, 6)
      16,  0,   0,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // EQ
      1,   0,   0,   0,   0,   0,   0,  0, 0, 0, 0, 0, 0, 0, 0, 0,  // RETURN
      'i', 'd', 's', 'a', '*', 'b',
  };
  EXPECT_EQ(Compiled("id > 5 && s == \"a*b\""), expected);
}

TEST(FilterCompiler, ConstantsGoToTheRight) {
  EXPECT_EQ(Compiled("5 < id"), Compiled("id > 5"));
  EXPECT_EQ(Compiled("5 >= id"), Compiled("id <= 5"));
  EXPECT_EQ(Compiled("7 & id"), Compiled("id & 7"));
  EXPECT_EQ(Compiled("\"x\" == s"), Compiled("s == \"x\""));
}

TEST(FilterCompiler, ComputesConstants) {
  EXPECT_EQ(Compiled("id == -(1 << 4 | 3) ^ ~0"), Compiled("id == 18"));
  EXPECT_EQ(Compiled("id == !5"), Compiled("id == 0"));
  EXPECT_EQ(Compiled("d > -1.5"), [] {
    ProgramBuilder b = WithStack(2);
    b.features = 1;
    b.Symbol(1, "d").Insn(6).Insn(3, 0, std::bit_cast<uint64_t>(-1.5)).Insn(20).Insn(1);
    return b.Bytes();
  }());
}

TEST(FilterCompiler, LogicalOperatorsJump) {
  ProgramBuilder b = WithStack(1);
  b.Symbol(1, "a").Symbol(2, "b").Symbol(3, "p:c").Symbol(1, "d", 1, 7);
  b.Insn(6, 0).Insn(23, 4).Insn(6, 1).Insn(24).Insn(22, 7).Insn(6, 2).Insn(9);
  b.Insn(22, 10).Insn(6, 3).Insn(24).Insn(1);
  EXPECT_EQ(Compiled("(a || $ctx.b) && !$app.p:c && d[7]"), b.Bytes());
}

TEST(FilterCompiler, ANameUsedTwiceIsOneSymbol) {
  ProgramBuilder b = WithStack(2);
  b.Symbol(1, "a").Insn(6, 0).Insn(6, 0).Insn(16).Insn(1);
  EXPECT_EQ(Compiled("a == a"), b.Bytes());
}

TEST(FilterCompiler, KeepsTheLimitsOfPrograms) {
  std::string names = "f0";
  for (int i = 1; i <= 128; ++i) names += "||f" + std::to_string(i);
  EXPECT_EQ(CompileFilter(names).error().code, ErrorCode::kLimit);
  std::string insns = "a";
  for (int i = 0; i < 500; ++i) insns += "||a";
  EXPECT_EQ(CompileFilter(insns).error().code, ErrorCode::kLimit);
  EXPECT_EQ(CompileFilter("a == \"" + std::string(16380, 'x') + "\"").error().code,
            ErrorCode::kLimit);
}

}  // namespace
}  // namespace weft
