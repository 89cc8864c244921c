// SPDX-License-Identifier: Apache-2.0
// Result, UniqueFd and ByteReader do what their comments say.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <future>
#include <optional>

#include "lib/base/background.h"
#include "lib/base/bytes.h"
#include "lib/base/host_clock.h"
#include "lib/base/json_depth.h"
#include "lib/base/log_rate.h"
#include "lib/base/log_text.h"
#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Fail(ErrorCode::kInvalid, "odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  WEFT_ASSIGN(const int half, Half(n));
  WEFT_TRY(Half(half));
  return half / 2;
}

TEST(HostClock, OffsetOfATimeNamespaceIsThatOfItsLine) {
  EXPECT_EQ(ParseTimeNamespaceOffset("monotonic       86400         0\nboottime  5 6\n"),
            86'400'000'000'000);
  EXPECT_EQ(ParseTimeNamespaceOffset("boottime 5 6\nmonotonic      -1000 999999999\n"),
            -999'000'000'001);
  EXPECT_EQ(ParseTimeNamespaceOffset("monotonic           0         0\n"), 0);
  for (const char* text : {"", "monotonic", "monotonic 1", "monotonic x 1", "boottime 5 6\n"})
    EXPECT_FALSE(ParseTimeNamespaceOffset(text).has_value()) << text;
}

TEST(Result, TryReturnsTheErrorAndAssignTheValue) {
  EXPECT_EQ(*Quarter(8), 2);
  ASSERT_FALSE(Quarter(6).has_value());
  EXPECT_EQ(Quarter(6).error().message, "odd");
  EXPECT_EQ(Quarter(6).error().code, ErrorCode::kInvalid);
}

TEST(Result, ErrnoIsKept) {
  errno = ENOENT;
  Status s = FailErrno("open x");
  EXPECT_EQ(s.error().sys_errno, ENOENT);
  EXPECT_EQ(s.error().message, "open x: No such file or directory");
}

TEST(UniqueFd, ClosesOnce) {
  const int raw = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    UniqueFd a(raw);
    UniqueFd b(std::move(a));
    EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move): that is the behaviour proved
    EXPECT_EQ(b.get(), raw);
  }
  EXPECT_EQ(::fcntl(raw, F_GETFD), -1);
}

TEST(InBackground, GivesItsResultWhenDone) {
  std::promise<int> told;
  auto result = InBackground([number = told.get_future()]() mutable { return number.get() + 1; });
  EXPECT_FALSE(IsDone(result));
  told.set_value(41);
  EXPECT_EQ(result.get(), 42);
}

TEST(InBackground, GoesOnWithoutAWaiter) {
  std::promise<void> done;
  auto is_done = done.get_future();
  (void)InBackground([done = std::move(done)]() mutable { done.set_value(); });
  is_done.get();
}

TEST(OneLine, EscapesWhatATerminalObeys) {
  EXPECT_EQ(OneLine("pod \"a\": \x1b[2J\r\nb\x7f\xc2\x9b"),
            "pod \"a\": \\x1b[2J\\x0d\\x0ab\\x7f\\xc2\\x9b");
}

TEST(JsonDepth, CountsListsAndObjectsOutsideOfStrings) {
  EXPECT_FALSE(NestsDeeperThan(R"({"a":[{}],"b":[{}]})", 3));
  EXPECT_TRUE(NestsDeeperThan(R"({"a":[{}],"b":[{}]})", 2));
  EXPECT_FALSE(NestsDeeperThan(R"(["[[", "\"[[", "\\", []])", 2));
  EXPECT_TRUE(NestsDeeperThan(R"(["\\", [[]]])", 2));
  EXPECT_FALSE(NestsDeeperThan(R"(]}["[\)", 2));
}

TEST(LogRate, CountsTheLinesThatItLeavesOut) {
  LogRate rate(/*rate=*/1, /*burst=*/2, /*most=*/8);
  LogRate::Clock::time_point now{std::chrono::hours(1)};
  EXPECT_EQ(rate.Take("a", now), "");
  EXPECT_EQ(rate.Take("a", now), "");
  EXPECT_EQ(rate.Take("a", now), std::nullopt);
  EXPECT_EQ(rate.Take("a", now), std::nullopt);
  EXPECT_EQ(rate.Take("b", now), " (2 lines before this one left out)");
  now += std::chrono::seconds(1);
  EXPECT_EQ(rate.Take("a", now), "");
}

TEST(ByteReader, FailsStickyAtTheEnd) {
  const std::array<uint8_t, 5> bytes = {1, 0, 0, 0, 9};
  ByteReader r(bytes);
  EXPECT_EQ(r.Read<uint32_t>(), 1u);
  EXPECT_EQ(r.Read<uint16_t>(), 0u);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(r.Read<uint8_t>(), 0u);
}

TEST(ByteReader, CStringNeedsItsNul) {
  const std::array<uint8_t, 4> bytes = {'a', 'b', 0, 'c'};
  ByteReader r(bytes);
  EXPECT_EQ(r.ReadCString(), "ab");
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.ReadCString(), "");
  EXPECT_FALSE(r.ok());
}

}  // namespace
}  // namespace weft
