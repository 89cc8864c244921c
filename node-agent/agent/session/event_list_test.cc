// SPDX-License-Identifier: Apache-2.0
// Rules of the kernel against the running kernel's own description: what their filters ask for and
// what events lack is said by name.
#include "node-agent/agent/session/event_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/event/description.h"

namespace weft::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rules = std::vector<api::KernelRule>;

struct Compiled {
  std::string error;
  bool is_invalid = false;
  size_t events = 0;
  std::vector<std::string> notices;
};

Compiled CompileRules(const Rules& tracepoints, const std::string& filter = "") {
  api::TraceSpec spec;
  spec.kernel.tracepoints = tracepoints;
  spec.kernel.statedump = false;
  spec.filter = filter;
  CompiledChannel channel;
  const Status done = CompileKernelEvents(spec, {.cluster_wide = true}, channel);
  Compiled compiled{.events = channel.kernel_events.size(), .notices = channel.notices};
  if (done) return compiled;
  compiled.error = done.error().message;
  compiled.is_invalid = done.error().code == ErrorCode::kInvalid;
  return compiled;
}

api::KernelRule Rule(const std::string& name, const std::string& filter) {
  return {.name = name, .filter = filter};
}

TEST(EventList, AnUnknownFieldOfANamedEventIsRefusedByName) {
  const Compiled one = CompileRules({Rule("sched_switch", "prev_com == \"sh\"")});
  EXPECT_TRUE(one.is_invalid);
  EXPECT_EQ(one.error,
            "tracepoint \"sched_switch\": its filter: event \"sched_switch\": has no field "
            "\"prev_com\", did you mean \"prev_comm\"?");
  // The rule is also reported if other rules remain.
  const Compiled beside =
      CompileRules({Rule("sched_process_fork", ""), Rule("sched_switch", "x == 1")});
  EXPECT_THAT(beside.error, AllOf(HasSubstr("\"sched_switch\""), HasSubstr("no field \"x\""),
                                  HasSubstr("valid here: prev_comm")));
}

TEST(EventList, AFieldOfAnotherTypeIsRefusedByName) {
  const Compiled text = CompileRules({Rule("sched_switch", "prev_tid == \"sh\"")});
  EXPECT_THAT(text.error, AllOf(HasSubstr("\"sched_switch\""), HasSubstr("\"prev_tid\"")));
  const Compiled context = CompileRules({Rule("sched_switch", "$ctx.ip == 1")});
  EXPECT_THAT(context.error, HasSubstr("has no context \"ip\""));
}

TEST(EventList, EventsOfAPatternThatLackAFieldAreToldAndLeftOut) {
  const Compiled some = CompileRules({Rule("sched_*", "prev_tid == 1")});
  EXPECT_EQ(some.error, "");
  EXPECT_GE(some.events, 1u);
  EXPECT_THAT(some.notices, ::testing::Contains(AllOf(HasSubstr("more: has no field \"prev_tid\""),
                                                      HasSubstr("tracepoint \"sched_*\""))));
  const Compiled none = CompileRules({Rule("sched_*", "no_such == 1")});
  EXPECT_TRUE(none.is_invalid);
  EXPECT_THAT(none.error,
              AllOf(HasSubstr("tracepoint \"sched_*\""), HasSubstr("no field \"no_such\"")));
}

// A rule's filter does not concern the events of another rule.
TEST(EventList, AnEventOfTwoRulesIsRecordedWhereOneFits) {
  const Compiled both =
      CompileRules({Rule("sched_*", "prev_tid == 1"), Rule("sched_process_exit", "tid == 1")});
  EXPECT_EQ(both.error, "");
  const Compiled one = CompileRules({Rule("sched_*", "prev_tid == 1")});
  EXPECT_EQ(both.events, one.events + 1);
}

TEST(EventList, TheTracesFilterExcludesEventsWithoutItsFields) {
  const Compiled some =
      CompileRules({Rule("sched_switch", ""), Rule("sched_process_exit", "")}, "prev_tid == 1");
  EXPECT_EQ(some.events, 1u);
  EXPECT_THAT(some.notices,
              ElementsAre("event \"sched_process_exit\": has no field \"prev_tid\", which "
                          "spec.filter asks for: not recorded"));
  const Compiled none = CompileRules({Rule("sched_switch", "")}, "prev_ti == 1");
  EXPECT_TRUE(none.is_invalid);
  EXPECT_EQ(none.error,
            "spec.filter: event \"sched_switch\": has no field \"prev_ti\", did you mean "
            "\"prev_tid\"?");
}

kernel::Resolved Lacking(const std::string& name, std::vector<std::string> left_out,
                         std::vector<std::string> withheld) {
  EventDescription event{.name = name};
  event.ComputeLayout();
  return {.name = name,
          .target = name,
          .description = event.Encode().value(),
          .left_out = std::move(left_out),
          .withheld = std::move(withheld)};
}

