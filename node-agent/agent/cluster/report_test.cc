// SPDX-License-Identifier: Apache-2.0
// What a node says of a session.
#include "node-agent/agent/cluster/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node-agent/agent/cluster/consumer_deaths.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

const kube::WallTime kNow{std::chrono::seconds(1'800'000'000)};
const kube::WallTime kLater = kNow + std::chrono::seconds(5);

class Report : public testing::Test {
 protected:
  Report() : session_(Make()) {}

  static Session Make() {
    api::TraceSession order;
    order.metadata = {.name = "t-1", .name_space = "shop", .uid = "u", .generation = 3};
    order.spec.trace_name = "t";
    order.spec.relay = {.name = "r", .control = "r:1", .data = "r:2"};
    order.spec.record.user.events = {{.name = "shop:*"}};
    return std::move(*Session::FromOrder(std::move(order)));
  }

  SessionChannel& AddChannel(const std::string& pod, const std::string& container) {
    return session_.AddChannel({pod + "/" + container, "shop", pod, pod, container});
  }
  void TurnOn() {
    for (SessionChannel& channel : session_.channels) {
      channel.phase = ChannelPhase::kOn;
      channel.ready = true;
    }
  }
  const api::Condition* Ready(const api::SessionStatus& status) {
    return api::FindCondition(status.conditions, api::kConditionReady);
  }
  // The first reason for which pods are not traced.
  std::string Skipped() {
    const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
    if (status.pods.skipped.empty()) return "";
    return status.pods.skipped[0].reason + ": " + status.pods.skipped[0].message;
  }

  Session session_;
  SelectedPods pods_;
  KernelState kernel_;
};

TEST_F(Report, ReadyWhenEveryContainerOfEveryPodIsReady) {
  pods_ = {.reachable = {{"a", true}, {"b", true}}, .names = {}};
  AddChannel("a", "main");
  AddChannel("a", "proxy");
  AddChannel("b", "main");
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.observed_generation, 3);
  EXPECT_EQ(status.phase, api::Phase::kPending);
  EXPECT_EQ(status.pods.matched, 2);
  EXPECT_EQ(status.pods.traced, 0);
  EXPECT_EQ(Ready(status)->reason, "WaitingForRelay");

  TurnOn();
  session_.channels[1].ready = false;
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.pods.traced, 1);
  EXPECT_EQ(Ready(status)->status, api::ConditionStatus::kFalse);

  TurnOn();
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.pods.traced, 2);
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_EQ(Ready(status)->status, api::ConditionStatus::kTrue);
}

TEST_F(Report, SaysWhetherTheRelayCanBeConnectedTo) {
  const auto relay = [&](const api::SessionStatus& status) {
    return api::FindCondition(status.conditions, api::kConditionRelayAvailable);
  };
  pods_ = {.reachable = {{"a", true}}, .names = {}};
  AddChannel("a", "main");
  EXPECT_EQ(relay(MakeStatus(session_, pods_, kernel_, kNow)), nullptr) << "nothing is known yet";
  session_.relay_failure = "relay.svc:4460: Connection refused";
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(Ready(status)->message, "relay.svc:4460: Connection refused");
  TurnOn();
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(Ready(status)->status, api::ConditionStatus::kTrue) << "it records all the same";
  ASSERT_NE(relay(status), nullptr);
  EXPECT_EQ(relay(status)->reason, "Unreachable");
  EXPECT_EQ(relay(status)->message, "relay.svc:4460: Connection refused");
  session_.relay_failure.clear();
  session_.relay_refusal = "relay.svc:4460: the Trace has used its 256Ki";
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(Ready(status)->status, api::ConditionStatus::kTrue) << "it records all the same";
  EXPECT_EQ(relay(status)->reason, "Refused");
  EXPECT_EQ(relay(status)->message, "relay.svc:4460: the Trace has used its 256Ki");
  session_.relay_refusal.clear();
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(relay(status)->status, api::ConditionStatus::kTrue);
}

TEST_F(Report, SaysWhichRulesAreNotOffered) {
  using Rules = std::vector<api::EventRuleState>;
  pods_ = {.reachable = {{"a", true}}, .names = {}};
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).event_rules, Rules()) << "not known yet";
  session_.rule_problems = {"no such tracepoint"};
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.event_rules, Rules({{"shop:*", "no such tracepoint"}}));

  session_.order->status = status;
  session_.rule_problems.clear();
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).event_rules, status.event_rules)
      << "an agent that begins keeps what the one before said";
  ++session_.order->metadata.generation;
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).event_rules, Rules());
}

