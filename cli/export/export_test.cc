// SPDX-License-Identifier: Apache-2.0
// What timelines show: tracks, spans with missing edges, the scheduler's threads, counters.
#include "cli/export/export.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "cli/capture.h"
#include "cli/exit_status.h"
#include "cli/export/subject.h"
#include "cli/export/tracks.h"
#include "cli/open_trace.h"
#include "lib/ctf/test_trace.h"

namespace weft::cli {
namespace {

using ctf::RecordBuilder;
using ctf::TestTrace;
using nlohmann::json;

Captured Exported(const ExportOptions& options) {
  return Capture(
      [&options](std::FILE* out, std::FILE* err) { return RunExport(options, out, err); });
}

TEST(SpanOfTest, EdgesByWords) {
  using Row = std::tuple<const char*, SpanEdge, const char*>;
  for (const auto& [event, edge, name] : std::vector<Row>{
           {"syscall_entry_read", SpanEdge::kBegin, "syscall_read"},
           {"syscall_exit_read", SpanEdge::kEnd, "syscall_read"},
           {"lib:work_entry", SpanEdge::kBegin, "lib:work"},
           {"lib:work_return", SpanEdge::kEnd, "lib:work"},
           {"entry", SpanEdge::kBegin, ""},
           {"function:list::begin_exit", SpanEdge::kEnd, "function:list::begin"},
           {"function:list::end_call", SpanEdge::kNone, "function:list::end_call"},
           {"shop:begin", SpanEdge::kBegin, "shop"},
           {"shop:reentry", SpanEdge::kNone, "shop:reentry"},
           {"shop:order", SpanEdge::kNone, "shop:order"},
           {"", SpanEdge::kNone, ""},
       }) {
    const SpanName span = SpanOf(event);
    EXPECT_EQ(span.edge, edge) << event;
    EXPECT_EQ(span.name, name) << event;
  }
}

TEST(ChangeTest, MissingEdges) {
  Track track;
  const SpanName outer{SpanEdge::kBegin, "outer"};
  const SpanName inner{SpanEdge::kBegin, "inner"};
  const SpanName end_of_outer{SpanEdge::kEnd, "outer"};
  EXPECT_TRUE(Change(track, outer).begins);
  EXPECT_TRUE(Change(track, inner).begins);
  EXPECT_EQ(Change(track, end_of_outer).ends, 2u) << "the inner one's end is missing";
  EXPECT_TRUE(Change(track, end_of_outer).instant) << "its begin is missing";
  for (size_t i = 0; i < kMaxOpenSpans; i++) EXPECT_TRUE(Change(track, outer).begins);
  EXPECT_TRUE(Change(track, outer).instant);
}

// A span around an event with a number, and two switches of the CPU's thread.
class ExportTest : public testing::Test {
 protected:
  ExportTest() {
    trace.info.env = ctf::MakeEnv({.hostname = "host",
                                   .node = "n1",
                                   .kubernetes_namespace = "shop",
                                   .pod = "order-1",
                                   .container = "main"});
    trace.Begin();
    const ctf::Channel& channel = trace.AddChannel(
        {.name = "c", .contexts = {{WEFT_CONTEXT_VPID, ""}, {WEFT_CONTEXT_VTID, ""}}});
    const FieldDescription number{.name = "total", .elem_size = 4};
    const auto& entry = trace.AddEvent(0, channel, {.name = "lib:work_entry", .fields = {number}});
    const auto& order = trace.AddEvent(1, channel, {.name = "shop:order", .fields = {number}});
    const auto& exit = trace.AddEvent(2, channel, {.name = "lib:work_exit", .fields = {number}});
    const auto& change = trace.AddEvent(
        3, channel,
        {.name = "sched_switch",
         .fields = {{.name = "next_tid", .elem_size = 4},
                    {.name = "next_comm", .kind = FieldKind::kString, .elem_size = 1}}});
    const size_t stream = trace.AddStream(channel, 3);
    uint64_t time = TestTrace::kStart;
    uint32_t value = 5;
    for (const auto* event : {&entry, &order, &exit}) {
      RecordBuilder body;
      body.Context(int32_t{17}).Context(int32_t{18}).Fixed(value++);
      EXPECT_EQ(trace.writer(stream).Append(time++, channel, *event, body.body()),
                ctf::Appended::kOk);
    }
    for (const uint32_t tid : {18U, 0U}) {
      RecordBuilder body;
      body.Context(int32_t{17}).Context(int32_t{18}).Fixed(tid).String(tid == 0 ? "idle" : "shop");
      EXPECT_EQ(trace.writer(stream).Append(time++, channel, change, body.body()),
                ctf::Appended::kOk);
    }
    trace.Finish(stream, 0, time);
  }

