// SPDX-License-Identifier: Apache-2.0
// Each rule of lib/abi/filter.h, broken once.
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "lib/event/filter.h"
#include "lib/event/filter_program_builder.h"

namespace weft {
namespace {

using testing::ProgramBuilder;

int Validate(const std::vector<uint8_t>& bytes) {
  const std::vector<uint8_t> exact(bytes);
  return weft_filter_validate(exact.data(), static_cast<uint32_t>(exact.size()));
}

int Validate(const ProgramBuilder& builder) { return Validate(builder.Bytes()); }

// id == 5 || s == "x"
ProgramBuilder Good() {
  ProgramBuilder b;
  b.Symbol(WEFT_FILTER_SYMBOL_FIELD, "id").Symbol(WEFT_FILTER_SYMBOL_CONTEXT, "s");
  b.Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 0).Insn(WEFT_FILTER_OP_PUSH_INT, 0, 5);
  b.Insn(WEFT_FILTER_OP_EQ).Insn(WEFT_FILTER_OP_OR_ELSE, 7);
  b.Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 1).Text(WEFT_FILTER_OP_PUSH_STRING, "x");
  b.Insn(WEFT_FILTER_OP_EQ).Insn(WEFT_FILTER_OP_RETURN);
  return b;
}

int WithHeader(const std::function<void(ProgramBuilder&)>& change) {
  ProgramBuilder b = Good();
  change(b);
  return Validate(b);
}

TEST(FilterValidate, AcceptsAProgram) { EXPECT_EQ(Validate(Good()), 0); }

TEST(FilterValidate, ChecksTheHeader) {
  EXPECT_EQ(WithHeader([](auto& b) { b.magic++; }), -EINVAL);
  EXPECT_EQ(WithHeader([](auto& b) { b.version = 2; }), -EOPNOTSUPP);
  EXPECT_EQ(WithHeader([](auto& b) { b.header_size = 40; }), -EINVAL);
  EXPECT_EQ(WithHeader([](auto& b) { b.reserved0 = 1; }), -EINVAL);
  EXPECT_EQ(WithHeader([](auto& b) { b.reserved1 = 1; }), -EINVAL);
  EXPECT_EQ(WithHeader([](auto& b) { b.features = 2; }), -EOPNOTSUPP);
  EXPECT_EQ(WithHeader([](auto& b) { b.max_stack = 17; }), -EINVAL);
  EXPECT_EQ(WithHeader([](auto& b) { b.max_stack = 1; }), -EINVAL) << "needs 2";
  EXPECT_EQ(WithHeader([](auto& b) { b.max_stack = 2; }), 0);
}

TEST(FilterValidate, RefusesEveryTruncation) {
  const std::vector<uint8_t> whole = Good().Bytes();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(Validate({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}), -EINVAL);
}

TEST(FilterValidate, ChecksSymbols) {
  const auto with = [](uint8_t kind, std::string_view name, uint8_t flags = 0, uint64_t index = 0) {
    ProgramBuilder b;
    b.Symbol(kind, name, flags, index).Insn(WEFT_FILTER_OP_PUSH_SYMBOL).Insn(WEFT_FILTER_OP_RETURN);
    return Validate(b);
  };
  EXPECT_EQ(with(1, "a", 1, 5), 0);
  EXPECT_EQ(with(0, "a"), -EINVAL);
  EXPECT_EQ(with(4, "a"), -EINVAL);
  EXPECT_EQ(with(1, ""), -EINVAL);
  EXPECT_EQ(with(1, std::string_view("a\0b", 3)), -EINVAL);
  EXPECT_EQ(with(1, "a", 2), -EINVAL);
  EXPECT_EQ(with(2, "a", 1), -EINVAL) << "no elements of contexts";
  EXPECT_EQ(with(1, "a", 0, 5), -EINVAL) << "an index without its flag";
  std::vector<uint8_t> bytes = Good().Bytes();
  bytes[32 + 4] = 200;  // name_offset
  EXPECT_EQ(Validate(bytes), -EINVAL);
}