TEST_F(Report, SaysWhatOfAttachIsNotDone) {
  const auto attached = [](const api::SessionStatus& status) {
    return api::FindCondition(status.conditions, api::kConditionProcessesAttached);
  };
  pods_ = {.reachable = {{"a", true}, {"b", true}}, .names = {{"b", "b-0"}}, .untouched = {"b"}};
  pods_.without_library["b"] = {"NotAttached", "why"};
  AddChannel("a", "main");
  TurnOn();
  session_.attach_pending = true;
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).phase, api::Phase::kPending);
  session_.attach_pending = false;
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_EQ(status.pods.traced, 1);
  EXPECT_EQ(status.pods.skipped.at(0).names, std::vector<std::string>{"b-0"});
  EXPECT_EQ(attached(status), nullptr);
  session_.attach_notices = {"b-0/main: it is privileged"};
  status = MakeStatus(session_, pods_, kernel_, kNow);
  ASSERT_NE(attached(status), nullptr);
  EXPECT_EQ(attached(status)->reason, "AttachedInPart");
  EXPECT_EQ(attached(status)->message, "b-0/main: it is privileged");
  pods_.attach_refusal = "agent.attach.enabled";
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(attached(status)->reason, "NotAllowed");
}

TEST_F(Report, StaysReadyWhilePodsComeAndGo) {
  pods_ = {.reachable = {{"a", true}}, .names = {}};
  AddChannel("a", "main");
  TurnOn();
  session_.order->status = MakeStatus(session_, pods_, kernel_, kNow);
  ASSERT_EQ(session_.order->status.phase, api::Phase::kRecording);

  pods_.reachable["b"] = true;
  AddChannel("b", "main");
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_EQ(status.pods.traced, 1) << "the other one waits for its consumer";

  session_.relay_failure = "relay.svc:4460: Connection refused";
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kPending);
  session_.relay_failure.clear();
  ++session_.order->metadata.generation;
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).phase, api::Phase::kPending)
      << "another spec";
}

TEST_F(Report, APodWithoutItsVolumeIsNamed) {
  pods_ = {.reachable = {{"a", false}}, .names = {{"a", "shop-0"}}};
  const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kPending);
  ASSERT_EQ(status.pods.skipped.size(), 1u);
  EXPECT_EQ(status.pods.skipped[0].reason, "VolumeNotReady");
  EXPECT_EQ(status.pods.skipped[0].names, std::vector<std::string>{"shop-0"});
}

TEST_F(Report, APodWhoseProcessesLackTheLibraryIsNotTraced) {
  pods_ = {.reachable = {{"a", true}, {"b", true}}, .names = {{"a", "shop-0"}, {"b", "shop-1"}}};
  AddChannel("a", "main");
  AddChannel("b", "main");
  TurnOn();
  pods_.without_library["b"] = {"LibraryNotLoaded", "no process has the library in it"};
  const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  // There is nothing to wait for.
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_EQ(Ready(status)->status, api::ConditionStatus::kTrue);
  EXPECT_EQ(status.pods.matched, 2);
  EXPECT_EQ(status.pods.traced, 1);
  ASSERT_EQ(status.pods.skipped.size(), 1u);
  EXPECT_EQ(status.pods.skipped[0].reason, "LibraryNotLoaded");
  EXPECT_EQ(status.pods.skipped[0].message, "no process has the library in it");
  EXPECT_EQ(status.pods.skipped[0].names, std::vector<std::string>{"shop-1"});
}

