// SPDX-License-Identifier: Apache-2.0
// What the agent publishes is what a process reads: a decoder written from lib/abi/control.h alone
// finds every member again; generations, words and the arena obey the order of publication.
#include "lib/control/area.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "lib/control/testing.h"

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
    std::ostringstream text;  // as a whole: byte by byte is slow with sanitizers
    text << std::ifstream(path_, std::ios::binary).rdbuf();
    return std::move(text).str();
  }
  template <typename T>
  static T At(const std::string& bytes, size_t offset) {
    T value{};
    EXPECT_LE(offset + sizeof(T), bytes.size());
    std::memcpy(&value, bytes.data() + offset, sizeof(T));
    return value;
  }
  // Returns the rule set in force; checks its checksum.
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
  second.memory_budget = 835584;
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
  EXPECT_EQ(set.substr(channel + 48, 8), std::string("\x00\xc0\x0c\0\0\0\0\0", 8));

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

TEST(MemoryPool, HasAtMostAsManyUnitsAsAPageHoldsBytes) {
  EXPECT_EQ(weft_memory_unit_shift(835584), 12u);
  EXPECT_EQ(weft_memory_unit_shift(4096u << 12), 12u);
  EXPECT_EQ(weft_memory_unit_shift((4096u << 12) + 8192), 13u);
  EXPECT_EQ(weft_memory_unit_shift(uint64_t{1} << 40), 28u);
  EXPECT_EQ(weft_memory_units(835584, 208896), 51u);
  EXPECT_EQ(weft_memory_units(835584, 1), 1u);
  EXPECT_EQ(weft_memory_units(uint64_t{1} << 40, 1), 1u);
  EXPECT_EQ(weft_ring_set_bytes(640, 262144, 3, 16), 208896u);
  EXPECT_EQ(weft_ring_set_bytes(384, 0, 1, 13), 4096u) << "it only counts";
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

TEST_F(ControlAreaTest, ReusesTheArenaWithoutTouchingTheRulesInForce) {
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

// --- memory that a process made ------------------------------------------------------------------

class AdoptedAreaTest : public testing::Test {
 protected:
  template <typename T>
  static void Put(const UniqueFd& fd, uint64_t offset, const T& value) {
    EXPECT_EQ(pwrite(fd.get(), &value, sizeof(value), static_cast<off_t>(offset)),
              ssize_t{sizeof(value)});
  }
  template <typename T>
  static T Get(const UniqueFd& fd, uint64_t offset) {
    T value{};
    EXPECT_EQ(pread(fd.get(), &value, sizeof(value), static_cast<off_t>(offset)),
              ssize_t{sizeof(value)});
    return value;
  }
  // Opens the memory again, as the agent does. It is another open file, so that its lock is
  // another's.
  static UniqueFd Again(const UniqueFd& fd) {
    return UniqueFd(open(("/proc/self/fd/" + std::to_string(fd.get())).c_str(), O_RDWR));
  }
  static Result<ControlArea> Adopt(const UniqueFd& fd) {
    return ControlArea::Adopt(Again(fd), {.slot_count = 6, .clock = WEFT_CLOCK_TSC});
  }
  static uint64_t WordAt(const char* name) {
    return WEFT_CONTROL_WORDS_OFFSET + 4 * uint64_t{weft_name_hash(name)};
  }
};

TEST_F(AdoptedAreaTest, WritesSlotsAndClockBeforeItPublishes) {
  const UniqueFd memory = MakeProcessArea();
  Put(memory, 56, uint32_t{0x6fe6736a});  // the process's own claim of its clock is ignored
  auto area = Adopt(memory);
  ASSERT_TRUE(area.has_value()) << area.error().message;
  EXPECT_EQ(Get<uint32_t>(memory, 52), 6u);
  EXPECT_EQ(Get<uint32_t>(memory, 56), 1u);
  ASSERT_TRUE(area->Publish({OneRule("a:b")}));
  EXPECT_EQ(Get<uint32_t>(memory, WordAt("a:b")), 1u);
  const auto rules = Get<uint64_t>(memory, 64);
  EXPECT_EQ(Get<uint32_t>(memory, rules), 0x4c544357u);
  ASSERT_TRUE(area->Publish({}));
  EXPECT_EQ(Get<uint32_t>(memory, WordAt("a:b")), 0u);
}

TEST_F(AdoptedAreaTest, GoesOnWhereAnEarlierAgentWas) {
  const UniqueFd memory = MakeProcessArea();
  uint64_t first = 0;
  {
    auto area = Adopt(memory);
    ASSERT_TRUE(area && area->Publish({OneRule("a:b")}) && area->Publish({OneRule("a:c")}));
    first = Get<uint64_t>(memory, 64);
  }
  auto area = Adopt(memory);
  ASSERT_TRUE(area && area->Publish({OneRule("a:d")}));
  EXPECT_EQ(area->generation(), 3u);  // processes remember decisions by generation
  EXPECT_EQ(Get<uint32_t>(memory, WordAt("a:c")), 0u);
  EXPECT_EQ(Get<uint32_t>(memory, WordAt("a:d")), 3u);
  EXPECT_NE(Get<uint64_t>(memory, 64), first);
}

TEST_F(AdoptedAreaTest, FreesItsPagesWhenNoProcessMapsIt) {
  const UniqueFd memory = MakeProcessArea();
  const auto pages = [&] {
    struct stat now{};
    EXPECT_EQ(fstat(memory.get(), &now), 0);
    EXPECT_EQ(now.st_size, off_t{WEFT_CONTROL_TOTAL_BYTES});
    return now.st_blocks * 512 / 4096;
  };
  auto area = Adopt(memory);
  ASSERT_TRUE(area && area->Publish({OneRule("*")}));
  EXPECT_GE(pages(), 17);
  area->FreePages();
  EXPECT_EQ(pages(), 1);
  EXPECT_EQ(Get<uint32_t>(memory, WordAt("a:b")), 0u);
}

TEST_F(AdoptedAreaTest, HasOneAgentAtATime) {
  const UniqueFd memory = MakeProcessArea();
  {
    auto area = Adopt(memory);
    ASSERT_TRUE(area.has_value());
    EXPECT_EQ(Adopt(memory).error().code, ErrorCode::kLimit);
  }
  EXPECT_TRUE(Adopt(memory).has_value());
}

TEST_F(AdoptedAreaTest, RefusesOtherMemory) {
  EXPECT_EQ(Adopt(MakeProcessArea(WEFT_CONTROL_TOTAL_BYTES - 4096)).error().code,
            ErrorCode::kCorrupt);
  EXPECT_EQ(Adopt(MakeProcessArea(WEFT_CONTROL_TOTAL_BYTES + 1)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Adopt(MakeProcessArea(WEFT_CONTROL_TOTAL_BYTES, 0)).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Adopt(MakeProcessArea(WEFT_CONTROL_TOTAL_BYTES, F_SEAL_SHRINK)).error().code,
            ErrorCode::kCorrupt);
  const UniqueFd other = MakeProcessArea();
  Put(other, 4, uint16_t{2});  // major
  EXPECT_EQ(Adopt(other).error().code, ErrorCode::kUnsupported);
  const UniqueFd elsewhere = MakeProcessArea();
  Put(elsewhere, 24, uint64_t{8192});  // words_offset
  EXPECT_EQ(Adopt(elsewhere).error().code, ErrorCode::kUnsupported);
  UniqueFd file(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_EQ(ControlArea::Adopt(std::move(file), {}).error().code, ErrorCode::kCorrupt);
}

// Whatever rules the process claims, nothing is written outside the arena's bounds, and each
// published rule set is whole.
TEST_F(AdoptedAreaTest, HostileContentsHarmNoOtherProcess) {
  for (const uint64_t rules :
       {uint64_t{1}, uint64_t{WEFT_CONTROL_ARENA_OFFSET}, uint64_t{WEFT_CONTROL_TOTAL_BYTES - 40},
        UINT64_MAX, UINT64_MAX - 39})
    for (const uint32_t size : {0u, 1u, 41u, 0x7fffffffu, UINT32_MAX}) {
      const UniqueFd memory = MakeProcessArea();
      Put(memory, 64, rules);
      Put(memory, WEFT_CONTROL_ARENA_OFFSET + 4, size);
      Put(memory, WEFT_CONTROL_TOTAL_BYTES - 40 + 4, size);
      auto area = Adopt(memory);
      ASSERT_TRUE(area.has_value());
      ASSERT_TRUE(area->Publish({OneRule("a:b")}));
      const auto at = Get<uint64_t>(memory, 64);
      EXPECT_EQ(at % 8, 0u);
      EXPECT_GE(at, WEFT_CONTROL_ARENA_OFFSET);
      EXPECT_LE(at + Get<uint32_t>(memory, at + 4), WEFT_CONTROL_TOTAL_BYTES);
      EXPECT_EQ(Get<uint32_t>(memory, WordAt("a:b")), area->generation());
    }
  const UniqueFd last = MakeProcessArea();
  Put(last, WordAt("x:y"), UINT32_MAX);
  auto area = Adopt(last);
  ASSERT_TRUE(area.has_value());
  EXPECT_EQ(area->Publish({}).error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace weft::control
