// SPDX-License-Identifier: Apache-2.0
// What the status of a Trace says of its pods, nodes and events.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/plan.h"
#include "controller/reconcile/plan_fixture.h"

namespace weft::controller {
namespace {

using api::Phase;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Life, SaysWhyANodeIsNotReady) {
  AddPod("a", "n1");
  AddPod("b", "n2");
  Step();
  const auto message = [&] {
    Step();
    return api::FindCondition(s_.trace.status.conditions, api::kConditionReady)->message;
  };
  EXPECT_EQ(message(), "waiting for n1, n2");
  s_.sessions[0].status.observed_generation = s_.sessions[0].metadata.generation;
  s_.sessions[0].status.conditions = {{.type = std::string(api::kConditionReady),
                                       .status = api::ConditionStatus::kFalse,
                                       .reason = "WaitingForRelay",
                                       .message = "weft-relay-0 does not answer"}};
  EXPECT_EQ(message(), "waiting for n1 (WaitingForRelay: weft-relay-0 does not answer), n2");
  ++s_.sessions[0].metadata.generation;
  EXPECT_EQ(message(), "waiting for n1, n2") << "it was said of an older spec";
}

TEST_F(Life, NamesANodeWithoutAnAgent) {
  AddPod("a", "n1");
  Step();
  s_.sessions[0].metadata.creation_timestamp = kube::FormatTime(s_.now);
  const Plan soon = Step();
  EXPECT_EQ(soon.again, s_.now + kAgentSilent);
  s_.now += kAgentSilent;
  Step();
  EXPECT_EQ(api::FindCondition(s_.trace.status.conditions, api::kConditionReady)->message,
            "waiting for n1 (no weft-agent of this node answers: does its pod run?)");
}

TEST_F(Life, WaitsUntilANewSessionKnowsItsPods) {
  AddPod("a", "n1");
  AddPod("b", "n1", /*has_library=*/false);
  Step();
  s_.sessions[0].metadata.creation_timestamp = kube::FormatTime(s_.now);
  Say(0, api::kConditionReady);
  EXPECT_EQ(Step().again, s_.now + kAgentSilent);
  EXPECT_EQ(api::FindCondition(s_.trace.status.conditions, api::kConditionReady)->message,
            "waiting for n1 (its weft-agent has not heard of all its pods yet)");
  s_.sessions[0].status.pods.matched = 1;
  Step();
  EXPECT_EQ(ReadyReason(), "Recording");
  AddPod("c", "n1");
  Step();
  EXPECT_EQ(ReadyReason(), "Recording") << "it was ready";
}

TEST_F(Life, WaitsForUnknownPodsNoLongerThanForAnAgent) {
  AddPod("a", "n1");
  Step();
  s_.sessions[0].metadata.creation_timestamp = kube::FormatTime(s_.now);
  Say(0, api::kConditionReady);
  Step();
  EXPECT_EQ(ReadyReason(), "WaitingForNodes");
  s_.now += kAgentSilent;
  EXPECT_EQ(Step().again, std::nullopt);
  EXPECT_EQ(ReadyReason(), "Recording");
}

// Agents count pods with the library only, if user events are recorded.
TEST_F(Life, DoesNotWaitForPodsThatNoAgentCounts) {
  s_.trace.spec.kernel.syscalls = {{.name = "openat"}};
  AddPod("a", "n1");
  AddPod("b", "n1", /*has_library=*/false);
  Step();
  s_.sessions[0].metadata.creation_timestamp = kube::FormatTime(s_.now);
  Say(0, api::kConditionReady);
  s_.sessions[0].status.pods.matched = 1;
  Step();
  EXPECT_EQ(ReadyReason(), "Recording");
}

TEST_F(Life, ReadySaysHowManyPodsAreNotTraced) {
  AddPod("a", "n1");
  AddPod("b", "n1", false);
  Step();
  Say(0, api::kConditionReady);
  Step();
  EXPECT_EQ(ReadyReason(), "Recording");
  EXPECT_EQ(api::FindCondition(s_.trace.status.conditions, api::kConditionReady)->message,
            "in part: 1 of 2 pods not traced; status.pods.skipped says why");
}

TEST_F(Life, HasNoNewsOfPodsThatComeAndGo) {
  AddPod("a", "n1");
  Step();
  Say(0, api::kConditionReady);
  ASSERT_EQ(Reasons(Step()), "Recording ");
  s_.pods.clear();
  EXPECT_TRUE(Step().notes.empty());
  AddPod("b", "n1");
  EXPECT_TRUE(Step().notes.empty());
}

TEST_F(Life, PodsWithoutTheLibraryAreSkippedWithTheCommandThatRestartsThem) {
  AddPod("a", "n1");
  AddPod("old", "n1", /*has_library=*/false);
  AddPod("no", "n1", /*has_library=*/false);
  s_.pods[2].refuses_library = true;
  const Plan plan = Step();
  EXPECT_EQ(plan.status.pods.matched, 3);
  ASSERT_EQ(plan.status.pods.skipped.size(), 2u);
  EXPECT_EQ(plan.status.pods.skipped[0].reason, "InjectionDisabled");
  EXPECT_EQ(plan.status.pods.skipped[1].reason, "NotInjected");
  EXPECT_EQ(plan.status.pods.skipped[1].names, std::vector<std::string>{"old"});
  EXPECT_THAT(plan.status.pods.skipped[1].message,
              HasSubstr("kubectl -n shop rollout restart deployment/shop"));
}

TEST_F(Life, ATraceOfPodsWithoutTheLibraryAloneIsNotReady) {
  AddPod("old", "n1", /*has_library=*/false);
  Step();
  Say(0, "Ready");
  const Plan plan = Step();
  EXPECT_EQ(plan.status.phase, Phase::kPending);
  EXPECT_FALSE(api::IsTrue(plan.status.conditions, api::kConditionReady));
  EXPECT_EQ(ReadyReason(), "NothingTraced");
  s_.pods[0].has_library = true;
  Step();
  EXPECT_EQ(ReadyReason(), "Recording");
}

TEST_F(Life, APodWithoutTheContainerThatTheTraceNamesIsSkippedWithThoseThatItHas) {
  AddPod("a", "n1");
  s_.pods[0].containers = {{"main", true}, {"proxy", false}};
  const auto message = [&] {
    return api::FindCondition(s_.trace.status.conditions, api::kConditionReady)->message;
  };
  const auto expect_skipped = [&](const char* reason, const char* says) {
    const auto skipped = Step().status.pods.skipped;
    ASSERT_EQ(skipped.size(), 1U);
    EXPECT_EQ(skipped[0].reason, reason);
    EXPECT_EQ(skipped[0].names, std::vector<std::string>{"a"});
    EXPECT_THAT(skipped[0].message, HasSubstr(says));
    EXPECT_EQ(ReadyReason(), "NothingTraced");
    EXPECT_THAT(message(), HasSubstr("none of the 1 pods that spec.pods matches can be traced"));
  };
  Step();
  Say(0, "Ready");
  s_.trace.spec.pods.containers = {"typo"};
  expect_skipped("NoSuchContainer", "they have: main, proxy");
  s_.trace.spec.pods.containers = {"proxy"};
  expect_skipped("ContainerNotInjected", "only these have the library: main; list all that");

  s_.pods[0].ephemeral = {"debugger"};
  s_.trace.spec.pods.containers = {"debugger"};
  expect_skipped("EphemeralContainer", "not traced; they have beside them: main, proxy");

  s_.trace.spec.pods.containers = {"main", "debugger", "typo"};
  Step();
  Say(0, "Ready");
  EXPECT_TRUE(Step().status.pods.skipped.empty());
  EXPECT_EQ(ReadyReason(), "Recording");
  EXPECT_EQ(message(),
            "in part: no pod has a container of this name: typo; ephemeral containers are not "
            "traced: debugger");
  s_.trace.spec.pods.containers.clear();
  Step();
  Say(0, "Ready");
  Step();
  EXPECT_EQ(message(), "") << "an ephemeral container beside the others changes nothing";
}

TEST_F(Life, AMisspeltContainerIsToldWhateverIsRecordedOfIt) {
  AddPod("a", "n1", /*has_library=*/false);
  s_.pods[0].containers = {{"main", false}};
  s_.trace.spec.user.attach = true;
  for (const char* name : {"main", "typo"}) {
    s_.trace.spec.pods.containers = {name};
    Step();
    EXPECT_EQ(ReadyReason() == "NothingTraced", name == std::string("typo"));
  }
  s_.trace.spec.user = {};
  s_.trace.spec.kernel.syscalls = {{.name = "openat"}};
  for (const char* name : {"main", "typo"}) {
    s_.trace.spec.pods.containers = {name};
    EXPECT_EQ(Step().status.pods.skipped.empty(), name == std::string("main"));
    EXPECT_EQ(ReadyReason() == "NothingTraced", name == std::string("typo"));
  }
}

TEST_F(Life, ATraceThatAttachesLeavesPodsWithoutTheLibraryToTheNodes) {
  AddPod("old", "n1", /*has_library=*/false);
  s_.trace.spec.user.attach = true;
  Step();
  Say(0, "Ready");
  EXPECT_TRUE(Step().status.pods.skipped.empty());
  s_.sessions[0].status.conditions.push_back({.type = "ProcessesAttached", .reason = "NotAllowed"});
  EXPECT_EQ(Step().status.pods.skipped.at(0).reason, "NotInjected");
  EXPECT_EQ(ReadyReason(), "NothingTraced");
}

TEST_F(Life, ATraceDoesNotAttachInANamespaceThatIsExcluded) {
  AddPod("old", "n1", /*has_library=*/false);
  s_.trace.spec.user.attach = true;
  s_.served_namespaces.match_expressions = {
      {.key = "team", .op = api::SelectorOperator::kNotIn, .values = {"bank"}}};
  Step();
  EXPECT_TRUE(s_.sessions.at(0).spec.record.user.attach);
  s_.name_space.labels["team"] = "bank";
  Plan plan = Step();
  EXPECT_FALSE(plan.apply.at(0).spec.record.user.attach);
  const auto skipped = plan.status.pods.skipped.at(0);
  EXPECT_EQ(skipped.reason, "NotAttached");
  EXPECT_EQ(skipped.names, std::vector<std::string>{"old"});
  EXPECT_THAT(skipped.message, HasSubstr("webhook.namespaceSelector"));
  const auto* attached =
      api::FindCondition(plan.status.conditions, api::kConditionProcessesAttached);
  ASSERT_NE(attached, nullptr);
  EXPECT_EQ(attached->reason, "NotAllowed");
  EXPECT_EQ(attached->message, skipped.message);
  EXPECT_EQ(ReadyReason(), "NothingTraced");
  s_.name_space.labels["team"] = "shop";
  plan = Step();
  EXPECT_TRUE(plan.apply.at(0).spec.record.user.attach);
  EXPECT_TRUE(plan.status.pods.skipped.empty());
  s_.name_space = {};
  EXPECT_FALSE(Step().apply.at(0).spec.record.user.attach) << "its labels are not known yet";
}

TEST_F(Life, CountsAreTheSumOfTheNodes) {
  for (const char* node : {"n1", "n2"})
    for (const char* pod : {"a", "b", "c"}) AddPod(pod + std::string(node), node);
  Step();
  for (api::TraceSession& session : s_.sessions) {
    session.status.pods = {
        .matched = 3, .traced = 1, .skipped = {{.reason = "Static", .count = 2}}};
    session.status.events = {.recorded = 10,
                             .delivered = 8,
                             .discarded = 3,
                             .lost = 1,
                             .reasons = {{.stage = "ring", .reason = "full", .count = 3}}};
  }
  const Plan plan = Step();
  EXPECT_EQ(plan.status.pods.traced, 2);
  EXPECT_EQ(plan.status.pods.skipped[0].count, 4);
  EXPECT_EQ(plan.status.events.delivered, 16);
  EXPECT_EQ(plan.status.events.missing, 8);
  EXPECT_EQ(plan.status.events.reasons[0].count, 6);
}

TEST_F(Life, APodIsSkippedOnceWhenTheLabelOfItsNamespaceChanges) {
  const auto skipped = [&] {
    std::string text;
    for (const api::SkippedPods& pods : Step().status.pods.skipped) {
      text += pods.reason + " " + std::to_string(pods.count) + ":";
      for (const std::string& name : pods.names) text += " " + name;
      text += "; ";
    }
    return text;
  };
  for (const char* pod : {"a", "b"}) AddPod(pod, "n1", /*has_library=*/false);
  AddPod("with", "n1");
  s_.trace.spec.user.attach = true;
  Step();
  Say(0, api::kConditionReady);
  s_.sessions[0].status.pods = {
      .matched = 3,
      .skipped = {{.reason = "NotAttached", .message = "m", .count = 2, .names = {"a", "b"}},
                  {.reason = "VolumeNotReady", .message = "m", .count = 1, .names = {"with"}}}};
  EXPECT_EQ(skipped(), "NotAttached 2: a b; VolumeNotReady 1: with; ");
  s_.name_space.refuses_library = true;
  s_.name_space.wants_library = false;
  EXPECT_EQ(skipped(), "InjectionDisabled 2: a b; VolumeNotReady 1: with; ");
  s_.name_space.refuses_library = false;
  s_.served_namespaces.match_labels["served"] = "yes";
  EXPECT_EQ(skipped(), "NotAttached 2: a b; VolumeNotReady 1: with; ");
}

TEST_F(Life, CountsOfASessionWhoseNodeIsGoneStay) {
  AddPod("a", "n1");
  AddPod("b", "n2");
  Step();
  Count(0, 100, 90);
  Count(1, 50, 50);
  Step();
  s_.nodes.erase("n1");
  s_.pods.erase(s_.pods.begin());
  Plan plan = Step();
  EXPECT_EQ(plan.remove.size(), 1u);
  EXPECT_EQ(plan.status.events.recorded, 150);
  EXPECT_EQ(plan.status.events.delivered, 140);
  EXPECT_EQ(plan.status.events.lost, 10) << "no one will say what became of them";
  EXPECT_EQ(plan.status.events.reasons, (std::vector<api::EventLoss>{{"node", "gone", 10}}));
  EXPECT_EQ(plan.status.removed_sessions.uids, std::vector<std::string>{"uid-1"});
  // The node comes back, and its new session counts in addition.
  s_.nodes["n1"] = {};
  AddPod("c", "n1");
  Step();
  Count(1, 7, 7);
  EXPECT_EQ(Step().status.events.recorded, 157);
  EXPECT_EQ(s_.trace.status.events.delivered, 147);
}

TEST_F(Life, ARemovedSessionThatIsStillThereCountsOnce) {
  AddPod("a", "n1");
  Step();
  Count(0, 100, 100);
  s_.nodes.erase("n1");
  s_.trace.status = MakePlan(s_).status;
  Plan plan = MakePlan(s_);
  EXPECT_EQ(plan.status, s_.trace.status);
  EXPECT_EQ(plan.status.events.recorded, 100);
  EXPECT_EQ(plan.remove.size(), 1u) << "it is still to be removed";
  // A new one would have its name.
  s_.nodes["n1"] = {};
  plan = MakePlan(s_);
  EXPECT_THAT(plan.apply, IsEmpty());
  EXPECT_FALSE(plan.remove_finalizer);
  Apply(plan);
  plan = Step();
  EXPECT_EQ(plan.apply.size(), 1u);
  EXPECT_EQ(plan.status.events.recorded, 100);
}

TEST_F(Life, NoCountEverFalls) {
  AddPod("a", "n1");
  Step();
  s_.sessions[0].status.events = {.recorded = 10,
                                  .delivered = 4,
                                  .discarded = 3,
                                  .overwritten = 2,
                                  .lost = 1,
                                  .reasons = {{"relay", "unreachable", 1}, {"ring", "full", 3}}};
  Step();
  const api::EventCounts before = s_.trace.status.events;
  // More of one kind alone, and less of the others.
  s_.sessions[0].status.events = {.recorded = 20, .discarded = 1};
  const api::EventCounts after = Step().status.events;
  EXPECT_EQ(after.recorded, 20);
  EXPECT_EQ(after.delivered, 4);
  EXPECT_EQ(after.discarded, 3);
  EXPECT_EQ(after.overwritten, 2);
  EXPECT_EQ(after.lost, 1);
  EXPECT_EQ(after.missing, 4);
  EXPECT_EQ(after.reasons, before.reasons);
  // Someone took its finalizer away.
  s_.sessions.clear();
  EXPECT_EQ(MakePlan(s_).status.events, after);
}

TEST_F(Life, TheLastEventSaysWhatBecameOfTheEvents) {
  AddPod("a", "n1");
  Step();
  s_.sessions[0].status.events = {.recorded = 10,
                                  .delivered = 9,
                                  .discarded = 3,
                                  .lost = 1,
                                  .reasons = {{"relay", "unreachable", 1}, {"ring", "full", 3}}};
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  Step();
  const Situation deleted = s_;
  Say(0, "Drained");
  Plan plan = MakePlan(s_);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_TRUE(plan.notes[0].warning);
  EXPECT_EQ(plan.notes[0].text,
            "the Trace is being deleted. Recorded 10 events and delivered 9. Discarded 3 "
            "(ring/full: 3). Lost 1 (relay/unreachable: 1).");
  EXPECT_EQ(plan.status.events.recorded, 10);
  EXPECT_TRUE(plan.remove_finalizer);

  s_ = deleted;
  Count(0, 10, 8);
  s_.trace.status.events = {};
  s_.now += kDrainLimit;
  plan = MakePlan(s_);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_THAT(plan.notes[0].text, HasSubstr("n1. Recorded 10 events and delivered 8. Nothing was "
                                            "discarded or lost. 2 are not delivered yet."));
}

TEST_F(Life, SaysWhetherTheRelayIsThereAndHasEvents) {
  const auto condition = [&](std::string_view type) {
    return api::FindCondition(s_.trace.status.conditions, type);
  };
  AddPod("a", "n1", true);
  Step();
  Say(0, api::kConditionReady);
  EXPECT_EQ(Reasons(Step()), "Recording ") << "no event yet is no news";
  EXPECT_EQ(condition(api::kConditionRelayAvailable), nullptr);
  EXPECT_EQ(condition(api::kConditionReceiving)->reason, "NoEvents");
  EXPECT_EQ(condition(api::kConditionReceiving)->status, api::ConditionStatus::kFalse);

  api::SessionStatus& status = s_.sessions.at(0).status;
  status.conditions.push_back({.type = std::string(api::kConditionRelayAvailable),
                               .status = api::ConditionStatus::kFalse,
                               .reason = "Unreachable",
                               .message = "Connection refused"});
  status.events.recorded = 7;
  EXPECT_EQ(Reasons(Step()), "Unreachable ");
  EXPECT_EQ(condition(api::kConditionRelayAvailable)->message,
            s_.sessions[0].spec.node_name + ": Connection refused");
  status.conditions.back().reason = "Refused";
  EXPECT_EQ(Reasons(Step()), "Refused ");
  EXPECT_EQ(condition(api::kConditionReceiving)->reason, "NotDelivered");
  status.conditions.back().status = api::ConditionStatus::kTrue;
  status.events.delivered = 7;
  Step();
  EXPECT_EQ(condition(api::kConditionRelayAvailable)->status, api::ConditionStatus::kTrue);
  EXPECT_EQ(condition(api::kConditionReceiving)->status, api::ConditionStatus::kTrue);
}

TEST_F(Life, NamesRulesThatNoNodeOffers) {
  const auto receiving = [&] {
    return *api::FindCondition(s_.trace.status.conditions, api::kConditionReceiving);
  };
  s_.trace.spec.user.events = {{.name = "a:x"}, {.name = "a:y"}};
  AddPod("a", "n1", true);
  AddPod("b", "n2", true);
  Step();
  Say(0, api::kConditionReady);
  Say(1, api::kConditionReady);
  Step();
  EXPECT_EQ(receiving().reason, "NoEvents");

  api::SessionStatus& first = s_.sessions.at(0).status;
  api::SessionStatus& second = s_.sessions.at(1).status;
  first.event_rules = {{"a:x", "no a:x"}, {"a:y", ""}};
  second.pods.traced = 1;
  Step();
  EXPECT_EQ(receiving().reason, "NoEvents") << "the other node does not know yet";
  second.pods.traced = 0;
  EXPECT_EQ(Reasons(Step()), "NotOffered ") << "the other node has no program";
  EXPECT_EQ(receiving().status, api::ConditionStatus::kFalse);
  EXPECT_EQ(receiving().message, "no a:x");

  second.event_rules = {{"a:x", "no a:x, but a:z"}, {"a:y", "no a:y"}};
  Step();
  EXPECT_EQ(receiving().message, "no a:x, but a:z");

  second.events.delivered = second.events.recorded = 1;
  Step();
  EXPECT_EQ(receiving().reason, "Delivered");
  EXPECT_EQ(receiving().message, "no a:x, but a:z") << "it is told beside what is delivered";

  second.event_rules[0].problem = "";
  Step();
  EXPECT_EQ(receiving().message, "");

  first.event_rules = {{"a:x", "no a:x"}, {"a:old", "no a:old"}};
  second.event_rules.clear();
  Step();
  EXPECT_EQ(receiving().message, "") << "of another version of the spec";
}

TEST_F(Life, SaysWhichBuffersAreSmallerThanAskedFor) {
  const auto buffers = [&] {
    return api::FindCondition(s_.trace.status.conditions, api::kConditionBuffersGranted);
  };
  AddPod("a", "n1", true);
  Step();
  Say(0, api::kConditionReady);
  Step();
  EXPECT_EQ(buffers(), nullptr);
  s_.sessions.at(0).status.conditions.push_back(
      {.type = std::string(api::kConditionBuffersGranted),
       .status = api::ConditionStatus::kFalse,
       .reason = "MemoryLimit",
       .message = "buffers of 1 container are 16Ki x 4 instead of 1Mi x 8"});
  EXPECT_EQ(Reasons(Step()), "MemoryLimit ");
  ASSERT_NE(buffers(), nullptr);
  EXPECT_EQ(buffers()->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(buffers()->message, s_.sessions[0].spec.node_name +
                                    ": buffers of 1 container are 16Ki x 4 instead of 1Mi x 8");
  s_.sessions[0].status.conditions.pop_back();
  Step();
  EXPECT_EQ(buffers()->status, api::ConditionStatus::kTrue);
}

TEST_F(Life, SaysOnceWhatIsMissingInPods) {
  AddPod("a", "n1", true);
  Step();
  for (const auto& [type, reason] : {std::pair(api::kConditionPreloadKept, "ImagePreloadReplaced "),
                                     std::pair(api::kConditionFunctionsHooked, "HookedInPart "),
                                     std::pair(api::kConditionProcessesAttached, "NotAllowed "),
                                     std::pair(api::kConditionAgentStayed, "AgentWasAway ")}) {
    s_.sessions.at(0).status.conditions = {
        {.type = std::string(type), .status = api::ConditionStatus::kFalse}};
    EXPECT_EQ(Reasons(Step()), reason);
    s_.sessions[0].status.conditions.clear();
    EXPECT_EQ(Reasons(Step()), "");
    EXPECT_NE(api::IsTrue(s_.trace.status.conditions, type), type == api::kConditionAgentStayed);
  }
}

TEST_F(Life, SumsUpKernelConditionsOfNodes) {
  const auto kernel = [&] {
    return api::FindCondition(s_.trace.status.conditions, api::kConditionKernelTracing);
  };
  const auto say = [&](std::size_t session, api::ConditionStatus status, const char* reason,
                       const char* message) {
    s_.sessions.at(session).status.conditions.push_back(
        {.type = std::string(api::kConditionKernelTracing),
         .status = status,
         .reason = reason,
         .message = message});
  };
  AddPod("a", "n1", false);
  AddPod("b", "n2", false);
  s_.trace.spec.kernel.syscalls = {{.name = "openat"}};
  Step();
  EXPECT_EQ(kernel()->status, api::ConditionStatus::kUnknown);
  EXPECT_EQ(ReadyReason(), "WaitingForNodes") << "pods need no library for the kernel's events";
  Say(0, api::kConditionReady);
  Say(1, api::kConditionReady);
  say(0, api::ConditionStatus::kTrue, "Recording", "");
  Step();
  EXPECT_EQ(kernel()->status, api::ConditionStatus::kUnknown);
  say(1, api::ConditionStatus::kFalse, "LockedDown", "why");
  EXPECT_EQ(Reasons(Step()), "LockedDown ");
  EXPECT_EQ(kernel()->status, api::ConditionStatus::kFalse);
  EXPECT_EQ(kernel()->reason, "LockedDown");
  EXPECT_EQ(kernel()->message, s_.sessions[1].spec.node_name + ": why");
  EXPECT_EQ(s_.trace.status.phase, api::Phase::kRecording);
  s_.sessions[1].status.conditions.pop_back();
  say(1, api::ConditionStatus::kTrue, "Recording", "");
  Step();
  EXPECT_EQ(kernel()->status, api::ConditionStatus::kTrue);
}

TEST_F(Life, DelaysWritingHigherCountsAlone) {
  api::TraceStatus a;
  api::TraceStatus b = a;
  b.events.delivered = 5;
  EXPECT_FALSE(DiffersBeyondCounts(a, b));
  b.phase = Phase::kRecording;
  EXPECT_TRUE(DiffersBeyondCounts(a, b));
}

}  // namespace
}  // namespace weft::controller