TEST_F(Report, NamesContainersWhoseImagesPreloadIsReplaced) {
  const auto kept = [&] {
    return api::FindCondition(MakeStatus(session_, pods_, kernel_, kNow).conditions,
                              api::kConditionPreloadKept) == nullptr;
  };
  EXPECT_TRUE(kept());
  pods_.replaced_preloads["/a.so"] = {"shop-0/main", "shop-1/main"};
  pods_.replaced_preloads["/b.so"] = std::vector<std::string>(11, "other/main");
  const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  const auto* condition = api::FindCondition(status.conditions, api::kConditionPreloadKept);
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(condition->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(condition->reason, "ImagePreloadReplaced");
  EXPECT_TRUE(condition->message.starts_with(
      "the image sets LD_PRELOAD to \"/a.so\", which is not loaded in shop-0/main, shop-1/main: to "
      "load both, annotate the pod, or its template, with weft.dev/preload: \"/a.so\", and make it "
      "anew; the image sets"))
      << condition->message;
  EXPECT_TRUE(condition->message.contains("other/main and 1 more: ")) << condition->message;
}

TEST_F(Report, NamesFunctionsThatAreNotHooked) {
  EXPECT_EQ(api::FindCondition(MakeStatus(session_, pods_, kernel_, kNow).conditions,
                               api::kConditionFunctionsHooked),
            nullptr);
  session_.hook_notices = {"f of libx.so is not recorded: its symbol has no size", "another"};
  const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  const auto* condition = api::FindCondition(status.conditions, api::kConditionFunctionsHooked);
  ASSERT_NE(condition, nullptr);
  EXPECT_EQ(condition->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(condition->reason, "HookedInPart");
  EXPECT_EQ(condition->message, "f of libx.so is not recorded: its symbol has no size; another");
}

TEST_F(Report, SaysWhenNoAgentWasThere) {
  const auto said = [&] {
    const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
    const auto* stayed = api::FindCondition(status.conditions, api::kConditionAgentStayed);
    return stayed == nullptr ? "" : stayed->reason + ": " + stayed->message;
  };
  EXPECT_EQ(said(), "");
  session_.absences = {"1 to 2"};
  EXPECT_EQ(said(),
            "AgentWasAway: no agent ran from 1 to 2: programs that began and ended meanwhile are "
            "in no count");
  session_.absences.emplace_back("3 to 4");
  session_.order->spec.record.kernel.syscalls = {{.name = "openat"}};
  EXPECT_EQ(said(),
            "AgentWasAway: no agent ran from 1 to 2, and from 3 to 4: programs that began and "
            "ended meanwhile are in no count, nor are events of the kernel");
}

TEST_F(Report, PausedIsReadyAndSaysSo) {
  session_.order->spec.record.paused = true;
  const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kPaused);
  EXPECT_EQ(Ready(status)->reason, "Paused");
}

TEST_F(Report, NamesBuffersThatAreSmallerThanAskedFor) {
  session_.order->spec.record.buffer = {1 << 20, 8};
  session_ = std::move(*Session::FromOrder(*session_.order));
  for (const char* pod : {"a", "b", "c"})
    session_.AddChannel({std::string(pod) + "/main", "shop", pod, pod, "main",
                         *pod == 'c' ? uint64_t{0} : uint64_t{16} << 20});
  TurnOn();
  const api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  const auto* granted = api::FindCondition(status.conditions, api::kConditionBuffersGranted);
  ASSERT_NE(granted, nullptr);
  EXPECT_EQ(granted->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(granted->reason, "MemoryLimit");
  const SessionChannel& channel = session_.channels.front();
  EXPECT_EQ(granted->message,
            "buffers of 2 containers are " +
                ToString({channel.spec.subbuf_shift, channel.spec.subbufs_shift}) +
                " instead of 1Mi x 8: all buffers stay under 5 % of a container's memory limit");
  for (SessionChannel& each : session_.channels)
    each.phase = each.memory_limit == 0 ? ChannelPhase::kOn : ChannelPhase::kDrained;
  EXPECT_EQ(api::FindCondition(MakeStatus(session_, pods_, kernel_, kNow).conditions,
                               api::kConditionBuffersGranted),
            nullptr);
}

TEST_F(Report, SaysForAWhileThatTheConsumerExceededItsMemory) {
  ConsumerDeaths deaths;
  int64_t now_ns = 1'000'000'000;
  const auto described = [&] {
    const api::SessionStatus status =
        MakeStatus(session_, pods_, kernel_, kNow, deaths.Describe("shop", now_ns));
    const auto* healthy = api::FindCondition(status.conditions, api::kConditionConsumerHealthy);
    return healthy == nullptr ? "" : healthy->reason + ": " + healthy->message;
  };
  deaths.Add("other", "its limit is 1Mi", now_ns);
  EXPECT_EQ(described(), "");
  deaths.Add("shop", "its limit is 5Mi", now_ns);
  EXPECT_THAT(described(),
              testing::StartsWith("ConsumerOutOfMemory: the consumer of this namespace "
                                  "was killed (its limit is 5Mi), 1 time; "));
  deaths.Add("shop", "its limit is 6Mi", now_ns);
  EXPECT_THAT(described(), testing::HasSubstr("(its limit is 6Mi), 2 times; "));
  now_ns += std::chrono::nanoseconds(kConsumerTroubleSaid).count();
  EXPECT_EQ(described(), "");
}

TEST_F(Report, CountsAreNamedByStageAndReason) {
  ipc::ChannelCounts& counts = AddChannel("a", "main").reported;
  counts.recorded = 10;
  counts.delivered = 6;
  counts.overwritten = 1;
  counts.discarded = {{"full", 4}, {"memory", 0}};
  counts.lost = {{"relay/unreachable", 3}};
  const api::EventCounts events = MakeStatus(session_, pods_, kernel_, kNow).events;
  EXPECT_EQ(events.recorded, 10);
  EXPECT_EQ(events.delivered, 6);
  EXPECT_EQ(events.overwritten, 1);
  EXPECT_EQ(events.discarded, 4);
  EXPECT_EQ(events.lost, 3);
  EXPECT_EQ(events.missing, 7);
  EXPECT_EQ(events.reasons,
            (std::vector<api::EventLoss>{
                {"ring", "full", 4}, {"ring", "overwritten", 1}, {"relay", "unreachable", 3}}));
}

// weft.ko ended the session by itself: its end must not look like silence.
TEST_F(Report, ASessionThatStoppedByItselfIsNotTraced) {
  api::TraceSession order = *session_.order;
  order.spec.record.user.events.clear();
  order.spec.record.kernel.syscalls = {{.name = "openat"}};
  session_ = std::move(*Session::FromOrder(std::move(order)));
  pods_ = {.reachable = {{"a", true}}, .names = {}};
  kernel_ = {.is_known = true, .is_ready = true, .reason = "Loaded", .message = ""};
  session_.AddKernelChannel({});
  TurnOn();
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_TRUE(api::IsTrue(status.conditions, api::kConditionKernelTracing));
  EXPECT_EQ(status.pods.traced, 1);

  session_.KernelChannel()->stopped = "internal contradiction 1";
  status = MakeStatus(session_, pods_, kernel_, kLater);
  EXPECT_EQ(status.phase, api::Phase::kFailed);
  EXPECT_EQ(status.pods.traced, 0);
  EXPECT_EQ(Ready(status)->reason, "Stopped");
  const api::Condition* kernel =
      api::FindCondition(status.conditions, api::kConditionKernelTracing);
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(kernel->reason, "Stopped");
  EXPECT_EQ(kernel->message, "internal contradiction 1");
  EXPECT_EQ(kernel->last_transition_time, kube::FormatTime(kLater));
}

TEST_F(Report, DrainingEndsWithTheLastChannel) {
  pods_ = {.reachable = {{"a", true}}, .names = {}};
  AddChannel("a", "main");
  TurnOn();
  session_.order->spec.state = api::SessionState::kDraining;
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kDraining);
  EXPECT_FALSE(api::IsTrue(status.conditions, api::kConditionDrained));
  EXPECT_FALSE(IsDrained(session_));
  session_.channels[0].phase = ChannelPhase::kDrained;
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kCompleted);
  EXPECT_TRUE(api::IsTrue(status.conditions, api::kConditionDrained));
  EXPECT_TRUE(IsDrained(session_));
}

