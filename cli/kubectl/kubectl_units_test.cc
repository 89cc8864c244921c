// SPDX-License-Identifier: Apache-2.0
// What kubectl-weft makes of foreign answers and of flags, without a cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/kubectl/explain.h"
#include "cli/kubectl/follower.h"
#include "cli/kubectl/label_selector.h"
#include "cli/kubectl/live_feed.h"
#include "cli/kubectl/progress.h"
#include "cli/kubectl/relay_client.h"
#include "cli/kubectl/relay_path.h"
#include "cli/kubectl/relay_tail.h"
#include "lib/api/selector.h"
#include "lib/ctf/test_trace.h"
#include "lib/kube/testing_transport.h"

namespace weft::kubectl {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RelayPath, TakesNamesOfTracesOnly) {
  for (const char* good : {"metadata", "shop-7d9f/main/6f1c0b0e/ust/64-bit/user_0", "a.b/c"})
    EXPECT_TRUE(IsRelayPath(good)) << good;
  for (const std::string& bad :
       {std::string(), std::string("/etc/passwd"), std::string("../x"), std::string("a/../b"),
        std::string("a//b"), std::string("a/"), std::string(".bashrc"), std::string("a/.x"),
        std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3), std::string("a b"),
        std::string(300, 'a'), std::string("\x1b[31m")})
    EXPECT_FALSE(IsRelayPath(bad)) << bad;
}

TEST(Progress, FitsIntoATerminal) {
  Progress progress(std::uint64_t{900} << 20, true);
  progress.Add(std::uint64_t{450} << 20);
  EXPECT_EQ(progress.Line(1000, 80),
            "[===============               ]  50 %  450.0 MiB of 900.0 MiB, 450.0 MiB/s");
  EXPECT_EQ(progress.Line(1000, 60), " 50 %  450.0 MiB of 900.0 MiB, 450.0 MiB/s");
  EXPECT_EQ(progress.Line(1000, 20), " 50 %  450.0 MiB of");
}

