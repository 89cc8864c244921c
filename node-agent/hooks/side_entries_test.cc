// SPDX-License-Identifier: Apache-2.0
#include "node-agent/hooks/side_entries.h"

#include <gtest/gtest.h>

namespace weft::hooks {
namespace {

using Found = std::set<uint64_t>;

Found Look(const std::vector<uint8_t>& code, const std::vector<uint64_t>& starts,
           const std::vector<uint64_t>& functions) {
  SideEntries entries(starts, functions);
  entries.Look(0x1000, code, 0);
  return entries.found();
}

// push %rbx; mov %r8,%r10; jmp 0x100a / push %rbx; xor %r10,%r10; mov (%rsi),%rax; ret
const std::vector<uint8_t> kAsInGmp = {0x53, 0x4d, 0x89, 0xc2, 0xeb, 0x04, 0x53,
                                       0x4d, 0x31, 0xd2, 0x48, 0x8b, 0x06, 0xc3};

TEST(SideEntries, BranchOfAnotherFunctionIsFound) {
  EXPECT_EQ(Look(kAsInGmp, {0x1000, 0x1006}, {0x1000, 0x1006}), Found{0x1006});
}

TEST(SideEntries, OnlyFunctionsThatAreToBeHookedAreLookedAt) {
  EXPECT_EQ(Look(kAsInGmp, {0x1000, 0x1006}, {0x1000}), Found{});
}

TEST(SideEntries, BranchToTheBeginOrBehindTheJumpIsNone) {
  std::vector<uint8_t> code = kAsInGmp;
  code[5] = 0;  // to 0x1006
  EXPECT_EQ(Look(code, {0x1000, 0x1006}, {0x1000, 0x1006}), Found{});
  code[5] = 5;  // to 0x100b
  EXPECT_EQ(Look(code, {0x1000, 0x1006}, {0x1000, 0x1006}), Found{});
}

TEST(SideEntries, LongBranchesAndBranchesBackAreFound) {
  // push %rbp; mov %rsp,%rbp; nop; ret / bnd jmp 0x1001; nop / jne 0x1004
  const std::vector<uint8_t> code = {0x55, 0x48, 0x89, 0xe5, 0x90, 0xc3, 0xf2, 0xe9, 0xf5, 0xff,
                                     0xff, 0xff, 0x90, 0x0f, 0x85, 0xf1, 0xff, 0xff, 0xff};
  EXPECT_EQ(Look(code, {0x1000, 0x1006}, {0x1000}), Found{0x1000});
  EXPECT_EQ(Look(code, {0x1000, 0x100d}, {0x1000}), Found{0x1000});
}

TEST(SideEntries, BytesInsideAnotherInstructionAreNoBranch) {
  // mov $0xeb04ebeb,%eax; ret / push %rbx; xor %r10,%r10; ret
  const std::vector<uint8_t> code = {0xb8, 0xeb, 0xeb, 0x04, 0xeb, 0xc3,
                                     0x53, 0x4d, 0x31, 0xd2, 0xc3};
  EXPECT_EQ(Look(code, {0x1000, 0x1006}, {0x1006}), Found{});
  // The function before it is not known: decoding begins at the first byte.
  EXPECT_EQ(Look(code, {0x1006}, {0x1006}), Found{});
}

TEST(SideEntries, CodeThatEndsInsideABranchIsRead) {
  EXPECT_EQ(Look({0x90, 0xe9, 0x01}, {0x1000}, {0x1000}), Found{});
  EXPECT_EQ(Look({0x0f}, {0x1000}, {0x1000}), Found{});
  EXPECT_EQ(Look({}, {0x1000}, {0x1000}), Found{});
}

}  // namespace
}  // namespace weft::hooks
