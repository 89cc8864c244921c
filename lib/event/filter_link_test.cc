// SPDX-License-Identifier: Apache-2.0
// What linking makes of programs, and that it changes no result: also of programs that no compiler
// would write.
#include <gtest/gtest.h>

#include <random>

#include "lib/event/filter_compiler.h"
#include "lib/event/filter_linked.h"
#include "lib/event/filter_program_builder.h"
#include "lib/event/filter_reference.h"
#include "lib/event/filter_test_event.h"

namespace weft {
namespace {

using testing::LinkedFilter;
using testing::ProgramBuilder;
using testing::TestContexts;
using testing::TestEvent;

class FilterLink : public ::testing::Test {
 protected:
  void SetUp() override {
    event_.Number<int32_t>("a", 5)
        .Number<int64_t>("b", 0)
        .Number<double>("d", 0.5)
        .Text("s", "abc")
        .Sequence<int32_t>("q", {1, 0})
        .Number<int32_t>("hidden", 1, WEFT_FIELD_NOWRITE);
    event_.Build();
    contexts_.entries = {{"x", WEFT_FILTER_SYMBOL_CONTEXT, WEFT_FILTER_INT, int64_t{3}},
                         {"p:i", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, int64_t{0}},
                         {"p:f", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, 2.5},
                         {"p:s", WEFT_FILTER_SYMBOL_APP, WEFT_FILTER_ANY, std::string("abc")}};
  }

  // Returns the operations that an expression is linked to.
  std::vector<int> Linked(std::string_view expression) {
    const LinkedFilter filter(*CompileFilter(expression), event_.encoded(), &contexts_);
    EXPECT_EQ(filter.error, 0) << expression;
    std::vector<int> ops;
    ops.reserve(filter.get()->insn_count);
    for (int i = 0; i < filter.get()->insn_count; ++i) ops.push_back(filter.get()->insns[i].op);
    return ops;
  }

  uint32_t Reads(std::string_view expression) {
    const LinkedFilter filter(*CompileFilter(expression), event_.encoded(), &contexts_);
    EXPECT_EQ(filter.error, 0) << expression;
    return weft_filter_reads(filter.get());
  }

