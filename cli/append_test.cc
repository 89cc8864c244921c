// SPDX-License-Identifier: Apache-2.0
#include "cli/append.h"

#include <gtest/gtest.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace weft::cli {
namespace {

template <typename... Args>
std::string Printed(const char* format, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

// Numbers around the powers of ten and of two, and random ones of every size.
std::vector<uint64_t> Numbers() {
  std::vector<uint64_t> numbers = {0, std::numeric_limits<uint64_t>::max()};
  const auto add_around = [&](uint64_t number) {
    numbers.insert(numbers.end(), {number - 1, number, number + 1, -number});
  };
  for (const uint64_t power : kPowersOfTen) add_around(power);
  std::mt19937_64 random(1);
  for (uint32_t bits = 0; bits < 64; bits++) {
    add_around(uint64_t{1} << bits);
    for (int i = 0; i < 50; i++) numbers.push_back(random() >> bits);
  }
  return numbers;
}

TEST(AppendTest, DecimalsAreThoseOfPrintf) {
  for (const uint64_t number : Numbers()) {
    std::string text;
    AppendAll(text, Decimal(number), " ", Decimal(number, false), " ", Decimal(number, true));
    const auto as_signed = static_cast<int64_t>(number);
    EXPECT_EQ(text, Printed("%" PRIu64 " %" PRIu64 " %" PRId64, number, number, as_signed));
  }
}

TEST(AppendTest, NanosecondsHaveNineDigits) {
  for (const uint64_t number : Numbers()) {
    const uint64_t ns = number % 1'000'000'000;
    std::string text;
    AppendAll(text, Nanoseconds(ns));
    EXPECT_EQ(text, Printed("%09" PRIu64, ns));
  }
}

// Also from the shortest string, which has room within the object only, to long ones.
TEST(AppendTest, PiecesFollowEachOther) {
  std::string text;
  std::string expected;
  const std::string name = "a name";
  for (uint64_t i = 0; i < 1000; i++) {
    AppendAll(text, Separator(i == 0), name, " = ", Decimal(i), std::string_view(";"), "");
    expected += (i == 0 ? " " : ", ") + name + " = " + std::to_string(i) + ";";
    ASSERT_EQ(text, expected);
  }
}

}  // namespace
}  // namespace weft::cli
