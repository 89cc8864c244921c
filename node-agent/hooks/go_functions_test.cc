// SPDX-License-Identifier: Apache-2.0
#include "node-agent/hooks/go_functions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "lib/abi/hooks.h"

namespace weft::hooks {
namespace {

using Code = std::vector<uint8_t>;

constexpr uint64_t kAddress = 0x4abc20;
// The first instructions of functions that Go 1.26 compiled, and 256 bytes in all.
const Code kSmall{0x49, 0x3b, 0x66, 0x10, 0x76, 0x36, 0x55};
const Code kMedium{0x4c, 0x8d, 0x64, 0x24, 0xd8, 0x4d, 0x3b, 0x66, 0x10, 0x76, 0x40, 0x55};
const Code kLarge{0x4c, 0x8d, 0xa4, 0x24, 0x70, 0xfe, 0xff, 0xff, 0x4d, 0x3b,
                  0x66, 0x10, 0x0f, 0x86, 0xb4, 0x00, 0x00, 0x00, 0x55};

Code Whole(Code code) {
  code.resize(256, 0x90);
  return code;
}

TEST(GoStackCheck, IsFoundInEachForm) {
  const auto small = FindGoStackCheck(kAddress, Whole(kSmall));
  ASSERT_TRUE(small) << small.error().message;
  EXPECT_EQ(small->bytes, 6u);
  EXPECT_EQ(small->grows, 0x4abc5cu);
  const auto medium = FindGoStackCheck(kAddress, Whole(kMedium));
  ASSERT_TRUE(medium);
  EXPECT_EQ(medium->bytes, 11u);
  const auto large = FindGoStackCheck(kAddress, Whole(kLarge));
  ASSERT_TRUE(large);
  EXPECT_EQ(large->bytes, 18u);
  EXPECT_EQ(large->grows, kAddress + 18 + 0xb4);
}

TEST(GoStackCheck, IsRefusedIfAnythingDiffers) {
  for (const Code& form : {kSmall, kMedium, kLarge}) {
    const auto check = FindGoStackCheck(kAddress, Whole(form));
    ASSERT_TRUE(check);
    for (size_t size = 0; size < form.size() - 1; ++size)
      EXPECT_FALSE(FindGoStackCheck(kAddress, Bytes(form).first(size))) << size;
    Code other = Whole(form);
    other[0] ^= 1;
    EXPECT_FALSE(FindGoStackCheck(kAddress, other));
    other = Whole(form);
    other[check->compare_bytes] ^= 1;
    EXPECT_FALSE(FindGoStackCheck(kAddress, other));
  }
  Code back = Whole(kSmall);
  back[5] = 0x80;
  EXPECT_FALSE(FindGoStackCheck(kAddress, back)) << "the branch leaves the function";
}

TEST(GoThunk, ChecksTheStackBeforeTheHook) {
  constexpr uint64_t kThunk = 0x100000, kHook = 0x200000, kEnter = 0x7f0000001000;
  const Code code = Whole(kSmall);
  const auto check = FindGoStackCheck(kAddress, code);
  ASSERT_TRUE(check);
  const auto thunk = MakeGoThunk(kThunk, kHook, kEnter, kAddress, *check, code);
  ASSERT_TRUE(thunk);
  EXPECT_LE(thunk->bytes.size(), WEFT_HOOK_THUNK_BYTES);
  EXPECT_TRUE(std::equal(code.begin(), code.begin() + 4, thunk->bytes.begin()));
  int32_t distance = 0;
  std::memcpy(&distance, thunk->bytes.data() + 6, sizeof(distance));
  EXPECT_EQ(kThunk + 10 + static_cast<uint64_t>(int64_t{distance}), check->grows);
  ASSERT_EQ(thunk->bytes.size(), thunk->resume + WEFT_HOOK_JUMP_BYTES);
  EXPECT_EQ(thunk->bytes[thunk->resume], 0xe9);
  std::memcpy(&distance, thunk->bytes.data() + thunk->resume + 1, sizeof(distance));
  EXPECT_EQ(kThunk + thunk->bytes.size() + static_cast<uint64_t>(int64_t{distance}),
            kAddress + check->bytes);
  EXPECT_FALSE(MakeGoThunk(kThunk + (uint64_t{1} << 33), kHook, kEnter, kAddress, *check, code));
}

TEST(GoRuntime, IsToldByTheName) {
  EXPECT_TRUE(IsOfGoRuntime("runtime.mallocgc"));
  EXPECT_TRUE(IsOfGoRuntime("internal/runtime/maps.NewMap"));
  EXPECT_FALSE(IsOfGoRuntime("main.runtime"));
}

}  // namespace
}  // namespace weft::hooks