  TestEvent event_;
  TestContexts contexts_;
};

constexpr int kRangeS32 = static_cast<int>(WEFT_LINK_RANGE) + static_cast<int>(WEFT_LOAD_S32);
constexpr int kRange64 = static_cast<int>(WEFT_LINK_RANGE) + static_cast<int>(WEFT_LOAD_64);

TEST_F(FilterLink, ConditionsOnFieldsBecomeTestsWithoutAStack) {
  using Ops = std::vector<int>;
  EXPECT_EQ(Linked("a > 3"), Ops{kRangeS32});
  EXPECT_EQ(Linked("3 < a"), Ops{kRangeS32});
  EXPECT_EQ(Linked("a"), Ops{kRangeS32});
  EXPECT_EQ(Linked("!a"), Ops{kRangeS32});
  EXPECT_EQ(Linked("!(a == 1 || !b) && a < 1 << 20"), (Ops{kRangeS32, kRange64, kRangeS32}));
  EXPECT_EQ(Linked("s == \"abc\""), Ops{WEFT_LINK_TEXT_EQUAL});
  EXPECT_EQ(Linked("s != \"ab*\" || \"*\" == s"),
            (Ops{WEFT_LINK_TEXT_PREFIX, WEFT_LINK_TEXT_PREFIX}));
  EXPECT_EQ(Linked("s == \"*c\""), Ops{WEFT_LINK_TEXT_PATTERN});
  EXPECT_EQ(Linked("d > 1 && d < 0.5"), (Ops{WEFT_LINK_FLOAT_COMPARE, WEFT_LINK_FLOAT_COMPARE}));
  EXPECT_EQ(Linked("$ctx.x == 3 && $ctx.x"),
            (Ops{WEFT_LINK_RANGE_CONTEXT, WEFT_LINK_RANGE_CONTEXT}));
  EXPECT_EQ(Linked("(a & 4) == 4"), (Ops{WEFT_LINK_LOAD, WEFT_LINK_BITS_INT, WEFT_LINK_RANGE_TOP}));
  EXPECT_EQ(Linked("q[1] == 4"), (Ops{WEFT_LINK_ELEMENT, WEFT_LINK_RANGE_TOP}));
}

TEST_F(FilterLink, ReportsWhatTheFilterReads) {
  EXPECT_EQ(Reads("a == 1"), uint32_t{WEFT_FILTER_READS_FIELD});
  EXPECT_EQ(Reads("a == 1 || hidden"),
            uint32_t{WEFT_FILTER_READS_NOWRITE} | WEFT_FILTER_READS_FIELD);
  EXPECT_EQ(Reads("$app.p:i"), uint32_t{WEFT_FILTER_READS_CONTEXT});
}

TEST_F(FilterLink, NeedsTheMemoryThatItSays) {
  const std::vector<uint8_t> program = *CompileFilter("a == 1 && s == \"x*y\"");
  const auto size = static_cast<uint32_t>(program.size());
  weft_description_layout layout;
  ASSERT_EQ(weft_description_check(event_.encoded().data(), event_.encoded().size(), &layout), 0);
  const auto link = [&](void* out, uint32_t out_size) {
    return weft_filter_link(program.data(), size, event_.encoded().data(), &layout, nullptr, out,
                            out_size);
  };
  const uint32_t bound = weft_filter_link_bound(program.data());
  EXPECT_EQ(link(nullptr, 0), static_cast<int>(bound));
  std::vector<uint64_t> memory(bound / 8 + 1);
  EXPECT_EQ(link(memory.data(), bound - 1), -ENOSPC);
  const int used = link(memory.data(), bound);
  ASSERT_GT(used, 0);
  EXPECT_LE(static_cast<uint32_t>(used), bound);

  std::vector<uint64_t> moved(memory.begin(), memory.begin() + used / 8 + 1);
  std::fill(memory.begin(), memory.end(), 0);
  event_ = TestEvent();
  event_.Number<int32_t>("a", 1).Number<int64_t>("b", 0).Number<double>("d", 0).Text("s", "x..y");
  event_.Build();
  EXPECT_TRUE(weft_filter_run(reinterpret_cast<const weft_linked_filter*>(moved.data()),
                              event_.fixed(), event_.segments().data(), nullptr));
}

TEST_F(FilterLink, RefusesBrokenPrograms) {
  std::vector<uint8_t> program = *CompileFilter("a");
  program[0] ^= 1;
  EXPECT_EQ(LinkedFilter(program, event_.encoded(), nullptr).error, -EINVAL);
}

// Jumps into the middle of what would be one test: `x && y` as the left side of a comparison that
// stands where a constant follows a name.
TEST_F(FilterLink, JumpsBetweenANameAndItsConstantAreKept) {
  ProgramBuilder b;
  b.Symbol(WEFT_FILTER_SYMBOL_FIELD, "b")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "a")
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 0)
      .Insn(WEFT_FILTER_OP_AND_ELSE, 3)
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 1)
      .Insn(WEFT_FILTER_OP_PUSH_INT, 0, 0)
      .Insn(WEFT_FILTER_OP_EQ)
      .Insn(WEFT_FILTER_OP_RETURN);
  const LinkedFilter filter(b.Bytes(), event_.encoded(), &contexts_);
  ASSERT_EQ(filter.error, 0);
  EXPECT_TRUE(filter.Run(event_, &contexts_)) << "b is 0, and (b && a) == 0";
}

// Like the test above, with a jump to the comparison itself.
TEST_F(FilterLink, JumpsToAComparisonAreKept) {
  ProgramBuilder b;
  b.Symbol(WEFT_FILTER_SYMBOL_FIELD, "b")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "a")
      .Insn(WEFT_FILTER_OP_PUSH_INT, 0, 5)
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 0)
      .Insn(WEFT_FILTER_OP_AND_ELSE, 6)
      .Insn(WEFT_FILTER_OP_AND_ELSE, 7)
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 1)
      .Insn(WEFT_FILTER_OP_PUSH_INT, 0, 5)
      .Insn(WEFT_FILTER_OP_NE)
      .Insn(WEFT_FILTER_OP_RETURN);
  const LinkedFilter filter(b.Bytes(), event_.encoded(), &contexts_);
  ASSERT_EQ(filter.error, 0);
  EXPECT_TRUE(filter.Run(event_, &contexts_)) << "b is 0, so 5 != 0 is asked";
}

