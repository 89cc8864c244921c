// SPDX-License-Identifier: Apache-2.0
// What a report counts: trees from ends of calls, pairs of events, calls without an end, limits.
#include "cli/report/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/capture.h"
#include "cli/open_trace.h"
#include "cli/report/call_reader.h"
#include "cli/report/report_formats.h"
#include "lib/ctf/test_trace.h"

namespace weft::cli {
namespace {

using ctf::RecordBuilder;
using ctf::TestTrace;
using nlohmann::json;

TEST(DurationsTest, PercentilesAreAtMostAClassTooHigh) {
  Durations durations;
  for (uint64_t ns = 1; ns <= 100'000; ns++) durations.Add(ns);
  EXPECT_EQ(durations.min(), 1u);
  EXPECT_EQ(durations.max(), 100'000u);
  for (const double share : {0.01, 0.5, 0.9, 0.99}) {
    const auto exact = share * 100'000;
    EXPECT_GE(static_cast<double>(durations.Percentile(share)), exact);
    EXPECT_LE(static_cast<double>(durations.Percentile(share)), exact * 33 / 32);
  }
  EXPECT_EQ(durations.Percentile(1), 100'000u);
  Durations extreme;
  for (const uint64_t ns : {uint64_t{0}, UINT64_MAX}) extreme.Add(ns);
  EXPECT_EQ(extreme.Percentile(0.5), 0u);
  EXPECT_EQ(extreme.Percentile(1), UINT64_MAX);
}

TEST(DurationTextTest, HasThreeDigits) {
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(1'234), "1.234 us");
  EXPECT_EQ(DurationText(1'002'999), "1.002 ms");
  EXPECT_EQ(DurationText(12'345'678'901), "12.345 s");
}

TEST(CallTreeTest, CallsContainThoseThatEndedInside) {
  CallTree tree;
  ThreadCalls thread;
  const uint32_t outer = tree.Function("outer"), inner = tree.Function("inner");
  tree.Add(thread, inner, 1, 10'000, 20'000);
  tree.Add(thread, inner, 1, 30'000, 50'000);
  tree.Add(thread, outer, 0, 0, 100'000);
  tree.Add(thread, outer, 0, 200'000, 210'000);
  tree.Finish(thread);
  tree.Finish();
  EXPECT_EQ(ReportFolded(tree), "outer 80000\nouter;inner 30000\n");
  EXPECT_EQ(tree.functions()[outer].total_ns, 110'000u);
  EXPECT_EQ(tree.functions()[outer].self_ns, 80'000u);
  EXPECT_EQ(tree.functions()[inner].durations.count(), 2u);
}

TEST(CallTreeTest, RecursionCountsOnceInATotal) {
  CallTree tree;
  ThreadCalls thread;
  const uint32_t f = tree.Function("f");
  tree.Add(thread, f, 2, 20, 30);
  tree.Add(thread, f, 1, 10, 40);
  tree.Add(thread, f, 0, 0, 100);
  tree.Finish(thread);
  tree.Finish();
  EXPECT_EQ(tree.functions()[f].total_ns, 100u);
  EXPECT_EQ(tree.functions()[f].self_ns, 100u);
  EXPECT_EQ(ReportFolded(tree), "f 70\nf;f 20\nf;f;f 10\n");
}

TEST(CallTreeTest, CallOfAnOuterCallThatNeverEndedIsNoChildOfTheNextOne) {
  CallTree tree;
  ThreadCalls thread;
  const uint32_t outer = tree.Function("outer"), inner = tree.Function("inner");
  tree.Add(thread, inner, 1, 10'000, 20'000);
  tree.Add(thread, outer, 0, 20'000'000, 20'010'000);
  tree.Add(thread, inner, 1, 21'000'000, 21'020'000);
  tree.Add(thread, outer, 0, 21'025'000, 21'035'000);  // shorter than the inner one
  tree.Add(thread, inner, 1, 22'000'000, 22'001'000);
  tree.Add(thread, outer, 0, 22'003'000, 22'005'000);  // was recorded late
  tree.Finish(thread);
  tree.Finish();
  EXPECT_EQ(ReportFolded(tree), "outer 21000\nouter;inner 1000\ninner 30000\n");
}

// As in a recursion of 3,000 calls, each of which takes 1 ms beside the next one.
TEST(CallTreeTest, CallsBeyondTheLastLevelCountOnce) {
  CallTree tree;
  ThreadCalls thread;
  const uint32_t f = tree.Function("f");
  constexpr uint32_t kCalls = 3'000;
  for (uint32_t depth = kCalls; depth-- > 0;) {
    const int64_t begin = int64_t{depth} * 1'000'000;
    tree.Add(thread, f, depth, begin, kCalls * int64_t{1'000'000});
  }
  tree.Finish(thread);
  tree.Finish();
  const FunctionCalls& calls = tree.functions()[f];
  EXPECT_EQ(calls.self_ns, kCalls * uint64_t{1'000'000});
  EXPECT_EQ(calls.total_ns, kCalls * uint64_t{1'000'000});
  EXPECT_EQ(tree.roots().size(), 1u);
  EXPECT_EQ(tree.left_out(), 0u);
}

TEST(CallTreeTest, HostileTreesStayWithinTheLimits) {
  CallTree tree;
  ThreadCalls thread;
  const uint32_t f = tree.Function("f"), g = tree.Function("g");
  tree.Add(thread, f, UINT32_MAX, INT64_MIN, INT64_MAX);
  for (uint32_t depth = 3 * kMaxReportDepth; depth-- > 0;)
    tree.Add(thread, depth % 2 == 0 ? f : g, depth, 5, 4);
  for (size_t i = 0; i < kMaxReportFunctions + 10; i++)
    tree.Add(thread, tree.Function("f" + std::to_string(i)), 1, 0, 1);
  EXPECT_LE(tree.functions().size(), kMaxReportFunctions + 1);
  // A leaf of its own in each of many places.
  for (uint32_t place = 0; place < 20; place++) {
    for (uint32_t leaf = 0; leaf < 40'000; leaf++) tree.Add(thread, leaf, 2, 0, 1);
    tree.Add(thread, place, 1, 0, 1);
  }
  tree.Finish(thread);
  tree.Finish();
  EXPECT_GT(tree.left_out(), 0u);
  EXPECT_FALSE(ReportText(tree).empty());
}

TEST(CallNameTest, MomentsAreSuffixes) {
  EXPECT_EQ(CallNameOf("function:f_entry").moment, CallMoment::kEntry);
  EXPECT_EQ(CallNameOf("function:a::f(int)_call").function, "a::f(int)");
  EXPECT_EQ(CallNameOf("function:on_entry_exit").function, "on_entry");
  for (const char* name : {"function:f", "shop:f_entry", "", "function:", "_entry"})
    EXPECT_EQ(CallNameOf(name).moment, CallMoment::kNone) << name;
}

// Calls of two threads: pairs with and without depth, calls, and what has no other half.
class ReportTest : public testing::Test {
 protected:
  ReportTest() {
    trace.Begin();
    channel = &trace.AddChannel(
        {.name = "c", .contexts = {{WEFT_CONTEXT_VPID, ""}, {WEFT_CONTEXT_VTID, ""}}});
    const FieldDescription depth{.name = "depth", .elem_size = 2};
    const FieldDescription duration{.name = "duration", .elem_size = 8};
    uint64_t id = 0;
    for (const char* name : {"f_entry", "f_exit", "g_entry", "g_exit"})
      events.push_back(&trace.AddEvent(
          id++, *channel, {.name = std::string("function:") + name, .fields = {depth}}));
    const std::vector<FieldDescription> fields = {duration, depth};
    call = &trace.AddEvent(id++, *channel, {.name = "function:h_call", .fields = fields});
    f_call = &trace.AddEvent(id, *channel, {.name = "function:f_call", .fields = fields});
    stream = trace.AddStream(*channel, 0);
  }

  void Emit(uint64_t time, int32_t tid, size_t event, uint16_t depth) {
    RecordBuilder body;
    body.Context(int32_t{17}).Context(tid).Fixed(depth);
    EXPECT_EQ(trace.writer(stream).Append(TestTrace::kStart + time, *channel, *events[event],
                                          body.body()),
              ctf::Appended::kOk);
  }
  void EmitCall(uint64_t time, int32_t tid, uint64_t duration, uint16_t depth,
                const ctf::EventClass* event = nullptr) {
    RecordBuilder body;
    body.Context(int32_t{17}).Context(tid).Fixed(duration).Fixed(depth);
    EXPECT_EQ(trace.writer(stream).Append(TestTrace::kStart + time, *channel,
                                          event == nullptr ? *call : *event, body.body()),
              ctf::Appended::kOk);
  }
  Captured Reported(const char* format) {
    return Capture([&](std::FILE* out, std::FILE* err) {
      return RunReport({.folder = trace.path(), .format = format}, out, err);
    });
  }

  enum : uint8_t { kF, kFExit, kG, kGExit };
  TestTrace trace;
  const ctf::Channel* channel = nullptr;
  std::vector<const ctf::EventClass*> events;
  const ctf::EventClass *call = nullptr, *f_call = nullptr;
  size_t stream = 0;
};

TEST_F(ReportTest, PairsAndCallsOfThreadsMakeOneTree) {
  Emit(100, 1, kF, 0);
  Emit(150, 2, kF, 0);
  Emit(200, 1, kG, 1);
  EmitCall(350, 1, 100, 2);
  Emit(400, 1, kGExit, 1);
  Emit(450, 2, kFExit, 0);
  Emit(600, 1, kFExit, 0);
  trace.Finish(stream, 0, TestTrace::kStart + 700);
  EXPECT_EQ(Reported("folded").out, "f 600\nf;g 100\nf;g;h 100\n");
  const auto reported = Reported("json");
  EXPECT_EQ(reported.status, kShownAll);
  EXPECT_EQ(reported.err, "");
  const json all = json::parse(reported.out);
  EXPECT_EQ(all["functions"][0], (json{{"name", "f"},
                                       {"calls", 2},
                                       {"unfinished", 0},
                                       {"total_ns", 800},
                                       {"self_ns", 600},
                                       {"min_ns", 300},
                                       {"median_ns", 303},
                                       {"p99_ns", 500},
                                       {"max_ns", 500}}));
  EXPECT_EQ(all["tree"][0]["inner"][0]["inner"][0]["name"], "h");
}

TEST_F(ReportTest, CallWithAllEventsCountsOnce) {
  Emit(100, 1, kF, 0);
  Emit(110, 2, kF, 0);
  Emit(200, 1, kFExit, 0);
  EmitCall(210, 1, 90, 0, f_call);
  Emit(300, 2, kFExit, 0);
  EmitCall(301, 2, 180, 0, f_call);
  Emit(400, 1, kFExit, 0);  // of an entry that is not recorded
  EmitCall(401, 1, 5, 0, f_call);
  EmitCall(501, 1, 5, 0, f_call);
  trace.Finish(stream, 0, TestTrace::kStart + 700);
  const auto reported = Reported("folded");
  EXPECT_EQ(reported.out, "f 300\n");
  EXPECT_EQ(reported.err, "");
}

TEST_F(ReportTest, CallsThatWereLeftHaveNoTime) {
  Emit(100, 1, kF, 0);
  Emit(200, 1, kG, 1);
  Emit(300, 1, kG, 1);  // the one before was left by an exception
  Emit(400, 1, kGExit, 1);
  Emit(500, 1, kFExit, 0);
  Emit(600, 1, kGExit, 0);
  Emit(700, 1, kF, 0);
  trace.Finish(stream, 0, TestTrace::kStart + 800);
  const auto reported = Reported("text");
  EXPECT_EQ(reported.status, kShownAll);
  EXPECT_EQ(reported.err,
            "weft report: 2 calls have an entry, but no exit: they count as calls, without a time\n"
            "weft report: 1 exits have no entry: they do not count\n");
  EXPECT_EQ(reported.out,
            "     calls       total        self         min      median         p99         max  "
            "function\n"
            "         2      400 ns      300 ns      400 ns      400 ns      400 ns      400 ns  "
            "f\n"
            "         2      100 ns      100 ns      100 ns      100 ns      100 ns      100 ns  "
            "g\n"
            "\n"
            "     calls       total        self  call tree\n"
            "         1      400 ns      300 ns  f\n"
            "         1      100 ns      100 ns    g\n");
}

TEST_F(ReportTest, ViewIndentsCallsByDepth) {
  Emit(100, 1, kF, 0);
  Emit(200, 1, kG, 2);
  Emit(300, 1, kG, 65535);
  trace.Finish(stream, 0, TestTrace::kStart + 700);
  const auto column = [](const std::string& shown, const char* name) {
    const size_t at = shown.find(name);
    return at - (shown.rfind('\n', at) + 1);
  };
  const std::string plain = View({.folder = trace.path()}).out;
  const std::string shown = View({.folder = trace.path(), .indent = true}).out;
  const size_t first = column(plain, "host");
  EXPECT_EQ(column(plain, "host function:g"), first);
  EXPECT_EQ(column(shown, "host function:f"), first);
  EXPECT_EQ(column(shown, "host function:g"), first + 4);
  EXPECT_NE(shown.find(std::string(80, ' ') + "host function:g"), std::string::npos);
  EXPECT_EQ(shown.find(std::string(82, ' ')), std::string::npos);
}

TEST_F(ReportTest, TraceWithoutCallsAndMissingTraceAreTold) {
  trace.Finish(stream, 0, TestTrace::kStart + 1);
  const auto empty = Reported("text");
  EXPECT_NE(empty.err.find("the trace has no calls of functions"), std::string::npos);
  EXPECT_EQ(empty.out, "") << "no table without rows";
  const auto none = Capture([](std::FILE* out, std::FILE* err) {
    return RunReport({.folder = "/nonexistent"}, out, err);
  });
  EXPECT_EQ(none.status, kNoTrace);
  EXPECT_NE(none.err, "");
}

}  // namespace
}  // namespace weft::cli
