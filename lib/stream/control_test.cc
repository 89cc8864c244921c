// SPDX-License-Identifier: Apache-2.0
// Control messages as bytes.
#include "lib/stream/control.h"

#include <gtest/gtest.h>

#include "lib/stream/limits.h"

namespace weft::stream {
namespace {

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(Control, GoldenBytes) {
  std::string wire;
  ASSERT_TRUE(Append(Stored{.handle = 7, .seq = 2}, wire));
  EXPECT_EQ(wire, std::string("\x24\0\0\0", 4) + R"({"handle":7,"seq":2,"type":"stored"})");
  wire.clear();
  ASSERT_TRUE(Append(
      Beacon{.time = 500, .traces = {{.trace = 3, .time = 0}}, .kept = {{.handle = 7, .next = 3}}},
      wire));
  EXPECT_EQ(wire, std::string("\x5b\0\0\0", 4) + R"({"kept":[{"handle":7,"next":3}],"time":500,)" +
                      R"("traces":[{"time":0,"trace":3}],"type":"beacon"})");
}

TEST(Control, EveryMessageComesBackAsItWas) {
  const std::vector<Message> all = {
      Offer{.versions = {1, 2}},
      Hello{
          .node = "n", .kubernetes_namespace = "ns", .trace = "t", .trace_uid = "u", .ticket = "x"},
      OpenTrace{.trace = 1,
                .pod = "p",
                .pod_uid = "pu",
                .container = "c",
                .uuid = "id",
                .path = "a/b",
                .metadata = 5},
      Metadata{.trace = 1, .offset = ~uint64_t{0}, .text = "\x1e{\"a\": \"\\\"\"}\n\n"},
      OpenStream{.trace = 1, .stream = 2, .channel = "user", .cpu = 3, .next = 4, .events = 5},
      Sent{.streams = {{.handle = 1, .last = 2}, {.handle = 4, .last = 5}}},
      Beacon{.time = 6,
             .traces = {{.trace = 1, .time = 5}, {.trace = 2, .time = 0}},
             .kept = {{.handle = 1, .next = 2}, {.handle = 4, .next = 5}}},
      Losses{.trace = 1, .discarded = {{"full", 3}}, .lost = {{"a/b", 4}}},
      PacketsLost{.handle = 1, .first = 2, .last = 3, .stage = "relay", .reason = "gone"},
      EndTrace{.trace = 1},
      Chosen{.version = 1},
      Welcome{.session = ~uint64_t{0}},
      TraceOpened{.trace = 1, .metadata = 5},
      MetadataStored{.trace = 1, .offset = 2, .bytes = 3},
      StreamOpened{.stream = 1, .handle = 2, .next = 3},
      Stored{.handle = 1, .seq = 2},
      Gap{.handle = 1, .first = 2, .last = 3},
      TraceEnded{.trace = 1, .packets = 2, .bytes = 3},
      Refusal{.reason = "no", .versions = {2, 3}}};
  ASSERT_EQ(all.size(), std::variant_size_v<Message>);
  std::string wire;
  for (const Message& message : all) ASSERT_TRUE(Append(message, wire));
  // Feeds pieces of every size.
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100}, wire.size()}) {
    MessageReader reader;
    std::string again;
    for (size_t at = 0; at < wire.size(); at += piece) {
      reader.Push(AsBytes(wire).subspan(at, std::min(piece, wire.size() - at)));
      for (auto message = reader.Next(); message && *message; message = reader.Next()) {
        ASSERT_TRUE(Append(**message, again));
      }
    }
    EXPECT_EQ(again, wire);
  }
}

TEST(Control, IgnoresUnknownMembers) {
  EXPECT_TRUE(Decode(R"({"type":"chosen","version":1,"colour":"red","deep":{"er":1}})"));
}

// A peer may fill a member that nothing reads: it costs what each of its items costs once.
TEST(Control, IgnoresALongListOfObjects) {
  std::string text = R"({"type":"chosen","version":1,"list":[{})";
  for (int i = 0; i < 1'000'000; ++i) text += ",{}";
  EXPECT_TRUE(Decode(text + "]}"));
}

TEST(Control, RefusesBytesThatAreNoMessage) {
  for (const char* text :
       {"", "[]", "7", "{}", R"({"type":7})", R"({"type":"nothing"})", R"({"type":"chosen"})",
        R"({"type":"chosen","version":-1})", R"({"type":"chosen","version":1.5})",
        R"({"type":"chosen","version":4294967296})", R"({"type":"chosen","version":"1"})",
        R"({"type":"refusal","reason":1})", R"({"type":"offer","versions":1})",
        R"({"type":"offer","versions":["1"]})", R"({"type":"beacon","streams":[1]})",
        R"({"type":"beacon","trace":1,"time":6,"kept":[]})",
        R"({"type":"losses","trace":1,"discarded":[],"lost":{}})",
        R"({"type":"chosen","version":1)", R"({"type":"chosen","version":1,"a":[[[[[[1]]]]]]})"}) {
    EXPECT_FALSE(Decode(text)) << text;
  }
  const uint32_t length = kMaxControlBytes + 1;
  MessageReader reader;
  reader.Push({reinterpret_cast<const uint8_t*>(&length), sizeof(length)});
  EXPECT_FALSE(reader.Next());
}

TEST(Control, TextThatIsNoUtf8IsNotSent) {
  std::string wire;
  EXPECT_FALSE(Append(Refusal{.reason = "\xff", .versions = {}}, wire));
  EXPECT_EQ(wire, "");
}

}  // namespace
}  // namespace weft::stream
