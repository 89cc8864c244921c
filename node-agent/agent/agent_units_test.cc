// SPDX-License-Identifier: Apache-2.0
// The agent's parts that need no other process: choice of the clock, files beneath the output
// folder, names of counters, Traces to channels, sessions that come back from disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lib/abi/context.h"
#include "lib/api/filters.h"
#include "lib/api/parse.h"
#include "node-agent/agent/base/clock_choice.h"
#include "node-agent/agent/consumers/output_folder.h"
#include "node-agent/agent/discovery/late_ring.h"
#include "node-agent/agent/session/compile.h"
#include "node-agent/agent/session/perf_counters.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

class AgentUnits : public testing::Test {
 protected:
  AgentUnits() {
    char name[] = "/tmp/weft-agent-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  ~AgentUnits() override { fs::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ + "/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void Clocks(const std::string& current, const std::string& available) {
    const std::string base = "devices/system/clocksource/clocksource0/";
    Write(base + "current_clocksource", current + "\n");
    Write(base + "available_clocksource", available + "\n");
  }

  std::string folder_;
};

TEST_F(AgentUnits, TscOnlyWhereTheKernelTrustsIt) {
  EXPECT_EQ(ChooseClock(folder_), WEFT_CLOCK_MONOTONIC);
  Clocks("tsc", "tsc hpet acpi_pm ");
  EXPECT_EQ(ChooseClock(folder_), WEFT_CLOCK_TSC);
  Clocks("hpet", "hpet acpi_pm ");
  EXPECT_EQ(ChooseClock(folder_), WEFT_CLOCK_MONOTONIC);
  Clocks("kvm-clock", "kvm-clock tsc ");
  EXPECT_EQ(ChooseClock(folder_), WEFT_CLOCK_MONOTONIC);
}

TEST_F(AgentUnits, PossibleCpusAreCountedToTheHighest) {
  EXPECT_EQ(PossibleCpus(folder_), 1u);
  for (const auto& [list, count] : {std::pair<const char*, uint32_t>{"0\n", 1},
                                    {"0-3\n", 4},
                                    {"0-3,8-11\n", 12},
                                    {"0,2\n", 3}}) {
    Write("devices/system/cpu/possible", list);
    EXPECT_EQ(PossibleCpus(folder_), count) << list;
  }
}

TEST_F(AgentUnits, FilesAreMadeBeneathTheFolderOnly) {
  fs::create_directory(folder_ + "/out");
  fs::create_directory(folder_ + "/elsewhere");
  fs::create_directory_symlink(folder_ + "/elsewhere", folder_ + "/out/link");
  fs::create_symlink(folder_ + "/elsewhere/file", folder_ + "/out/file-link");
  mkfifo((folder_ + "/out/fifo").c_str(), 0600);
  auto out = OutputFolder::Open(folder_ + "/out");
  ASSERT_TRUE(out.has_value());
  auto file = out->OpenFile("ust/uid/0/64-bit/metadata");
  ASSERT_TRUE(file.has_value()) << file.error().message;
  ASSERT_EQ(write(file->get(), "abc", 3), 3);
  auto again = out->OpenFile("ust/uid/0/64-bit/metadata");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(lseek(again->get(), 0, SEEK_END), 3);  // not truncated
  for (const char* name : {"", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "./a", "link/x",
                           "file-link", "fifo", "ust", "a/", "a/b/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q"})
    EXPECT_FALSE(out->OpenFile(name).has_value()) << name;
  EXPECT_TRUE(fs::is_empty(folder_ + "/elsewhere"));
}

TEST_F(AgentUnits, PerfCountersByTheirLttngNames) {
  EXPECT_EQ(FindPerfCounter("instructions")->config, uint64_t{PERF_COUNT_HW_INSTRUCTIONS});
  EXPECT_EQ(FindPerfCounter("LLC-store-misses")->config, 2u | 1u << 8 | 1u << 16);
  const auto raw = FindPerfCounter("raw:r1a8:name");
  ASSERT_TRUE(raw.has_value());
  EXPECT_EQ(raw->type, uint32_t{PERF_TYPE_RAW});
  EXPECT_EQ(raw->config, 0x1a8u);
  for (const char* name : {"", "nothing", "raw:r", "raw:rxyz:a", "raw:r1", "LLC-nothing"})
    EXPECT_FALSE(FindPerfCounter(name).has_value()) << name;
}

constexpr const char* kTraces = R"(
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: one}
spec:
  filter: "b == 1"
  user:
    events:
      - {name: "p:*", exclude: ["p:x"], filter: "a == 2 || a == 3"}
  context: [vpid, "perf:thread:cycles", "$app.prov:name"]
  trackers: {vpid: [7]}
  buffer: {size: 64Ki, count: 8, mode: overwrite}