api::TraceSpec Everything() {
  api::TraceSpec spec;
  spec.kernel.tracepoints = {{.name = "sched_switch"}};
  spec.kernel.syscalls = {{.name = "openat"}};
  spec.kernel.probes = {{.name = "opened", .symbol = "do_sys_openat2"}};
  spec.kernel.statedump = false;
  return spec;
}

// weft.ko would say EOPNOTSUPP.
TEST(EventList, ReportsWithTheReasonWhatTheKernelDoesNotAllow) {
  constexpr uint32_t kWithKcfi = WEFT_KERNEL_KPROBES | WEFT_KERNEL_UPROBES | WEFT_KERNEL_SCOPES;
  CompiledChannel channel;
  const KernelReach reach{.cluster_wide = true, .features = kWithKcfi};
  ASSERT_TRUE(CompileKernelEvents(Everything(), reach, channel));
  ASSERT_EQ(channel.kernel_events.size(), 1u);
  EXPECT_EQ(channel.kernel_events[0].kind, uint32_t{WEFT_KERNEL_KPROBE});
  ASSERT_EQ(channel.notices.size(), 2u);
  EXPECT_EQ(
      channel.notices[0],
      "spec.kernel.tracepoints: this kernel checks the type of indirect calls (kCFI), and would "
      "trap where a tracepoint calls weft.ko; what works: probes, userProbes, the statedump");
  EXPECT_THAT(channel.notices[1], AllOf(HasSubstr("spec.kernel.syscalls"), HasSubstr("kCFI")));

  CompiledChannel none;
  api::TraceSpec tracepoints = Everything();
  tracepoints.kernel.syscalls.clear();
  tracepoints.kernel.probes.clear();
  const Status refused = CompileKernelEvents(tracepoints, reach, none);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("kCFI"));
}

TEST(EventList, NamesAllRequestedEventsIfNoneIsLeft) {
  api::TraceSpec spec;
  spec.kernel.statedump = false;
  for (const char* symbol : {"weft_none", "weft_nothing", "weft_none"})
    spec.kernel.probes.push_back({.name = symbol, .symbol = symbol});
  CompiledChannel channel;
  const Status refused = CompileKernelEvents(spec, {.cluster_wide = true}, channel);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message,
            "this kernel has no function 'weft_none'; this kernel has no function 'weft_nothing'");
}

TEST(EventList, AFilterOfANamespaceAsksForNoNumbersOfTheNode) {
  api::TraceSpec spec = Everything();
  spec.kernel.syscalls.clear();
  spec.kernel.probes.clear();
  for (const bool of_rule : {true, false}) {
    (of_rule ? spec.kernel.tracepoints[0].filter : spec.filter) = "$ctx.ppid == 1";
    CompiledChannel channel;
    const Status refused = CompileKernelEvents(spec, {.of_tenant = true}, channel);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("\"ppid\""), HasSubstr("\"vppid\"")));
    EXPECT_TRUE(CompileKernelEvents(spec, {.of_tenant = false}, channel));
    spec.kernel.tracepoints[0].filter.clear();
  }
}

TEST(EventList, AFieldThatIsLeftOutIsToldOnce) {
  api::TraceSpec spec;
  CompiledChannel channel;
  EventList events(spec, channel, false);
  const EventList::Choice pattern = {events.Ask("tracepoint", "*", "").value()};
  const EventList::Choice named = {events.Ask("tracepoint", "named", "").value()};
  for (int i = 0; i < 5; ++i) {
    const std::string name = "e" + std::to_string(i);
    ASSERT_TRUE(events.Add(pattern, Lacking(name, {"f: not there"}, {"p: an address"})));
  }
  ASSERT_TRUE(events.Add(named, Lacking("named", {}, {"q: an address"})));
  ASSERT_TRUE(events.CheckRules());
  ASSERT_TRUE(events.CheckNotEmpty());
  EXPECT_THAT(channel.notices,
              ElementsAre("events \"e0\", \"e1\", \"e2\" and 2 more: without field f: not there",
                          "event \"named\": without field q: an address"));
  EXPECT_EQ(channel.kernel_events.size(), 6u);
}

TEST(EventList, ReportsAreBounded) {
  api::TraceSpec spec;
  CompiledChannel channel;
  EventList events(spec, channel, false);
  const EventList::Choice pattern = {events.Ask("tracepoint", "*", "").value()};
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(events.Add(pattern, Lacking("e", {"f" + std::to_string(i) + ": why"}, {})));
  ASSERT_TRUE(events.CheckRules());
  ASSERT_EQ(channel.notices.size(), 9u);
  EXPECT_EQ(channel.notices.back(), "92 more like these");
}

}  // namespace
}  // namespace weft::agent