TEST_F(Report, AConditionKeepsItsTimeAndTimesAreNoNews) {
  const api::SessionStatus first = MakeStatus(session_, pods_, kernel_, kNow);
  const api::SessionStatus unaware = MakeStatus(session_, pods_, kernel_, kLater);
  EXPECT_NE(Ready(first)->last_transition_time, Ready(unaware)->last_transition_time);
  EXPECT_FALSE(DiffersBeyondCounts(first, unaware));
  session_.order->status = first;
  const api::SessionStatus second = MakeStatus(session_, pods_, kernel_, kLater);
  EXPECT_EQ(second, first);
}

TEST_F(Report, CountsAloneAreNoReasonToWrite) {
  const api::SessionStatus before = MakeStatus(session_, pods_, kernel_, kNow);
  AddChannel("a", "main").reported.recorded = 5;
  api::SessionStatus after = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_FALSE(after == before);
  EXPECT_FALSE(DiffersBeyondCounts(before, after));
  after.pods.matched = 1;
  EXPECT_TRUE(DiffersBeyondCounts(before, after));
}

const api::Condition* OfKernel(const api::SessionStatus& status) {
  return api::FindCondition(status.conditions, api::kConditionKernelTracing);
}

TEST_F(Report, WithoutTheKernelTheRestIsRecorded) {
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow)), nullptr) << "no Trace asked";
  session_.order->spec.record.kernel.syscalls = {{.name = "openat"}};
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(OfKernel(status)->status, api::ConditionStatus::kUnknown);
  kernel_ = {.is_known = true, .reason = "LockedDown", .message = "why"};
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(OfKernel(status)->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(OfKernel(status)->reason, "LockedDown");
  EXPECT_EQ(OfKernel(status)->message, "why");
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_EQ(Ready(status)->status, api::ConditionStatus::kTrue);
}

