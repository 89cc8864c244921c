// SPDX-License-Identifier: Apache-2.0
// Messages have the text that earlier builds gave them: messages.golden has each one with its
// default values, and the tests below some with values.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "lib/ipc/connection.h"

namespace weft::ipc {
namespace {

std::string TextOf(Message message) {
  auto wire = Encode(std::move(message));
  return wire ? wire->text : wire.error().message;
}

template <size_t I = 0, typename Check>
void ForEachMessage(const Check& check) {
  if constexpr (I < std::variant_size_v<Message>) {
    std::variant_alternative_t<I, Message> message;
    check(Message(std::move(message)));
    ForEachMessage<I + 1>(check);
  }
}

TEST(Codec, MessagesHaveTheirGoldenText) {
  std::ifstream in(WEFT_SOURCE_DIR "/lib/ipc/messages.golden");
  std::map<std::string, std::string> golden;  // by type
  size_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    const size_t type = line.find("\"type\":\"") + 8;
    golden[line.substr(type, line.find('"', type) - type)] = line;
  }
  ASSERT_EQ(golden.size(), lines);
  size_t compared = 0;
  ForEachMessage([&](Message message) {
    const auto found = golden.find(std::string(MessageName(message)));
    if (found == golden.end()) return;  // younger than the file
    EXPECT_EQ(TextOf(std::move(message)), found->second);
    ++compared;
  });
  EXPECT_EQ(compared, lines) << "a message of the file is gone";
}

TEST(Codec, NestedValuesHaveTheirGoldenText) {
  EXPECT_EQ(TextOf(ChannelDefinition{.id = 1,
                                     .trace = "t",
                                     .trace_uid = "u",
                                     .channel = "user",
                                     .trace_path = "ust",
                                     .trace_uuid = {1, 2, 3},
                                     .ctf_version = "2",
                                     .mode = 1,
                                     .subbuf_shift = 12,
                                     .subbufs_shift = 2,
                                     .contexts = {{.id = 1, .name = ""}, {.id = 22, .name = "a:b"}},
                                     .relay = {"h", 4460, 4461}}),
            R"({"channel":"user","container":"","contexts":[{"id":1,"name":""},)"
            R"({"id":22,"name":"a:b"}],"created":"","ctf_version":"2","domain":"","hostname":"",)"
            R"("id":1,"kubernetes_namespace":"","mode":1,"node":"","pod":"","pod_uid":"",)"
            R"("programs":"","relay":{"control_port":4460,"data_port":4461,"host":"h"},)"
            R"("subbuf_shift":12,"subbufs_shift":2,"trace":"t","trace_path":"ust",)"
            R"("trace_uid":"u","trace_uuid":[1,2,3,0,0,0,0,0,0,0,0,0,0,0,0,0],)"
            R"("type":"ChannelDefinition"})");
  SessionState state{.phase = Phase::kReady, .output = "o", .notices = {"one"}};
  state.traces.push_back({.name = "a", .path = "p", .counts = {.recorded = 5}});
  state.traces[0].counts.discarded["full"] = 2;
  state.traces[0].counts.lost["agent/late_ring"] = 3;
  EXPECT_EQ(
      TextOf(std::move(state)),
      R"({"cgroup":"","hooked":0,"notices":["one"],"output":"o","phase":3,"processes":0,)"
      R"("programs":"","recoveries":0,"searched":0,)"
      R"("traces":[{"counts":{"bytes":0,"corrupt_rings":0,)"
      R"("delivered":0,"discarded":{"full":2},"in_flight":0,"late":0,"lost":{"agent/late_ring":3},)"
      R"("missed_anywhere":0,"overwritten":0,"packets":0,"recorded":5,"rings":0,"streams":0,)"
      R"("tail_unknown":0},"name":"a","path":"p"}],"type":"SessionState"})");
}

TEST(Codec, DescriptorsAreNumberedInTheOrderOfFields) {
  Arrived arrived{.key = "k", .pid = -1};
  arrived.fd = UniqueFd(::dup(0));
  arrived.pidfd = UniqueFd(::dup(0));
  EXPECT_EQ(TextOf(std::move(arrived)),
            R"({"doorbell":"","fd":0,"gid":0,"key":"k","message":"","pid":-1,"pidfd":1,)"
            R"("type":"Arrived","uid":0})");
}

}  // namespace
}  // namespace weft::ipc
