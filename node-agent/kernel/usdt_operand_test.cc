// SPDX-License-Identifier: Apache-2.0
// Operands as compilers write them into notes of USDT probes, and what is none.
#include "node-agent/kernel/usdt_operand.h"

#include <gtest/gtest.h>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

using Kind = UsdtOperand::Kind;

UsdtOperand One(std::string_view text, OperandSyntax syntax = OperandSyntax::kX86) {
  const auto operands = ParseUsdtOperands(text, syntax);
  EXPECT_EQ(operands.size(), 1u) << text;
  if (operands.size() != 1 || !operands[0]) {
    ADD_FAILURE() << text;
    return {};
  }
  return *operands[0];
}

std::string Why(std::string_view text, OperandSyntax syntax = OperandSyntax::kX86) {
  const auto operands = ParseUsdtOperands(text, syntax);
  if (operands.size() != 1 || operands[0]) return "";
  return operands[0].error().message;
}

TEST(UsdtOperand, RegistersByEveryName) {
  EXPECT_EQ(One("8@%rax"), (UsdtOperand{.reg = 0}));
  EXPECT_EQ(One("-4@%edx"), (UsdtOperand{.size = 4, .is_signed = true, .reg = 1}));
  EXPECT_EQ(One("2@%cx"), (UsdtOperand{.size = 2, .reg = 2}));
  EXPECT_EQ(One("1@%bl"), (UsdtOperand{.size = 1, .reg = 3}));
  EXPECT_EQ(One("-1@%ah"), (UsdtOperand{.size = 1, .is_signed = true, .reg = 0, .first_bit = 8}));
  EXPECT_EQ(One("1@%sil").reg, 4);
  EXPECT_EQ(One("1@%dil").reg, 5);
  EXPECT_EQ(One("8@%rbp").reg, 6);
  EXPECT_EQ(One("8@%rsp").reg, 7);
  EXPECT_EQ(One("8@%r8").reg, 8);
  EXPECT_EQ(One("4@%r10d").reg, 10);
  EXPECT_EQ(One("2@%r15w").reg, 15);
  EXPECT_EQ(One("1@%r12b").reg, 12);
}

TEST(UsdtOperand, MemoryConstantsAndVariables) {
  EXPECT_EQ(
      One("-4@-20(%rbp)"),
      (UsdtOperand{.kind = Kind::kMemory, .size = 4, .is_signed = true, .reg = 6, .number = -20}));
  EXPECT_EQ(One("8@(%rsp)"), (UsdtOperand{.kind = Kind::kMemory, .reg = 7}));
  EXPECT_EQ(One("4@$5"), (UsdtOperand{.kind = Kind::kConstant, .size = 4, .number = 5}));
  EXPECT_EQ(One("-8@$-1").number, -1);
  EXPECT_EQ(One("4@counter(%rip)"),
            (UsdtOperand{.kind = Kind::kVariable, .size = 4, .variable = "counter"}));
  EXPECT_EQ(One("4@table+16(%rip)"),
            (UsdtOperand{.kind = Kind::kVariable, .size = 4, .number = 16, .variable = "table"}));
  EXPECT_EQ(One("4@16+table(%rip)"), One("4@table+16(%rip)"));
  EXPECT_EQ(One("4@table-8").number, -8);
}

TEST(UsdtOperand, SeveralInOrder) {
  const auto operands = ParseUsdtOperands("-4@$1 8@%rdi -4@-20(%rbp)", OperandSyntax::kX86);
  ASSERT_EQ(operands.size(), 3u);
  EXPECT_EQ(operands[0]->kind, Kind::kConstant);
  EXPECT_EQ(operands[1]->reg, 5);
  EXPECT_EQ(operands[2]->number, -20);
  EXPECT_TRUE(ParseUsdtOperands("", OperandSyntax::kX86).empty());
  EXPECT_EQ(ParseUsdtOperands(std::string(100, 'x') + " 4@$1", OperandSyntax::kX86).size(), 1u)
      << "what has no size takes the rest with it";
}

TEST(UsdtOperand, OfArm64) {
  constexpr auto kArm = OperandSyntax::kArm64;
  EXPECT_EQ(One("8@x3", kArm), (UsdtOperand{.reg = 3}));
  EXPECT_EQ(One("-4@w30", kArm).reg, 30);
  EXPECT_EQ(
      One("-4@[sp, 12]", kArm),
      (UsdtOperand{.kind = Kind::kMemory, .size = 4, .is_signed = true, .reg = 31, .number = 12}));
  EXPECT_EQ(One("8@[x19]", kArm).reg, 19);
  EXPECT_EQ(One("4@-7", kArm), (UsdtOperand{.kind = Kind::kConstant, .size = 4, .number = -7}));
  EXPECT_EQ(ParseUsdtOperands("-4@[sp, 12] 8@x0 4@5", kArm).size(), 3u);
  EXPECT_NE(Why("8@[x0, x1]", kArm), "");
  EXPECT_NE(Why("8@d0", kArm), "");
}

TEST(UsdtOperand, ReportsWhyAnOperandIsNotRecorded) {
  EXPECT_EQ(Why("8@(%rax,%rdx,8)"), "'(%rax,%rdx,8)' has an index register");
  EXPECT_NE(Why("8f@%xmm0"), "");
  EXPECT_NE(Why("8@%xmm0"), "");
  EXPECT_NE(Why("4@%fs:0"), "");
  EXPECT_NE(Why("8@$symbol"), "");
  EXPECT_NE(Why("%eax"), "");
  EXPECT_NE(Why("3@%eax"), "");
  EXPECT_NE(Why("@%eax"), "");
  EXPECT_NE(Why("4@"), "");
  EXPECT_NE(Why("4@8(%rax"), "");
  EXPECT_NE(Why("4@8(%ah)"), "");
  EXPECT_NE(Why("4@12"), "") << "a fixed address";
  EXPECT_NE(Why("4@8(%rip)"), "");
  EXPECT_NE(Why("4@a+b(%rip)"), "");
}

}  // namespace
}  // namespace weft::kernel
