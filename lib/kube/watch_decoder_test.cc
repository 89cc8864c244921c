// SPDX-License-Identifier: Apache-2.0
// Lines of a watch, in whatever pieces they come.
#include "lib/kube/watch_decoder.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::kube {
namespace {

const std::string kLines = R"({"type":"ADDED","object":{"metadata":{"name":"a"}}})"
                           "\n"
                           R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}})"
                           "\r\n\n"
                           R"({"type":"ERROR","object":{"code":410}})"
                           "\n";

TEST(WatchDecoder, GivesTheSameEventsHoweverTheBytesAreCut) {
  for (std::size_t step = 1; step <= kLines.size(); ++step) {
    WatchDecoder decoder;
    std::vector<WatchType> types;
    for (std::size_t at = 0; at < kLines.size(); at += step) {
      const Status status = decoder.Feed(kLines.substr(at, step), [&](const WatchEvent& event) {
        types.push_back(event.type);
        return true;
      });
      ASSERT_TRUE(status.has_value()) << status.error().message;
    }
    EXPECT_EQ(types, (std::vector{WatchType::kAdded, WatchType::kBookmark, WatchType::kError}));
  }
}

TEST(WatchDecoder, StopsWhenItsReaderSaysSo) {
  WatchDecoder decoder;
  int events = 0;
  const Status status = decoder.Feed(kLines, [&](const WatchEvent&) { return ++events < 2; });
  EXPECT_EQ(events, 2);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kClosed);
}

TEST(WatchDecoder, RefusesLinesThatAreNotEvents) {
  for (const char* line : {"x", "[]", "{}", R"({"type":"ADDED"})", R"({"type":1,"object":{}})",
                           R"({"type":"NEWS","object":{}})", R"({"type":"ADDED","object":[]})"}) {
    const auto event = DecodeWatchLine(line);
    ASSERT_FALSE(event.has_value()) << line;
    EXPECT_EQ(event.error().code, ErrorCode::kCorrupt);
  }
}

TEST(WatchDecoder, ALineWithoutAnEndIsBounded) {
  WatchDecoder decoder;
  const std::string piece(1 << 20, 'x');
  Status status;
  for (int i = 0; i < 16 && status; ++i)
    status = decoder.Feed(piece, [](const WatchEvent&) { return true; });
  ASSERT_TRUE(status.has_value());
  status = decoder.Feed(piece, [](const WatchEvent&) { return true; });
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace weft::kube