TEST_F(Report, NothingButTheKernelFailsWithIt) {
  session_.order->spec.record.user.events.clear();
  session_.order->spec.record.kernel.syscalls = {{.name = "openat"}};
  kernel_ = {.is_known = true, .reason = "CgroupV1", .message = "why"};
  pods_ = {.reachable = {{"a", true}}, .names = {{"a", "shop-0"}}};
  api::SessionStatus status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(status.phase, api::Phase::kFailed);
  EXPECT_EQ(Ready(status)->message, "why");
  EXPECT_EQ(status.pods.traced, 0);
  pods_.reachable["a"] = false;
  EXPECT_EQ(Skipped(), "CgroupV1: why") << "its control group is not looked for";

  kernel_ = {};
  EXPECT_EQ(Skipped(), "Preparing: the node's agent is making weft.ko ready");
  kernel_ = {.is_known = true, .is_ready = true, .reason = "Loaded", .message = ""};
  EXPECT_EQ(Skipped(), "CgroupNotReady: the kubelet has not made the pod's control group yet");
  pods_.reachable["a"] = true;
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->reason, "WaitingForPods");
  session_.kernel_refusal = "this kernel has none of that name";
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->reason, "NothingToRecord");
  session_.kernel_refusal.clear();
  SessionChannel& channel = AddChannel("", "");
  channel.definition.domain = ipc::kKernelDomain;
  channel.phase = ChannelPhase::kOn;
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->reason, "WaitingForRelay");
  session_.channels[0].ready = true;
  status = MakeStatus(session_, pods_, kernel_, kNow);
  EXPECT_EQ(OfKernel(status)->reason, "Recording");
  EXPECT_EQ(status.phase, api::Phase::kRecording);
  EXPECT_EQ(status.pods.traced, 1);
  session_.probes_pending = true;
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).pods.traced, 0) << "not all of it is on";
  session_.probes_pending = false;
  session_.kernel_notices = {"irqs belong to no task"};
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->reason, "RecordingInPart");
  session_.probe_notices = {"no such file"};
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->message,
            "irqs belong to no task; no such file");
  // That the kernel missed hits is said, how many others may have been is not.
  session_.channels[0].own.missed_anywhere = 4711;
  const std::string missed = OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->message;
  EXPECT_TRUE(
      missed.starts_with("irqs belong to no task; no such file; the kernel did not deliver"));
  EXPECT_EQ(missed.find("4711"), std::string::npos);
  EXPECT_EQ(MakeStatus(session_, pods_, kernel_, kNow).events.missing, 0);
  session_.channels[0].failure = "no memory";
  EXPECT_EQ(OfKernel(MakeStatus(session_, pods_, kernel_, kNow))->reason, "Refused");
}

TEST_F(Report, AnImpossibleSessionFailsAndStillDrains) {
  api::TraceSession order = *session_.order;
  const api::SessionStatus failed = MakeFailedStatus(order, "no such context", kNow);
  EXPECT_EQ(failed.phase, api::Phase::kFailed);
  EXPECT_EQ(Ready(failed)->reason, "NotPossible");
  EXPECT_EQ(Ready(failed)->message, "no such context");
  order.spec.state = api::SessionState::kDraining;
  const api::SessionStatus over = MakeFailedStatus(order, "no such context", kNow);
  EXPECT_TRUE(api::IsTrue(over.conditions, api::kConditionDrained));
}

}  // namespace
}  // namespace weft::agent