int Insns(const std::function<void(ProgramBuilder&)>& add) {
  ProgramBuilder b;
  b.Symbol(1, "a");
  add(b);
  return Validate(b);
}

TEST(FilterValidate, ChecksOperations) {
  EXPECT_EQ(Insns([](auto& b) { b.Insn(0).Insn(1); }), -EINVAL);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(25).Insn(1); }), -EOPNOTSUPP);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6, 1).Insn(1); }), -EINVAL) << "no such symbol";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6, 0, 1).Insn(1); }), -EINVAL) << "an operand too many";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6, 0, 0, 1).Insn(1); }), -EINVAL);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(2, 1, 5).Insn(1); }), -EINVAL);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6, 0, 0, 0, 1).Insn(1); }), -EINVAL) << "reserved";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(3, 0, 0).Insn(1); }), -EINVAL) << "a float without its flag";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(4, 0, 2, 1).Insn(16).Insn(1); }), -EINVAL)
      << "a literal beyond the literals";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(4, 0, ~uint64_t{0}, 1).Insn(16).Insn(1); }),
            -EINVAL);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Text(4, std::string_view("\0", 1)).Insn(16).Insn(1); }),
            -EINVAL);
}

TEST(FilterValidate, ChecksTheStack) {
  EXPECT_EQ(Insns([](auto& b) { b.Insn(1); }), -EINVAL) << "nothing to return";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(16).Insn(1); }), -EINVAL);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(6).Insn(1); }), -EINVAL) << "one left over";
  EXPECT_EQ(Insns([](auto& b) {
              for (int i = 0; i < 17; ++i) b.Insn(6);
              for (int i = 0; i < 16; ++i) b.Insn(13);
              b.Insn(1);
            }),
            -EINVAL);
  EXPECT_EQ(Insns([](auto& b) {
              for (int i = 0; i < 16; ++i) b.Insn(6);
              for (int i = 0; i < 15; ++i) b.Insn(13);
              b.Insn(1);
            }),
            0);
}

TEST(FilterValidate, ChecksJumps) {
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(22, 3).Insn(6).Insn(1); }), 0);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(22, 0).Insn(6).Insn(1); }), -EINVAL) << "back";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(22, 1).Insn(6).Insn(1); }), -EINVAL) << "to itself";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(22, 4).Insn(6).Insn(1); }), -EINVAL) << "outside";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(22, 2).Insn(6).Insn(1); }), -EINVAL)
      << "another depth there";
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(6).Insn(22, 5).Insn(22, 5).Insn(6).Insn(1); }),
            -EINVAL)
      << "two jumps with different depths";
}

TEST(FilterValidate, WantsOneReturnAtTheEnd) {
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6); }), -EINVAL);
  EXPECT_EQ(Insns([](auto&) {}), -EINVAL);
  EXPECT_EQ(Insns([](auto& b) { b.Insn(6).Insn(1).Insn(6).Insn(1); }), -EINVAL);
}

TEST(FilterValidate, KeepsTheLimits) {
  ProgramBuilder insns;
  insns.Symbol(1, "a").Insn(6);
  for (uint32_t i = 2; i < WEFT_FILTER_MAX_INSNS; ++i) insns.Insn(9);
  ProgramBuilder too_many = insns;
  EXPECT_EQ(Validate(insns.Insn(1)), 0);
  EXPECT_EQ(Validate(too_many.Insn(9).Insn(1)), -EINVAL);

  ProgramBuilder symbols;
  for (uint32_t i = 0; i <= WEFT_FILTER_MAX_SYMBOLS; ++i) symbols.Symbol(1, "a");
  EXPECT_EQ(Validate(symbols.Insn(6).Insn(1)), -EINVAL);

  ProgramBuilder literals;
  literals.Text(4, std::string(WEFT_FILTER_MAX_LITERAL_BYTES + 1, 'x')).Insn(1);
  EXPECT_EQ(Validate(literals), -EINVAL);
}

}  // namespace
}  // namespace weft