---
apiVersion: weft.dev/v1alpha1
kind: Trace
metadata: {name: two}
spec:
  paused: true
  user: {events: [{name: "q:r"}]}
  kernel: {tracepoints: [{name: "sched_*"}]}
)";

ipc::CreateSession Command() {
  ipc::CreateSession command;
  command.file = "t.yaml";
  command.output = "/out";
  command.ctf_version = "1.8";
  command.programs = "prog";
  command.uid = 1000;
  return command;
}

TEST_F(AgentUnits, TraceBecomesChannelAndRules) {
  auto session = Session::Create(Command(), kTraces);
  ASSERT_TRUE(session.has_value()) << session.error().message;
  ASSERT_EQ(session->channels.size(), 2u);
  const SessionChannel& one = session->channels[0];
  EXPECT_EQ(one.definition.trace_path, "one/ust/uid/1000/64-bit");
  EXPECT_EQ(one.spec.mode, WEFT_RING_OVERWRITE);
  EXPECT_EQ(one.spec.subbuf_shift, 16u);
  EXPECT_EQ(one.spec.subbufs_shift, 3u);
  EXPECT_EQ(one.spec.vpids, std::vector<uint32_t>{7});
  ASSERT_EQ(one.spec.contexts.size(), 3u);
  EXPECT_EQ(one.spec.contexts[1].id, WEFT_CONTEXT_PERF_THREAD);
  EXPECT_EQ(one.definition.contexts[2].name, "prov:name");
  ASSERT_EQ(one.spec.rules.size(), 1u);
  EXPECT_EQ(one.spec.rules[0].exclusions, std::vector<std::string>{"p:x"});
  EXPECT_FALSE(one.spec.rules[0].filter.empty());
  EXPECT_NE(one.definition.trace_uuid, session->channels[1].definition.trace_uuid);
  ASSERT_EQ(session->notices.size(), 1u);
  EXPECT_NE(session->notices[0].find("kernel module"), std::string::npos);
  EXPECT_EQ(session->phase(), ipc::Phase::kCreated);
}

// Compiles one Trace with this spec, in YAML's flow form.
control::ChannelSpec Compiled(const std::string& spec,
                              std::vector<std::string>* notices = nullptr) {
  auto session = Session::Create(
      Command(), "apiVersion: weft.dev/v1alpha1\nkind: Trace\nmetadata: {name: t}\nspec: " + spec);
  EXPECT_TRUE(session.has_value()) << session.error().message;
  if (notices != nullptr) *notices = session->notices;
  return session->channels.at(0).spec;
}