// A value that is a float on one way and an integer on the other is not taken for an integer.
TEST_F(FilterLink, TypesOfSeveralWaysAreJoined) {
  ProgramBuilder b;
  b.Symbol(WEFT_FILTER_SYMBOL_FIELD, "d")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "b")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "a")
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 0)
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 1)
      .Insn(WEFT_FILTER_OP_AND_ELSE, 5)
      .Insn(WEFT_FILTER_OP_NOT)
      .Insn(WEFT_FILTER_OP_PUSH_SYMBOL, 2)
      .Insn(WEFT_FILTER_OP_OR_ELSE, 11)
      .Insn(WEFT_FILTER_OP_PUSH_INT, 0, 1)
      .Insn(WEFT_FILTER_OP_OR)
      .Insn(WEFT_FILTER_OP_AND_ELSE, 12)
      .Insn(WEFT_FILTER_OP_PUSH_INT, 0, 1)
      .Insn(WEFT_FILTER_OP_PUSH_INT, 0, 1)
      .Insn(WEFT_FILTER_OP_AND)
      .Insn(WEFT_FILTER_OP_RETURN);
  const LinkedFilter filter(b.Bytes(), event_.encoded(), &contexts_);
  ASSERT_EQ(filter.error, 0);
  EXPECT_FALSE(filter.Run(event_, &contexts_)) << "b is 0, so 0.5 | 1 is asked, which is undefined";
}

// A random valid program: tracks the depth at every jump's target.
class RandomProgram {
 public:
  RandomProgram(std::mt19937_64& random, const ProgramBuilder& symbols, size_t symbol_count)
      : random_(random), builder_(symbols), symbol_count_(symbol_count) {
    builder_.features = WEFT_FILTER_FEATURE_FLOAT;
    length_ = static_cast<int>(4 + Below(20));
    targets_.resize(static_cast<size_t>(length_) + 40, -1);
    // The few that find no end in time are refused by the validator.
    while (at_ + 1 < static_cast<int>(targets_.size()) &&
           (at_ < length_ || targets_[static_cast<size_t>(at_)] >= 0 || depth_ != 1 || Pending()))
      Step();
    builder_.Insn(WEFT_FILTER_OP_RETURN);
  }

