// SPDX-License-Identifier: Apache-2.0
// What the agent publishes is what a process reads: a decoder written from lib/abi/control.h alone
// finds every member again; generations, words and the arena obey the order of publication.
#include "lib/control/area.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

namespace weft::control {
namespace {

class ControlAreaTest : public testing::Test {
 protected:
  ControlAreaTest() {
    char name[] = "/tmp/weft-control-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/local.ctl";
  }
  ~ControlAreaTest() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  std::string File() {
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  template <typename T>
  static T At(const std::string& bytes, size_t offset) {
    T value{};
    EXPECT_LE(offset + sizeof(T), bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  // The rule set in force, its checksum tested.
  std::string RulesInForce() {
    const std::string file = File();
    const auto at = At<uint64_t>(file, 64);
    EXPECT_NE(at, 0u);
    const auto size = At<uint32_t>(file, at + 4);
    const std::string set = file.substr(at, size);
    EXPECT_EQ(At<uint64_t>(set, 8), weft_fnv1a64(set.data() + 16, set.size() - 16));
    EXPECT_EQ(At<uint32_t>(set, 0), 0x4c544357u);
    return set;
  }
  uint32_t Word(const char* name) {
    return At<uint32_t>(File(), 4096 + 4 * size_t{weft_name_hash(name)});
  }
  size_t WordsOn() {
    const std::string file = File();
    size_t on = 0;
    for (size_t i = 0; i < WEFT_CONTROL_WORDS; ++i) on += At<uint32_t>(file, 4096 + 4 * i) != 0;
    return on;
  }

  std::string folder_, path_;
};

ChannelSpec OneRule(const std::string& pattern) {
  ChannelSpec channel;
  channel.id = 1;
  channel.rules.push_back({.pattern = pattern});
  return channel;
}

TEST_F(ControlAreaTest, FreshAreaIsAllOff) {
  auto area = ControlArea::Create(path_, {.slot_count = 4, .clock = WEFT_CLOCK_TSC});
  ASSERT_TRUE(area.has_value()) << area.error().message;
  const std::string file = File();
  EXPECT_EQ(At<uint32_t>(file, 0), 0x4c544357u);
  EXPECT_EQ(At<uint64_t>(file, 16), file.size());
  EXPECT_EQ(At<uint32_t>(file, 52), 4u);
  EXPECT_EQ(At<uint32_t>(file, 56), 1u);
  EXPECT_EQ(At<uint64_t>(file, 64), 0u);
  EXPECT_EQ(WordsOn(), 0u);
}

TEST_F(ControlAreaTest, EveryMemberOfARuleSetIsFoundAgain) {
  auto area = ControlArea::Create(path_, {});
  ASSERT_TRUE(area.has_value());
  ChannelSpec first = OneRule("a:*");
  ChannelSpec second;
  second.id = 9;
  second.mode = WEFT_RING_OVERWRITE;
  second.subbuf_shift = 16;
  second.subbufs_shift = 3;
  second.flags = WEFT_CHANNEL_STATEDUMP;
  second.contexts = {{.id = 1}, {.id = 21, .name = "cycles", .perf_type = 2, .perf_config = 5}};
  second.vpids = {10, 11, 12};
  second.vuids = {1000};
  second.rules.push_back({.pattern = "b:c",
                          .exclusions = {"b:x*", "b:y"},
                          .loglevel_min = -1,
                          .loglevel_max = 6,
                          .filter = {1, 2, 3, 4, 5}});
  ASSERT_TRUE(area->Publish({first, second}));

  const std::string set = RulesInForce();
  EXPECT_EQ(At<uint32_t>(set, 16), 1u);  // generation
  EXPECT_EQ(At<uint32_t>(set, 20), 2u);
  const auto channel = At<uint32_t>(set, 24) + 64;
  EXPECT_EQ(At<uint64_t>(set, channel), 9u);
  EXPECT_EQ(At<uint32_t>(set, channel + 8), 1u);
  EXPECT_EQ(At<uint32_t>(set, channel + 12), 16u);
  EXPECT_EQ(At<uint32_t>(set, channel + 16), 3u);
  EXPECT_EQ(At<uint32_t>(set, channel + 20), 1u);
  EXPECT_EQ(At<uint32_t>(set, channel + 24), 2u);
  const auto context = At<uint32_t>(set, channel + 28) + 24;
  EXPECT_EQ(At<uint16_t>(set, context), 21u);
  EXPECT_EQ(At<uint16_t>(set, context + 2), 7u);
  EXPECT_STREQ(set.c_str() + At<uint32_t>(set, context + 4), "cycles");
  EXPECT_EQ(At<uint64_t>(set, context + 8), 5u);
  EXPECT_EQ(At<uint32_t>(set, context + 16), 2u);
  EXPECT_EQ(At<uint32_t>(set, channel + 32), 3u);
  EXPECT_EQ(At<uint32_t>(set, At<uint32_t>(set, channel + 36) + 8), 12u);
  EXPECT_EQ(At<uint32_t>(set, channel + 40), 1u);
  EXPECT_EQ(At<uint32_t>(set, At<uint32_t>(set, channel + 44)), 1000u);

  EXPECT_EQ(At<uint32_t>(set, 28), 2u);
  const auto rule = At<uint32_t>(set, 32) + 40;
  EXPECT_EQ(At<uint32_t>(set, rule), 1u);
  EXPECT_EQ(At<int32_t>(set, rule + 4), -1);
  EXPECT_EQ(At<int32_t>(set, rule + 8), 6);
  EXPECT_STREQ(set.c_str() + At<uint32_t>(set, rule + 12), "b:c");
  EXPECT_EQ(At<uint32_t>(set, rule + 16), 2u);
  const auto exclusions = At<uint32_t>(set, rule + 20);
  EXPECT_STREQ(set.c_str() + At<uint32_t>(set, exclusions), "b:x*");
  EXPECT_STREQ(set.c_str() + At<uint32_t>(set, exclusions + 4), "b:y");
  EXPECT_EQ(set.substr(At<uint32_t>(set, rule + 24), At<uint32_t>(set, rule + 28)), "\1\2\3\4\5");
}

TEST_F(ControlAreaTest, NameWithoutWildcardTurnsOneWordOn) {
  auto area = ControlArea::Create(path_, {});
  ASSERT_TRUE(area.has_value());
  ASSERT_TRUE(area->Publish({OneRule("shop:order")}));
  EXPECT_EQ(WordsOn(), 1u);
  EXPECT_EQ(Word("shop:order"), 1u);
  ASSERT_TRUE(area->Publish({OneRule("shop:pay")}));
  EXPECT_EQ(WordsOn(), 1u);
  EXPECT_EQ(Word("shop:pay"), 2u);
}

TEST_F(ControlAreaTest, WildcardTurnsAllWordsOnAndNothingTurnsThemOff) {
  auto area = ControlArea::Create(path_, {});
  ASSERT_TRUE(area.has_value());
  ASSERT_TRUE(area->Publish({OneRule("shop:*")}));
  EXPECT_EQ(WordsOn(), size_t{WEFT_CONTROL_WORDS});
  ASSERT_TRUE(area->Publish({}));
  EXPECT_EQ(WordsOn(), 0u);
  EXPECT_EQ(At<uint32_t>(RulesInForce(), 16), 2u);
}

TEST_F(ControlAreaTest, QuotedStarIsNoWildcard) {
  std::string literal;
  EXPECT_FALSE(HasWildcard("a:b\\*", &literal));
  EXPECT_EQ(literal, "a:b*");
  EXPECT_TRUE(HasWildcard("a:\\\\*"));
}

TEST_F(ControlAreaTest, SuccessorGoesOnWithTheGenerationAndTheWords) {
  {
    auto area = ControlArea::Create(path_, {.slot_count = 2, .clock = WEFT_CLOCK_TSC});
    ASSERT_TRUE(area.has_value());
    ASSERT_TRUE(area->Publish({OneRule("a:*")}));
  }
  auto area = ControlArea::Open(path_);
  ASSERT_TRUE(area.has_value()) << area.error().message;
  EXPECT_EQ(area->generation(), 1u);
  EXPECT_EQ(area->config().slot_count, 2u);
  EXPECT_EQ(area->config().clock, WEFT_CLOCK_TSC);
  ASSERT_TRUE(area->Publish({OneRule("a:b")}));
  EXPECT_EQ(WordsOn(), 1u);
  EXPECT_EQ(Word("a:b"), 2u);
}

TEST_F(ControlAreaTest, ArenaIsUsedRoundAndRoundWithoutTouchingWhatIsInForce) {
  auto area = ControlArea::Create(path_, {});
  ASSERT_TRUE(area.has_value());
  ChannelSpec large = OneRule("a:b");
  large.rules[0].filter.assign(60'000, 7);
  for (int i = 0; i < 6; ++i) large.rules.push_back(large.rules[0]);
  std::string before;
  uint64_t last = 0;
  bool wrapped = false;
  for (uint32_t i = 1; i < 40; ++i) {
    const std::string file = File();
    const auto in_force = At<uint64_t>(file, 64);
    ASSERT_TRUE(area->Publish({large}));
    if (in_force != 0) {
      EXPECT_EQ(File().substr(in_force, before.size()), before);
    }
    before = RulesInForce();
    EXPECT_EQ(At<uint32_t>(before, 16), i);
    const auto now = At<uint64_t>(File(), 64);
    wrapped |= now < last;
    last = now;
  }
  EXPECT_TRUE(wrapped);
}

TEST_F(ControlAreaTest, LimitsAreErrorsAndChangeNothing) {
  auto area = ControlArea::Create(path_, {});
  ASSERT_TRUE(area.has_value());
  ASSERT_TRUE(area->Publish({OneRule("a:b")}));
  const std::string before = File();
  std::vector<ChannelSpec> many(WEFT_MAX_CHANNELS + 1, OneRule("a:c"));
  EXPECT_EQ(area->Publish(many).error().code, ErrorCode::kLimit);
  ChannelSpec rules = OneRule("a:c");
  rules.rules.resize(WEFT_MAX_RULES + 1, rules.rules[0]);
  EXPECT_EQ(area->Publish({rules}).error().code, ErrorCode::kLimit);
  ChannelSpec bytes = OneRule("a:c");
  bytes.rules[0].filter.assign(60'000, 7);
  bytes.rules.resize(10, bytes.rules[0]);
  EXPECT_EQ(area->Publish({bytes}).error().code, ErrorCode::kLimit);
  EXPECT_EQ(area->Publish({OneRule(std::string("a\0b", 3))}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(File(), before);
}

TEST_F(ControlAreaTest, DamagedFileIsRefused) {
  {
    ASSERT_TRUE(ControlArea::Create(path_, {}).has_value());
  }
  for (const size_t at : {0, 4, 16, 24, 40, 48, 72}) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x55));
    file.close();
    auto area = ControlArea::Open(path_);
    ASSERT_FALSE(area.has_value()) << at;
    EXPECT_EQ(area.error().code, ErrorCode::kCorrupt);
    file.open(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }
}

}  // namespace
}  // namespace weft::control