TEST_F(AgentUnits, RecordsAStatedumpForARuleOrTheContextIp) {
  for (const char* pattern : {"*", "lttng_ust_statedump:*", "*:bin_info", "lttng_ust_*"}) {
    const auto spec = Compiled("{user: {events: [{name: \"" + std::string(pattern) + "\"}]}}");
    EXPECT_EQ(spec.flags, uint32_t{WEFT_CHANNEL_STATEDUMP}) << pattern;
    EXPECT_EQ(spec.rules.size(), 1u);
  }
  EXPECT_EQ(Compiled("{user: {events: [{name: \"p:*\"}]}, context: [vpid]}").flags, 0u);
  // The Trace's filter is about other events.
  const auto spec =
      Compiled("{user: {events: [{name: \"p:*\"}]}, filter: \"a == 1\", context: [ip]}");
  EXPECT_EQ(spec.flags, uint32_t{WEFT_CHANNEL_STATEDUMP});
  ASSERT_EQ(spec.rules.size(), 2u);
  EXPECT_EQ(spec.rules[1].pattern, "lttng_ust_statedump:*");
  EXPECT_TRUE(spec.rules[1].filter.empty());
}

TEST_F(AgentUnits, ReportsACounterThatCannotBeRead) {
  std::vector<std::string> notices;
  Compiled(
      "{user: {events: [{name: \"p:*\"}]}, context: [\"perf:thread:task-clock\", "
      "\"perf:thread:page-fault\", \"perf:thread:instructions\"]}",
      &notices);
  EXPECT_TRUE(notices.empty());
  Compiled("{user: {events: [{name: \"p:*\"}]}, context: [\"perf:thread:cpu-migrations\"]}",
           &notices);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("perf:thread:cpu-migrations"), std::string::npos);
}

TEST_F(AgentUnits, PublishesOnlyChannelsThatAreOnAndNotPaused) {
  auto session = Session::Create(Command(), kTraces);
  ASSERT_TRUE(session.has_value());
  EXPECT_TRUE(session->Published("").empty());
  for (SessionChannel& channel : session->channels) channel.phase = ChannelPhase::kOn;
  EXPECT_EQ(session->phase(), ipc::Phase::kStarting);
  ASSERT_EQ(session->Published("").size(), 1u);
  EXPECT_EQ(session->Published("")[0].id, session->channels[0].definition.id);
  for (SessionChannel& channel : session->channels) channel.ready = true;
  EXPECT_EQ(session->phase(), ipc::Phase::kReady);
  session->channels[0].phase = ChannelPhase::kDrained;
  session->channels[1].phase = ChannelPhase::kStopping;
  EXPECT_EQ(session->phase(), ipc::Phase::kStopping);
}

TEST_F(AgentUnits, SessionComesBackFromDisk) {
  const std::string path = folder_ + "/session.json";
  EXPECT_EQ(Session::Load(path).error().code, ErrorCode::kNotFound);
  auto session = Session::Create(Command(), kTraces);
  ASSERT_TRUE(session.has_value());
  session->channels[0].phase = ChannelPhase::kStopping;
  session->channels[0].own.lost["agent/late_ring"] = 5;
  session->channels[0].own.recorded = 5;
  session->channels[0].own.missed_anywhere = 8;
  session->channels[0].accounted.insert(77);
  session->channels[0].reported.recorded = ~0ull;
  ASSERT_TRUE(session->Save(path));
  auto loaded = Session::Load(path);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(loaded->channels[0].phase, ChannelPhase::kStopping);
  EXPECT_EQ(loaded->channels[0].definition.trace_uuid, session->channels[0].definition.trace_uuid);
  EXPECT_EQ(loaded->channels[0].Counts().lost.at("agent/late_ring"), 5u);
  EXPECT_EQ(loaded->channels[0].Counts().missed_anywhere, 8u);
  EXPECT_TRUE(loaded->channels[0].accounted.contains(77));
  EXPECT_EQ(loaded->channels[1].definition.id, session->channels[1].definition.id);
  EXPECT_NE(loaded->channels[1].definition.id, loaded->channels[0].definition.id);

  std::ofstream(path) << "{\"version\": 1";
  EXPECT_EQ(Session::Load(path).error().code, ErrorCode::kCorrupt);
}

extern "C" [[gnu::noinline]] int WeftProbedFunction(int number) { return number + 1; }