  [[nodiscard]] std::vector<uint8_t> Bytes() const { return builder_.Bytes(); }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }

  [[nodiscard]] bool Pending() const {
    for (size_t i = static_cast<size_t>(at_); i < targets_.size(); ++i) {
      if (targets_[i] >= 0 && !(i == static_cast<size_t>(at_) && targets_[i] == depth_))
        return true;
    }
    return false;
  }

  void Emit(uint8_t op, int change, uint16_t arg = 0, uint64_t imm = 0) {
    builder_.Insn(op, arg, imm);
    depth_ += change;
    ++at_;
  }

  void Push() {
    static constexpr uint64_t kInts[] = {0, 1, 5, 64, ~0ull};
    switch (Below(8)) {
      case 0:
        return Emit(WEFT_FILTER_OP_PUSH_FLOAT, 1, 0, std::bit_cast<uint64_t>(0.5));
      case 1:
        builder_.Text(WEFT_FILTER_OP_PUSH_STRING, "abc");
        ++depth_, ++at_;
        return;
      case 2:
        builder_.Text(WEFT_FILTER_OP_PUSH_PATTERN, Below(2) != 0 ? "a*" : "*c\\*");
        ++depth_, ++at_;
        return;
      case 3:
      case 4:
        return Emit(WEFT_FILTER_OP_PUSH_INT, 1, 0, kInts[Below(5)]);
      default:
        return Emit(WEFT_FILTER_OP_PUSH_SYMBOL, 1, static_cast<uint16_t>(Below(symbol_count_)));
    }
  }

  // Adds an instruction that leads towards what the next target, or the end, needs.
  void Step() {
    const auto here = static_cast<size_t>(at_);
    if (targets_[here] >= 0 && targets_[here] == depth_) targets_[here] = -1;
    int wanted = at_ + 1 < length_ ? 1 + static_cast<int>(Below(4)) : 1;
    for (size_t i = here + 1; i < targets_.size(); ++i) {
      if (targets_[i] < 0) continue;
      const int distance = static_cast<int>(i - here);
      // Just enough steps left: walk straight there.
      if (std::abs(targets_[i] - depth_) >= distance - 1) wanted = targets_[i];
      break;
    }
    static constexpr uint8_t kUnary[] = {WEFT_FILTER_OP_NEG, WEFT_FILTER_OP_PLUS,
                                         WEFT_FILTER_OP_NOT, WEFT_FILTER_OP_BIT_NOT,
                                         WEFT_FILTER_OP_BOOL};
    if (depth_ < wanted || depth_ == 0) return Push();
    if (depth_ == wanted && depth_ > 0 && !MayJump()) return Emit(kUnary[Below(5)], 0);
    if (MayJump() && Below(2) == 0) return Jump();
    if (depth_ >= 2 && depth_ > wanted)
      return Emit(static_cast<uint8_t>(WEFT_FILTER_OP_SHL + Below(11)), -1);
    return Emit(kUnary[Below(5)], 0);
  }

  // At most one jump is open at a time, which is enough for joins of every sort.
  [[nodiscard]] bool MayJump() const {
    if (at_ + 1 >= length_ || depth_ == 0) return false;
    for (size_t i = static_cast<size_t>(at_); i < targets_.size(); ++i) {
      if (targets_[i] >= 0) return false;
    }
    return true;
  }

  void Jump() {
    const int target = at_ + 2 + static_cast<int>(Below(6));
    targets_[static_cast<size_t>(target)] = depth_;
    Emit(Below(2) != 0 ? WEFT_FILTER_OP_AND_ELSE : WEFT_FILTER_OP_OR_ELSE, -1,
         static_cast<uint16_t>(target));
  }

  std::mt19937_64& random_;
  ProgramBuilder builder_;
  size_t symbol_count_;
  int length_ = 0;
  int at_ = 0;
  int depth_ = 0;
  std::vector<int> targets_;  // depth at a jump's target that lies ahead, or -1
};

TEST_F(FilterLink, LinkingChangesNoResult) {
  ProgramBuilder symbols;
  symbols.Symbol(WEFT_FILTER_SYMBOL_FIELD, "a")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "b")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "d")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "s")
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "q", WEFT_FILTER_SYMBOL_INDEX, 1)
      .Symbol(WEFT_FILTER_SYMBOL_FIELD, "q", WEFT_FILTER_SYMBOL_INDEX, 2)
      .Symbol(WEFT_FILTER_SYMBOL_CONTEXT, "x")
      .Symbol(WEFT_FILTER_SYMBOL_APP, "p:i")
      .Symbol(WEFT_FILTER_SYMBOL_APP, "p:f")
      .Symbol(WEFT_FILTER_SYMBOL_APP, "p:s");
  const testing::ReferenceSymbols values = {
      int64_t{5}, int64_t{0}, 0.5, testing::ReferenceText{"abc"}, int64_t{0}, std::nullopt,
      int64_t{3}, int64_t{0}, 2.5, testing::ReferenceText{"abc"}};
#ifdef WEFT_SANITIZED
  constexpr int kPrograms = 30000;
#else
  constexpr int kPrograms = 300000;
#endif
  std::mt19937_64 random(7);
  int valid = 0;
  int accepted = 0;
  for (int i = 0; i < kPrograms; ++i) {
    const std::vector<uint8_t> program = RandomProgram(random, symbols, values.size()).Bytes();
    if (weft_filter_validate(program.data(), static_cast<uint32_t>(program.size())) != 0) continue;
    const LinkedFilter filter(program, event_.encoded(), &contexts_);
    if (filter.error != 0) {
      ASSERT_EQ(filter.error, -EPROTOTYPE);
      continue;
    }
    const bool expected = testing::RunReference(program, values);
    ASSERT_EQ(filter.Run(event_, &contexts_), expected) << "program " << i;
    ++valid;
    accepted += expected ? 1 : 0;
  }
  EXPECT_GT(valid, kPrograms / 15);
  EXPECT_GT(accepted, kPrograms / 60);
  std::printf("%d linked, %d true\n", valid, accepted);
}

}  // namespace
}  // namespace weft