  TestTrace trace;
};

TEST_F(ExportTest, ATimelineHasTracksSpansAndCounters) {
  const auto exported =
      Exported({.folder = trace.path(), .format = "chrome-json", .counters = {"shop:order.total"}});
  ASSERT_EQ(exported.status, kShownAll) << exported.err;
  const json events = json::parse(exported.out)["traceEvents"];
  std::vector<std::string> seen;
  for (const json& event : events) {
    const std::string phase = event["ph"];
    std::string line = phase + " " + (event.contains("name") ? std::string(event["name"]) : "");
    if (phase == "M") line += " " + std::string(event["args"]["name"]);
    if (phase == "C") line += " " + event["args"]["value"].dump();
    if (event.contains("args") && event["args"].contains("total")) {
      line += " " + event["args"]["total"].dump();
    }
    if (event.contains("ts")) line += " at " + event["ts"].dump();
    seen.push_back(line);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "M process_name shop/order-1/main",
                      "M process_name shop/order-1/main process 17",
                      "M thread_name thread 18",
                      "B lib:work 5 at 0.0",
                      "i shop:order 6 at 0.001",
                      "C shop:order.total 6 at 0.001",
                      "E  7 at 0.002",
                      "M thread_name CPU 3",
                      "i sched_switch at 0.003",
                      "B shop (18) at 0.003",
                      "i sched_switch at 0.004",
                      "E  at 0.004",
                  }));
}

TEST_F(ExportTest, LinesHaveTheSubjectAndTheFields) {
  const auto csv = Exported({.folder = trace.path(), .format = "csv"});
  ASSERT_EQ(csv.status, kShownAll) << csv.err;
  EXPECT_EQ(csv.out.substr(0, csv.out.find("\r\n1795257000000000001")),
            "time_ns,time,host,namespace,pod,container,program,pid,tid,cpu,event,fields\r\n"
            "1795257000000000000,2026-11-21T10:30:00.000000000Z,n1,shop,order-1,main,,17,18,3,"
            "lib:work_entry,\"{\"\"total\"\":5}\"");
  const auto lines = Exported({.folder = trace.path(), .format = "jsonl"});
  const json first = json::parse(lines.out.substr(0, lines.out.find('\n')));
  EXPECT_EQ(first["pod"], "order-1");
  EXPECT_EQ(first["payload"], json({{"total", 5}}));
}

TEST_F(ExportTest, WrongInputIsToldInOneLine) {
  EXPECT_EQ(Exported({.folder = "/nowhere", .format = "csv"}).status, kNoTrace);
  for (const char* counter : {"shop:order", ".total", "shop:order."}) {
    const auto wrong = Exported({.folder = trace.path(), .format = "csv", .counters = {counter}});
    EXPECT_EQ(wrong.status, kExitUsage) << counter;
    EXPECT_EQ(std::count(wrong.err.begin(), wrong.err.end(), '\n'), 1) << wrong.err;
  }
  const std::string path = trace.path() + "/metadata";
  const auto taken = Exported({.folder = trace.path(), .format = "csv", .output = path});
  EXPECT_EQ(taken.status, kExitOutput);
  EXPECT_NE(taken.err.find("remove it, or name another file"), std::string::npos) << taken.err;
  const auto full = Exported({.folder = trace.path(), .format = "csv", .output = "/nowhere/x"});
  EXPECT_EQ(full.status, kExitOutput);
}

}  // namespace
}  // namespace weft::cli