TEST_F(AgentUnits, ProbesOfFunctionsAreFoundInAContainersFiles) {
  fs::create_directory(folder_ + "/bin");
  fs::copy("/proc/self/exe", folder_ + "/bin/program");
  EXPECT_EQ(WeftProbedFunction(1), 2);
  api::TraceSpec spec;
  const auto rule = [&](const char* name, const char* object, const char* function) {
    spec.kernel.user_probes.push_back({.name = name, .object = object, .function = function});
    return &spec.kernel.user_probes.back();
  };
  rule("both", "/bin/program", "WeftProbedFunction")->at = api::ProbePoint::kBoth;
  rule("function", "/bin/program", "weft_no_such");
  rule("file", "/bin/none", "main");
  rule("filter", "/bin/program", "WeftProbedFunction")->filter = "none == 1";
  const auto found = CompileUserProbes(spec, folder_);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(found[0].has_file);
  EXPECT_EQ(found[0].notices, std::vector<std::string>{});
  ASSERT_EQ(found[0].events.size(), 2u);
  for (const kernel::Event& event : found[0].events) EXPECT_EQ(event.twin, 1u);
  EXPECT_EQ(found[0].events[0].kind, uint32_t{WEFT_KERNEL_UPROBE});
  EXPECT_EQ(found[0].events[1].kind, uint32_t{WEFT_KERNEL_URETPROBE});
  const auto expect_none = [&](size_t i, bool has_file, const std::string& why) {
    EXPECT_EQ(found[i].has_file, has_file);
    EXPECT_TRUE(found[i].events.empty());
    EXPECT_EQ(found[i].notices, std::vector<std::string>{why});
  };
  expect_none(1, true, "probe \"function\": /bin/program: it has no function 'weft_no_such'");
  expect_none(2, false, "probe \"file\": /bin/none: No such file or directory");
  expect_none(3, true,
              "probe \"filter\": its filter: event \"filter\": has no field \"none\"; valid here: "
              "ip, arg0, arg1, arg2, arg3, arg4, arg5");
}

// A notice makes a node RecordingInPart; what the kernel lacks cannot be told without one.
TEST_F(AgentUnits, ExamplesAskTheKernelForNothingThatANamespaceDoesNotGet) {
  int traces = 0;
  for (const auto& file :
       fs::directory_iterator(std::string(WEFT_SOURCE_DIR) + "/deploy/examples/traces")) {
    const auto parsed = api::LoadTraces(file.path(), api::CheckingFilters());
    ASSERT_TRUE(parsed.has_value()) << api::ToString(parsed.error());
    for (const api::Trace& trace : *parsed) {
      if (!trace.spec.RecordsKernel()) continue;
      const auto compiled = CompileKernelLayout(trace, {.of_tenant = true});
      ASSERT_TRUE(compiled.has_value()) << compiled.error().message;
      EXPECT_EQ(compiled->notices, std::vector<std::string>{}) << file.path();
      ++traces;
    }
  }
  EXPECT_GE(traces, 2);
}

TEST_F(AgentUnits, WrongTracesAreRefusedWithTheirPlace) {
  auto unknown = Session::Create(Command(), "apiVersion: weft.dev/v1alpha1\nkind: Trac\n");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalid);
  EXPECT_NE(unknown.error().message.find("t.yaml:2:"), std::string::npos)
      << unknown.error().message;
}

TEST_F(AgentUnits, RefusesMemoryThatIsNoRingSet) {
  EXPECT_FALSE(IdentifyRing(UniqueFd(open("/dev/null", O_RDWR))).has_value());
  UniqueFd memfd(memfd_create("weft-ring", MFD_ALLOW_SEALING));
  EXPECT_FALSE(IdentifyRing(memfd).has_value());
  TokenBucket waits{0, 1};
  EXPECT_FALSE(CloseAndCount(std::move(memfd), waits).has_value());
}

}  // namespace
}  // namespace weft::agent
