// SPDX-License-Identifier: Apache-2.0
// What the metadata writers say is what the parsers understand; what is wrong is told with its
// line.
#include <gtest/gtest.h>

#include <string>

#include "lib/ctf/metadata_writer.h"
#include "lib/ctf/record_builder.h"
#include "lib/ctf/test_trace.h"
#include "lib/ctf/text.h"
#include "lib/ctf/trace_class.h"
#include "lib/ctf/vpid_range.h"

namespace weft::ctf {
namespace {

bool SameRanges(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](Range x, Range y) { return x.begin == y.begin && x.end == y.end; });
}

// Elements of text are bytes, whatever their sign; references are compared by their last name.
// CTF 1.8 has no BLOBs, and PrintableName stands in metadata.
void ExpectSameType(Version version, const Type& a, const Type& b, const std::string& where) {
  SCOPED_TRACE(where);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(version == Version::k2 && a.blob, b.blob);
  EXPECT_EQ(b.blob ? a.media_type : "", b.media_type);
  EXPECT_EQ(a.text, b.text);
  if (a.kind == TypeKind::kInteger || a.kind == TypeKind::kEnum || a.kind == TypeKind::kFloat) {
    EXPECT_EQ(a.bits, b.bits);
    EXPECT_EQ(a.is_signed, b.is_signed);
    EXPECT_EQ(a.big_endian, b.big_endian);
    EXPECT_EQ(a.base, b.base);
  }
  EXPECT_EQ(a.length, b.length);
  EXPECT_TRUE(b.reference.ends_with(a.reference)) << a.reference << " " << b.reference;
  ASSERT_EQ(a.mappings.size(), b.mappings.size());
  for (size_t i = 0; i < a.mappings.size(); i++) {
    const std::string& label = a.mappings[i].label;
    EXPECT_EQ(version == Version::k2 ? ValidText(label) : label, b.mappings[i].label);
    EXPECT_TRUE(SameRanges(a.mappings[i].ranges, b.mappings[i].ranges));
  }
  ASSERT_EQ(a.members.size(), b.members.size());
  for (size_t i = 0; i < a.members.size(); i++) {
    EXPECT_EQ(a.members[i].name, b.members[i].name);
    EXPECT_TRUE(SameRanges(a.members[i].selectors, b.members[i].selectors));
    ExpectSameType(version, a.members[i].type, b.members[i].type, where + "." + a.members[i].name);
  }
  if (!a.text && !a.element.empty()) {
    ExpectSameType(version, a.element.front(), b.element.front(), where + "[]");
  }
}

class MetadataTest : public testing::TestWithParam<Version> {};

TEST_P(MetadataTest, TheRangeOfVpidsHasOnePlaceAndOneWidth) {
  // Texts that people choose must not look like it.
  TraceInfo info{.version = GetParam(),
                 .vpids = VpidRange{},
                 .env = MakeEnv({.hostname = VpidRangeText(GetParam(), {1, 2})})};
  std::string text = TraceMetadata(info);
  const size_t at = FindVpidRange(GetParam(), text);
  ASSERT_NE(at, std::string::npos);
  for (const VpidRange& range : {VpidRange{0, 0}, VpidRange{1, 4194304}, VpidRange{5, ~0U}}) {
    const std::string now = VpidRangeText(GetParam(), range);
    text.replace(at, now.size(), now);
    EXPECT_EQ(text.size(), TraceMetadata(info).size());
    EXPECT_EQ(ParseVpidRange(GetParam(), text.substr(at, now.size())), range);
    const auto trace = ParseMetadata(text);
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->env.at(0).name, "vpid_min");
    EXPECT_EQ(trace->env.at(0).value, (EnvEntry{"", int64_t{range.min}}.value));
    EXPECT_EQ(trace->env.at(1).value, (EnvEntry{"", int64_t{range.max}}.value));
    EXPECT_EQ(trace->EnvText("hostname") == nullptr ? "" : *trace->EnvText("hostname"),
              VpidRangeText(GetParam(), {1, 2}));
  }
  EXPECT_FALSE(ParseVpidRange(GetParam(), ""));
  EXPECT_FALSE(ParseVpidRange(GetParam(), text.substr(at + 1, 60)));
  EXPECT_FALSE(ParseVpidRange(GetParam(), std::string(47, '1')));
}