TEST(OutputFolder, FollowsNoLinks) {
  const ctf::TempFolder outside;
  const ctf::TempFolder inside;
  std::filesystem::create_directory_symlink(outside.path(), inside.path() + "/link");
  std::filesystem::create_symlink(outside.path() + "/x", inside.path() + "/file");
  const auto folder = OutputFolder::Open(inside.path());
  ASSERT_TRUE(folder.has_value());
  EXPECT_EQ(folder->OpenFile("link/x").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(folder->OpenFile("file").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(folder->OpenFile("../x").error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(folder->OpenFile("a/b/c").has_value());
  EXPECT_TRUE(std::filesystem::is_regular_file(inside.path() + "/a/b/c"));
  EXPECT_TRUE(std::filesystem::is_empty(outside.path()));
}

TEST(RelayClient, RefusesForeignLists) {
  const auto files = ParseFiles(R"({"files":[{"path":"a/b","size":3}]})");
  ASSERT_TRUE(files.has_value());
  EXPECT_THAT(*files, ElementsAre(RelayFile{.path = "a/b", .size = 3}));
  for (const char* bad : {"", "{}", "[]", R"({"files":{}})", R"({"files":[1]})",
                          R"({"files":[{"path":"../a","size":3}]})",
                          R"({"files":[{"path":"a","size":-3}]})", R"({"files":[{"path":"a"}]})"})
    EXPECT_EQ(ParseFiles(bad).error().code, ErrorCode::kCorrupt) << bad;
}

TEST(LabelSelector, TakesKubectlsForms) {
  const auto query = [](const char* text) {
    const auto selector = ParseLabelSelector(text);
    return selector ? api::ToQuery(*selector) : selector.error().message;
  };
  EXPECT_EQ(query("app=shop,tier==web"), "app=shop,tier=web");
  EXPECT_EQ(query("app in (a, b),!old,new"), "app in (a,b),!old,new");
  EXPECT_EQ(query("app!=a"), "app notin (a)");
  EXPECT_THAT(query("app shop"), HasSubstr("selects no labels"));
  EXPECT_THAT(query("=x"), HasSubstr("selects no labels"));
}

TEST(Explain, NamesVerbAndResource) {
  const Error error{ErrorCode::kPermission, 0,
                    "GET /apis/weft.dev/v1alpha1/namespaces/shop/traces: traces.weft.dev is "
                    "forbidden: User \"jane\" cannot list resource \"traces\" in API group "
                    "\"weft.dev\" in the namespace \"shop\""};
  EXPECT_THAT(Explain(error),
              HasSubstr("jane may not list traces.weft.dev in the namespace shop;"));
  EXPECT_THAT(Explain(error), HasSubstr("with a Role that"));
  const std::string all = "User \"jane\" cannot list resource \"traces\" in API group \"weft.dev\"";
  EXPECT_THAT(Explain({ErrorCode::kPermission, 0, all + " at the cluster scope"}),
              HasSubstr("in the whole cluster; an administrator can grant it with a ClusterRole"));
  const std::string proxy =
      "User \"jane\" cannot get resource \"services/proxy\" in API group \"\"";
  EXPECT_THAT(Explain({ErrorCode::kPermission, 0, proxy + " in the namespace \"x\""}),
              HasSubstr("--weft-namespace"));
  EXPECT_THAT(Explain({ErrorCode::kPermission, 0, "GET /api: Unauthorized"}), HasSubstr("log in"));
  EXPECT_EQ(Explain({ErrorCode::kIo, 0, "as it is"}), "as it is");
}

// Two streams of one trace; the test decides when the follower gets which packets.
class FollowerTest : public ::testing::Test {
 protected:
  FollowerTest() {
    trace_.Begin();
    channel_ = &trace_.AddChannel({.name = "c"});
    AddEvent(0);
    for (std::uint32_t cpu = 0; cpu < 2; ++cpu) {
      streams_[cpu] = trace_.AddStream(*channel_, cpu);
      Give(cpu);
    }
  }

  void AddEvent(std::uint32_t id) {
    events_.push_back(&trace_.AddEvent(
        id, *channel_,
        {.name = "p:e" + std::to_string(id), .fields = {{.name = "n", .elem_size = 1}}}));
    follower_.SetMetadata("t", ctf::ReadAll(trace_.path() + "/metadata"));
  }

  // Writes a packet with an event at each of these times.
  void Write(std::uint32_t cpu, const std::vector<std::uint64_t>& times,
             std::uint64_t discarded = 0) {
    for (const std::uint64_t time : times) {
      ctf::RecordBuilder body;
      body.Fixed(std::uint8_t{1});
      EXPECT_EQ(trace_.writer(streams_[cpu])
                    .Append(ctf::TestTrace::kStart + time, *channel_, *events_.back(), body.body()),
                ctf::Appended::kOk);
    }
    trace_.Finish(streams_[cpu], discarded, 0);
  }

  // The follower gets what the stream's file has that it did not get before.
  void Give(std::uint32_t cpu) {
    const std::string all = ctf::ReadAll(trace_.file(streams_[cpu]));
    EXPECT_TRUE(follower_.Add("t", "c_" + std::to_string(cpu), all.substr(given_[cpu])));
    given_[cpu] = all.size();
  }

  void SetSafe(std::uint32_t cpu, std::uint64_t time) {
    follower_.SetSafe("t", "c_" + std::to_string(cpu), ctf::TestTrace::kStart + time);
  }

  // Times of the events that are due, from the trace's start on.
  std::vector<std::int64_t> Due(bool all = false) {
    std::vector<std::int64_t> out;
    while (ctf::StreamReader* stream = follower_.Next(all)) {
      if (stream->item().kind != ctf::ItemKind::kEvent) {
        discarded_ = stream->item().count;
        continue;
      }
      names_.push_back(stream->item().event->name);
      out.push_back(stream->item().time_ns - static_cast<std::int64_t>(ctf::TestTrace::kStart));
    }
    return out;
  }

  ctf::TestTrace trace_;
  const ctf::Channel* channel_ = nullptr;
  std::vector<const ctf::EventClass*> events_;
  std::size_t streams_[2] = {};
  std::size_t given_[2] = {};
  std::vector<std::string> names_;
  std::optional<std::uint64_t> discarded_;
  Follower follower_;
};

// Gives the viewers' feed the packets of a stream of a test's trace.
void Feed(LiveFeed& feed, const ctf::TestTrace& trace, std::size_t stream) {
  EXPECT_TRUE(
      feed.AddPackets("t", "c_" + std::to_string(stream), ctf::ReadAll(trace.file(stream))));
}

TEST(LiveFeed, BeginsAnotherTraceWhenAllStreamsHaveEnded) {
  ctf::TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  for (std::uint32_t cpu = 0; cpu < 3; ++cpu) {
    trace.Finish(trace.AddStream(channel, cpu), 0, 0);
  }
  auto spool = Spool::Make();
  ASSERT_TRUE(spool);
  LiveFeed feed(std::move(*spool), "host", "session");
  feed.SetMetadata("t", ctf::ReadAll(trace.path() + "/metadata"));
  Feed(feed, trace, 0);
  Feed(feed, trace, 1);
  feed.SetEnded("t", "c_0");
  feed.SetEnded("t", "c_1");
  Feed(feed, trace, 2);
  ASSERT_EQ(feed.trace().streams.size(), 3u);
  EXPECT_EQ(feed.trace().streams[1].trace, 0u);
  EXPECT_EQ(feed.trace().streams[2].trace, 1u);
  EXPECT_EQ(feed.trace().traces[1].metadata, feed.trace().traces[0].metadata);
}

TEST_F(FollowerTest, ShowsAnEventWhenNoStreamCanBringAnOlderOne) {
  Write(0, {10, 30});
  Give(0);
  EXPECT_THAT(Due(), ElementsAre()) << "it is not known how far the streams are safe";
  SetSafe(0, 40);
  SetSafe(1, 20);
  EXPECT_THAT(Due(), ElementsAre(10));
  Write(1, {20, 25, 40});
  Give(1);
  SetSafe(1, 35);
  EXPECT_THAT(Due(), ElementsAre(20, 25, 30, 40));
  Write(0, {50, 60});
  Give(0);
  EXPECT_THAT(Due(), ElementsAre()) << "the other stream is safe up to 35";
  SetSafe(1, 55);
  SetSafe(1, 5);
  EXPECT_THAT(Due(), ElementsAre(50)) << "promises hold";
  follower_.SetEnded("t", "c_1");
  EXPECT_THAT(Due(), ElementsAre(60));
  EXPECT_EQ(follower_.late(), 0u);
  EXPECT_EQ(follower_.waiting_bytes(), 0u);
}

TEST_F(FollowerTest, ShowsStreamsThatAreCaughtUpWithByTheirPackets) {
  Write(0, {10, 30});
  Write(1, {20, 40});
  Give(0);
  Give(1);
  EXPECT_THAT(Due(), ElementsAre(10, 20, 30)) << "c_0 may have some before 40";
  EXPECT_TRUE(follower_.IsIdle("t", "c_0"));
  EXPECT_FALSE(follower_.IsIdle("t", "c_1"));
  Write(0, {50});
  Give(0);
  EXPECT_THAT(Due(), ElementsAre(40));
}

TEST_F(FollowerTest, ShowsLateEventsOfNewStreamsAndCountsThem) {
  Write(0, {10, 30});
  Give(0);
  SetSafe(0, 50);
  follower_.SetEnded("t", "c_1");
  EXPECT_THAT(Due(), ElementsAre(10, 30));
  Write(1, {20, 40});
  Give(1);
  SetSafe(1, 50);
  EXPECT_THAT(Due(), ElementsAre(20, 40));
  EXPECT_EQ(follower_.late(), 1u);
}

TEST_F(FollowerTest, GoesOnWithNewPacketsAndNewEvents) {
  Write(0, {10});
  Give(0);
  EXPECT_THAT(Due(true), ElementsAre(10));
  AddEvent(1);
  Write(0, {20}, 7);
  Give(0);
  Write(0, {30}, 9);
  Give(0);
  EXPECT_THAT(Due(true), ElementsAre(20, 30));
  EXPECT_THAT(names_, ElementsAre("p:e0", "p:e1", "p:e1"));
  EXPECT_EQ(discarded_, 2u) << "counts go on from packet to packet";
  EXPECT_THAT(follower_.TakeProblems(), ElementsAre());
}

// Has room for nothing, and waits for one stream.
class FullSink : public TailSink {
 public:
  void SetMetadata(const std::string&, std::string_view) override {}
  Status AddPackets(const std::string&, const std::string& stream, std::string_view) override {
    got.push_back(stream);
    return {};
  }
  void SetSafe(const std::string&, const std::string&, std::uint64_t) override {}
  void SetEnded(const std::string&, const std::string&) override {}
  bool IsFull() override { return true; }
  bool WaitsFor(const std::string&, const std::string& stream) override { return stream == waits; }

  std::string waits;
  std::vector<std::string> got;
};

TEST(RelayTail, FetchesOnlyWhatAFullSinkWaitsFor) {
  ctf::TestTrace trace;
  trace.Begin();
  const ctf::Channel& channel = trace.AddChannel({.name = "c"});
  const std::size_t stream = trace.AddStream(channel, 0);
  trace.Finish(stream, 0, 0);
  const std::string packets = ctf::ReadAll(trace.file(stream));
  const auto answer = [&](const kube::HttpRequest& request) {
    if (request.method != "GET") return kube::testing::Reply(201, {{"metadata", {{"name", "v"}}}});
    kube::Json files = kube::Json::array();
    for (const char* path : {"t/a", "t/b"}) {
      files.push_back({{"path", path}, {"size", packets.size()}});
    }
    if (request.target.ends_with("/files")) return kube::testing::Reply(200, {{"files", files}});
    const auto size = static_cast<std::uint32_t>(packets.size());
    std::string part(4, '\0');
    for (std::size_t i = 0; i < part.size(); ++i) part[i] = static_cast<char>(size >> (8 * i));
    return kube::HttpReply{.status = 200, .body = part + packets};
  };
  const Connection connection{.client = std::make_unique<kube::Client>(
                                  std::make_unique<kube::testing::TestTransport>(answer), "test"),
                              .name_space = "shop",
                              .weft_namespace = "weft"};
  TraceView view(connection, "sales");
  FullSink sink;
  RelayTail tail(connection, view, "sales/u", sink);
  sink.waits = "b";
  EXPECT_EQ(tail.Fetch(true), true);
  EXPECT_THAT(sink.got, ElementsAre("b"));
  sink.waits = "a";
  EXPECT_EQ(tail.Fetch(true), false);
  EXPECT_THAT(sink.got, ElementsAre("b", "a"));
}

TEST_F(FollowerTest, GoesOnBehindBrokenPackets) {
  EXPECT_TRUE(follower_.Add("t", "c_0", "this is no packet"));
  EXPECT_THAT(Due(true), ElementsAre());
  EXPECT_FALSE(follower_.TakeProblems().empty());
  Write(0, {10});
  Give(0);
  EXPECT_THAT(Due(true), ElementsAre(10));
  EXPECT_TRUE(follower_.Add("unknown", "c_0", "x"));
  EXPECT_THAT(follower_.TakeProblems(), ElementsAre(HasSubstr("no readable metadata")));
}

}  // namespace
}  // namespace weft::kubectl