TEST(VpidRange, GrowsWithEveryProcess) {
  VpidRange range;
  EXPECT_FALSE(range.Add(0));
  EXPECT_TRUE(range.Add(7));
  EXPECT_EQ(range, (VpidRange{7, 7}));
  EXPECT_FALSE(range.Add(7));
  EXPECT_TRUE(range.Add(9));
  EXPECT_TRUE(range.Add(1));
  EXPECT_FALSE(range.Add(8));
  EXPECT_EQ(range, (VpidRange{1, 9}));
}

TEST_P(MetadataTest, RandomClassesComeBackAsTheyWere) {
  for (uint64_t seed = 1; seed <= 60; seed++) {
    SCOPED_TRACE(seed);
    RandomRecords random(seed);
    TraceInfo info{.version = GetParam(),
                   .env = MakeEnv({.hostname = "h\"\\\n\x01" + random.Text(5)})};
    info.env.push_back({"low", std::numeric_limits<int64_t>::min()});
    info.clock.offset_seconds = -5;
    info.clock.offset_ns = 7;
    const Channel channel = MakeChannel({.id = 3,
                                         .name = "c",
                                         .contexts = {{WEFT_CONTEXT_APP, "a:b"},
                                                      {WEFT_CONTEXT_PROCNAME, ""},
                                                      {WEFT_CONTEXT_CALLSTACK_KERNEL, ""},
                                                      {WEFT_CONTEXT_PERF_CPU, "cycles"},
                                                      {WEFT_CONTEXT_IP, ""}}})
                                .value();
    const EventClass event =
        MakeEventClass(70'000, channel, random.Event("name " + random.Text(9))).value();
    const auto trace = ParseMetadata(TraceMetadata(info) + ChannelMetadata(info, channel) +
                                     EventMetadata(info, event));
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    EXPECT_EQ(trace->version, GetParam());
    EXPECT_EQ(trace->uuid, info.uuid);
    EXPECT_EQ(trace->streams.at(3).clock->ToNs(1), -5'000'000'000 + 8);
    ASSERT_EQ(trace->env.size(), info.env.size());
    EXPECT_EQ(trace->env.back().value, info.env.back().value);
    EXPECT_EQ(trace->EnvText("tracer_name") == nullptr ? "" : *trace->EnvText("tracer_name"),
              "weft");
    const DataStreamClass& stream = trace->streams.at(3);
    ExpectSameType(GetParam(), channel.context, *stream.event_context, "context");
    const EventRecordClass& read = stream.events.at(70'000);
    EXPECT_EQ(read.name, event.name);
    EXPECT_EQ(read.uri, event.uri);
    EXPECT_EQ(read.loglevel, event.loglevel);
    ExpectSameType(GetParam(), event.payload, *read.payload, "payload");
  }
}

TEST_P(MetadataTest, EveryPrefixIsReadOrRefused) {
  TraceInfo info{.version = GetParam(), .env = MakeEnv({.hostname = "h"})};
  const Channel channel =
      MakeChannel({.name = "c", .contexts = {{WEFT_CONTEXT_APP, "a:b"}}}).value();
  const std::string text = TraceMetadata(info) + ChannelMetadata(info, channel);
  for (size_t size = 0; size < text.size(); size++) (void)ParseMetadata(text.substr(0, size));
  EXPECT_TRUE(ParseMetadata(text).has_value());
}

INSTANTIATE_TEST_SUITE_P(Ctf, MetadataTest, testing::Values(Version::k1_8, Version::k2),
                         [](const auto& info) {
                           return info.param == Version::k2 ? "v2" : "v1_8";
                         });

TEST(TsdlTest, ReadsMetadataOfOtherTracers) {
  const auto trace =
      ParseMetadata(ReadAll(WEFT_SOURCE_DIR "/lib/ctf/metadata_fuzz_corpus/foreign.tsdl"));
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(*trace->EnvText("quote"), "a\"b\\c\nAB");
  EXPECT_EQ(trace->streams.at(0).clock->ToNs(84), 1'795'257'000'000'001'000);
  const Type& fields = *trace->streams.at(0).events.at(7).payload;
  EXPECT_EQ(fields.members[0].type.mappings[2].ranges[0].begin, 5U);  // counts on from "flat"
  EXPECT_EQ(fields.members[1].type.align, 32U);
  EXPECT_EQ(fields.align, 32U);
  EXPECT_EQ(fields.members[4].type.length, 2U);
  EXPECT_EQ(fields.members[4].type.element[0].length, 3U);
}

TEST(TsdlTest, TellsTheLineOfAnError) {
  const auto line = [](std::string_view text) {
    const auto trace = ParseMetadata(text);
    if (!trace) return trace.error().message;
    return trace->problems.empty() ? std::string("none") : trace->problems.front();
  };
  EXPECT_EQ(line("trace { };\nunknown { };"), "metadata, line 2: unknown block 'unknown'");
  EXPECT_EQ(line("\n\nenv { a = \"x"), "metadata, line 3: a string does not end");
  EXPECT_EQ(line("/* \n"), "metadata, line 1: a comment does not end");
  EXPECT_EQ(line("typealias integer { size = 65; } := x;"),
            "metadata, line 1: integers have 1 to 64 bits");
  EXPECT_EQ(line("typealias nothing := x;"), "metadata, line 1: there is no type 'nothing'");
  EXPECT_EQ(line("event { stream_id = 0; name = \"e\"; };"),
            "metadata: event 'e' belongs to a stream that is not there");
  EXPECT_EQ(line("stream { packet.context := struct { string x[n]; }; };"),
            "metadata: 'n' is no integer that stands before its use: streams of class 0 are not "
            "shown");
  EXPECT_EQ(line("trace { major = 2; };"), "metadata is not of CTF 1");
  EXPECT_EQ(line("env { a = 99999999999999999999; };"),
            "metadata, line 1: a number is out of range");
}

TEST(TsdlTest, HostileNestingAndCopyingEndInAnError) {
  std::string deep = "typealias ";
  for (int i = 0; i < 100'000; i++) deep += "struct { ";
  EXPECT_FALSE(ParseMetadata(deep));
  // Each structure has two of the one before.
  std::string wide = "struct s0 { integer { size = 8; } a; };\n";
  for (int i = 1; i < 64; i++) {
    const std::string before = "struct s" + std::to_string(i - 1);
    wide += "struct s" + std::to_string(i);
    wide += " { " + before;
    wide += " a; " + before;
    wide += " b; };\n";
  }
  EXPECT_EQ(ParseMetadata(wide).error().code, ErrorCode::kLimit);
  std::string json = "\x1e{\"type\":\"preamble\",\"version\":2}\n\x1e";
  json += "{\"type\":\"trace-class\",\"packet-header-field-class\":";
  for (int i = 0; i < 100'000; i++) {
    json += "{\"type\":\"static-length-array\",\"length\":1,\"element-field-class\":";
  }
  EXPECT_FALSE(ParseMetadata(json));
  json += "1" + std::string(100'001, '}');
  EXPECT_FALSE(ParseMetadata(json));
}

TEST(TsdlTest, TakesMetadataOutOfItsPackets) {
  const TraceInfo info;
  const std::string text = TraceMetadata(info);
  std::string packets;
  for (size_t at = 0; at < text.size(); at += 100) {
    const std::string part = text.substr(at, 100);
    const uint32_t words[] = {
        0x75d11d57, 0, 0, 0, 0, 0, static_cast<uint32_t>(37 + part.size()) * 8, 140 * 8};
    packets.append(reinterpret_cast<const char*>(words), sizeof(words));
    packets += std::string("\0\0\0\1\x08", 5) + part;
    packets.resize((packets.size() + 139) / 140 * 140);
  }
  const auto trace = ParseMetadata(packets);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_TRUE(trace->packet_header.has_value());
  const auto cut = ParseMetadata(std::string_view(packets).substr(0, packets.size() - 1));
  ASSERT_FALSE(cut.has_value());  // no stream is in it, and it may be what is cut off
  EXPECT_NE(cut.error().message.find("cut off"), std::string::npos) << cut.error().message;
}

}  // namespace
}  // namespace weft::ctf
