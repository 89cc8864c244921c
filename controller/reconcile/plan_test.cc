// SPDX-License-Identifier: Apache-2.0
// The life of a Trace as the controller plans it: each test plays pods, nodes and agents around it.
#include "controller/reconcile/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/trace_status.h"
#include "lib/api/limits.h"

namespace weft::controller {
namespace {

using api::Phase;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

// Applies a plan as the API server and the agents would.
class Life : public testing::Test {
 protected:
  Life() {
    s_.trace.metadata = {.name = "t",
                         .name_space = "shop",
                         .uid = "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10",
                         .generation = 1};
    s_.trace.spec.user.events = {{.name = "shop:*"}};
    s_.trace.spec.pods.selector.match_labels["app"] = "shop";
    s_.name_space.wants_library = true;
    s_.nodes = {{"n1", {.labels = {{"kubernetes.io/hostname", "n1"}}}}, {"n2", {}}};
    s_.own_namespace = "weft";
    s_.relay = {.name = "weft-relay-0", .control = "r:1", .data = "r:2"};
    s_.now = kube::WallTime{seconds(1'800'000'000)};
  }

  void AddPod(const std::string& name, const std::string& node, bool has_library = true) {
    s_.pods.push_back({.name = name,
                       .node = node,
                       .labels = {{"app", "shop"}},
                       .restart = "deployment/shop",
                       .has_library = has_library});
  }

  // One round; then nothing more may change by itself.
  Plan Step() {
    const Plan plan = MakePlan(s_);
    Apply(plan);
    const Plan again = MakePlan(s_);
    EXPECT_TRUE(again.apply.empty());
    EXPECT_TRUE(again.remove.empty());
    EXPECT_FALSE(again.add_finalizer);
    EXPECT_TRUE(again.notes.empty() || again.remove_finalizer);
    return plan;
  }

  void Apply(const Plan& plan) {
    if (plan.add_finalizer) s_.trace.metadata.finalizers.emplace_back(kFinalizer);
    if (plan.remove_finalizer) std::erase(s_.trace.metadata.finalizers, kFinalizer);
    for (const api::TraceSession& session : plan.apply) {
      const auto same = [&](const auto& s) { return s.metadata.name == session.metadata.name; };
      auto found = std::ranges::find_if(s_.sessions, same);
      if (found == s_.sessions.end()) {
        s_.sessions.push_back(session);
        s_.sessions.back().metadata.generation = 1;
        s_.sessions.back().metadata.uid = "uid-" + std::to_string(++made_);
      } else {
        found->spec = session.spec;
        found->metadata.finalizers = session.metadata.finalizers;
        ++found->metadata.generation;
      }
    }
    std::erase_if(s_.sessions, [&](const auto& s) {
      return std::ranges::find(plan.remove, s.metadata.name) != plan.remove.end();
    });
    s_.trace.status = plan.status;
  }

  // The agent of a session says a condition of its spec as it is.
  void Say(std::size_t session, std::string_view condition) {
    api::TraceSession& s = s_.sessions.at(session);
    s.status.observed_generation = s.metadata.generation;
    s.status.conditions = {
        {.type = std::string(condition), .status = api::ConditionStatus::kTrue, .reason = "x"}};
  }

  std::string ReadyReason() {
    const auto* ready = api::FindCondition(s_.trace.status.conditions, api::kConditionReady);
    return ready == nullptr ? "" : ready->reason;
  }

  // What a session's agent has counted.
  void Count(std::size_t session, std::int64_t recorded, std::int64_t delivered) {
    s_.sessions.at(session).status.events = {.recorded = recorded, .delivered = delivered};
  }

  Situation s_;
  int made_ = 0;  // sessions
};

std::string Reasons(const Plan& plan) {
  std::string out;
  for (const Note& note : plan.notes) out += note.reason + " ";
  return out;
}

TEST_F(Life, FromFirstSightToRecording) {
  AddPod("a", "n1");
  AddPod("b", "n2");
  AddPod("c", "n2");
  AddPod("not scheduled", "");
  const Plan plan = Step();
  EXPECT_TRUE(plan.add_finalizer);
  ASSERT_EQ(plan.apply.size(), 2u);
  EXPECT_EQ(plan.apply[0].spec.node_name, "n1");
  EXPECT_EQ(plan.apply[0].spec.trace_uid, s_.trace.metadata.uid);
  EXPECT_EQ(plan.apply[0].spec.relay, s_.relay);
  EXPECT_EQ(plan.apply[0].spec.record, s_.trace.spec);
  EXPECT_EQ(plan.status.phase, Phase::kPending);
  EXPECT_EQ(plan.status.pods.matched, 4);
  EXPECT_EQ(ReadyReason(), "WaitingForNodes");
  EXPECT_EQ(plan.status.relay, "weft-relay-0");
  EXPECT_EQ(plan.status.folder, s_.trace.metadata.name_space + "/" + s_.trace.metadata.name + "/" +
                                    s_.trace.metadata.uid);
  EXPECT_EQ(plan.status.segments.size(), 1u);
  EXPECT_TRUE(api::IsTrue(plan.status.conditions, api::kConditionAccepted));

  Say(0, "Ready");
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kPending);
  EXPECT_NE(s_.trace.status.start_time, "");
  Say(1, "Ready");
  EXPECT_EQ(Reasons(Step()), "Recording ");
  EXPECT_EQ(s_.trace.status.phase, Phase::kRecording);
  EXPECT_TRUE(api::IsTrue(s_.trace.status.conditions, api::kConditionReady));
}

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

TEST_F(Life, EvictsPodsThatMissedTheLibraryWhereThatIsAskedFor) {
  s_.trace.metadata.creation_timestamp = kube::FormatTime(s_.now);
  for (const char* name : {"a", "b", "c"}) {
    AddPod(name, "n1", name[0] == 'c');
    s_.pods.back().made = kube::FormatTime(s_.now);
    s_.pods.back().is_ready = true;
  }
  s_.now += kRestartAge;
  EXPECT_TRUE(MakePlan(s_).evict.empty()) << "it was not asked for";
  s_.name_space.restarts_missed = true;
  EXPECT_EQ(MakePlan(s_).evict, std::vector<std::string>{"a"}) << "one of an owner at a time";
  s_.trace.metadata.annotations["weft.dev/restart-missed"] = "false";
  EXPECT_TRUE(MakePlan(s_).evict.empty()) << "the Trace's word counts";
  s_.trace.metadata.annotations["weft.dev/restart-missed"] = "true";
  s_.pods[2].is_ready = false;
  EXPECT_TRUE(MakePlan(s_).evict.empty()) << "another pod of the owner is not ready";
  s_.pods[2].is_ready = true;
  s_.pods[0].made = kube::FormatTime(s_.now + kRestartWindow);
  EXPECT_EQ(MakePlan(s_).evict, std::vector<std::string>{"b"}) << "a was made again, in vain";
  s_.now -= kRestartAge;
  const Plan early = MakePlan(s_);
  EXPECT_TRUE(early.evict.empty()) << "the library may not be there yet";
  EXPECT_EQ(early.again, s_.now + kRestartAge);
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

TEST_F(Life, ReportsThatNothingMatches) {
  s_.pods = {{.name = "other", .node = "n1", .labels = {{"app", "other"}}}};
  const Plan plan = Step();
  EXPECT_TRUE(plan.apply.empty());
  EXPECT_EQ(plan.status.phase, Phase::kPending);
  EXPECT_EQ(ReadyReason(), "NoPods");
  EXPECT_EQ(plan.status.relay, "");
  EXPECT_EQ(Reasons(plan), "NoPods ");
  AddPod("a", "n1");
  EXPECT_EQ(Step().apply.size(), 1u);
}

TEST_F(Life, IgnoresFinishedPods) {
  AddPod("a", "n1");
  s_.pods[0].is_over = true;
  EXPECT_EQ(Step().status.pods.matched, 0);
}

TEST_F(Life, RefusedSpecLeavesRunningSessions) {
  AddPod("a", "n1");
  s_.problem = "spec.filter: no such context";
  const Plan plan = Step();
  EXPECT_TRUE(plan.apply.empty());
  EXPECT_EQ(plan.status.phase, Phase::kFailed);
  EXPECT_EQ(Reasons(plan), "InvalidSpec ");
  const auto* accepted = api::FindCondition(plan.status.conditions, api::kConditionAccepted);
  EXPECT_EQ(accepted->message, s_.problem);

  s_.problem.clear();
  Step();
  Say(0, "Ready");
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kRecording);
  s_.problem = "spec.filter: no";
  s_.trace.spec.filter = "no";
  ++s_.trace.metadata.generation;
  EXPECT_TRUE(Step().apply.empty());
  EXPECT_EQ(s_.trace.status.phase, Phase::kRecording);
}

TEST_F(Life, AChangedSpecIsReadyWhenTheNodesHaveIt) {
  AddPod("a", "n1");
  Step();
  Say(0, "Ready");
  Step();
  s_.trace.spec.paused = true;
  s_.trace.metadata.generation = 2;
  EXPECT_EQ(Step().apply.size(), 1u);
  EXPECT_EQ(s_.trace.status.phase, Phase::kPending);
  Say(0, "Ready");
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kPaused);
}

TEST_F(Life, DurationBecomesADeadlineAndTheEndIsDrained) {
  s_.trace.spec.duration = seconds(90);
  AddPod("a", "n1");
  EXPECT_EQ(Step().status.deadline, "");
  Say(0, "Ready");
  const Plan started = Step();
  EXPECT_EQ(started.status.deadline, kube::FormatTime(s_.now + seconds(90)));
  EXPECT_EQ(started.again, s_.now + seconds(90));
  EXPECT_EQ(s_.sessions[0].spec.deadline, started.status.deadline);
  Say(0, "Ready");
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kRecording);

  s_.now += seconds(90);
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kDraining);
  EXPECT_EQ(s_.sessions[0].spec.state, api::SessionState::kDraining);
  Say(0, "Drained");
  EXPECT_EQ(Reasons(Step()), "Completed ");
  EXPECT_EQ(s_.trace.status.phase, Phase::kCompleted);
  EXPECT_EQ(s_.trace.status.completion_time, kube::FormatTime(s_.now));
  EXPECT_THAT(s_.trace.metadata.finalizers, IsEmpty()) << "it can be deleted without a controller";
  AddPod("late", "n2");
  EXPECT_TRUE(Step().apply.empty());
  EXPECT_THAT(s_.trace.metadata.finalizers, IsEmpty());
}

TEST_F(Life, OnlyATraceWithSessionsHasAFinalizer) {
  EXPECT_FALSE(Step().add_finalizer) << "no pods";
  s_.problem = "wrong";
  AddPod("a", "n1");
  EXPECT_FALSE(Step().add_finalizer);
  s_.problem.clear();
  EXPECT_TRUE(Step().add_finalizer);
  Say(0, "Ready");
  s_.nodes.erase("n1");
  s_.pods.clear();
  EXPECT_TRUE(Step().remove_finalizer);
  EXPECT_THAT(s_.trace.metadata.finalizers, IsEmpty());
}

TEST_F(Life, RemovingWeftDrainsAndLeavesTheTrace) {
  AddPod("a", "n1");
  Step();
  Say(0, "Ready");
  Step();
  s_.uninstalling_since = s_.now;
  Plan plan = Step();
  EXPECT_FALSE(plan.remove_finalizer);
  EXPECT_EQ(plan.again, s_.now + kDrainLimit);
  EXPECT_EQ(s_.sessions[0].spec.state, api::SessionState::kDraining);
  Say(0, "Drained");
  plan = Step();
  EXPECT_TRUE(plan.remove_finalizer);
  EXPECT_EQ(Reasons(plan), "Uninstalled ");
  EXPECT_THAT(s_.sessions, IsEmpty());
  EXPECT_EQ(s_.trace.status.phase, Phase::kPending);
  EXPECT_EQ(s_.trace.status.completion_time, "");
  // Installed again, it records again.
  s_.uninstalling_since.reset();
  EXPECT_TRUE(Step().add_finalizer);
  EXPECT_EQ(s_.sessions.at(0).spec.state, api::SessionState::kActive);
}

TEST_F(Life, RemovingWeftWaitsNoLongerThanItsLimit) {
  AddPod("a", "n1");
  Step();
  s_.uninstalling_since = s_.now;
  Step();
  s_.now += kDrainLimit;
  const Plan plan = Step();
  EXPECT_TRUE(plan.remove_finalizer);
  EXPECT_THAT(Reasons(plan), HasSubstr("NotDrained"));
  EXPECT_THAT(s_.sessions, IsEmpty());
}

TEST_F(Life, DeletionWaitsForEveryNode) {
  AddPod("a", "n1");
  AddPod("b", "n2");
  Step();
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  Plan plan = Step();
  EXPECT_FALSE(plan.remove_finalizer);
  EXPECT_EQ(plan.again, s_.now + kDrainLimit);
  EXPECT_EQ(s_.sessions[0].spec.state, api::SessionState::kDraining);
  Say(0, "Drained");
  EXPECT_FALSE(Step().remove_finalizer);
  Say(1, "Drained");
  plan = MakePlan(s_);
  EXPECT_TRUE(plan.remove_finalizer);
  EXPECT_EQ(Reasons(plan), "Completed ");
}

TEST_F(Life, DeletionDoesNotWaitForANodeThatIsGone) {
  AddPod("a", "n1");
  Step();
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  s_.nodes.erase("n1");
  const Plan plan = MakePlan(s_);
  EXPECT_TRUE(plan.remove_finalizer);
  EXPECT_EQ(plan.remove, std::vector<std::string>{api::SessionName("t", "n1")});
}

TEST_F(Life, DeletionWaitsNoLongerThanItsLimitAndSaysSo) {
  AddPod("a", "n1");
  Step();
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  Step();
  s_.now += kDrainLimit;
  const Plan plan = MakePlan(s_);
  EXPECT_TRUE(plan.remove_finalizer);
  ASSERT_EQ(plan.notes.size(), 1u);
  EXPECT_EQ(plan.notes[0].reason, "NotDrained");
  EXPECT_THAT(plan.notes[0].text, HasSubstr("n1"));
}

TEST_F(Life, DeletionAtATimeThatCannotBeReadIsNotWaitedFor) {
  AddPod("a", "n1");
  Step();
  s_.trace.metadata.deletion_timestamp = "yesterday";
  EXPECT_TRUE(MakePlan(s_).remove_finalizer);
}

TEST_F(Life, ADeletedTraceThatWasNeverFinalizedIsLeftAlone) {
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  const Plan plan = MakePlan(s_);
  EXPECT_FALSE(plan.add_finalizer);
  EXPECT_FALSE(plan.remove_finalizer);
  EXPECT_TRUE(plan.apply.empty());
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

TEST_F(Life, CountsAreTheSumOfTheNodes) {
  AddPod("a", "n1");
  AddPod("b", "n2");
  Step();
  for (api::TraceSession& session : s_.sessions) {
    session.status.pods = {
        .matched = 1, .traced = 1, .skipped = {{.reason = "Static", .count = 2}}};
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

// The status is written before the session is removed, and the controller may end between them.
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

TEST_F(Life, ADeletedSessionIsDrainedAndCountedBeforeAnotherFollows) {
  AddPod("a", "n1");
  EXPECT_EQ(Step().apply.at(0).metadata.finalizers, std::vector{std::string(kFinalizer)});
  Say(0, "Ready");
  Step();
  s_.sessions[0].metadata.deletion_timestamp = kube::FormatTime(s_.now);
  Plan plan = Step();
  ASSERT_EQ(plan.apply.size(), 1u);
  EXPECT_EQ(plan.apply[0].spec.state, api::SessionState::kDraining);
  EXPECT_EQ(plan.apply[0].metadata.finalizers, std::vector{std::string(kFinalizer)});
  EXPECT_EQ(ReadyReason(), "WaitingForNodes");
  s_.now += 2 * kDrainLimit;
  EXPECT_THAT(Step().remove, IsEmpty()) << "its events are still on their way";
  Say(0, "Drained");
  Count(0, 100, 100);
  plan = MakePlan(s_);
  EXPECT_EQ(plan.remove, std::vector<std::string>{api::SessionName("t", "n1")});
  EXPECT_EQ(plan.status.removed_sessions.events.recorded, 100);
  EXPECT_THAT(plan.apply, IsEmpty());
  EXPECT_FALSE(plan.remove_finalizer);
  Apply(plan);
  plan = Step();
  EXPECT_EQ(plan.apply.at(0).spec.state, api::SessionState::kActive);
  EXPECT_EQ(plan.status.events.recorded, 100);
}

TEST_F(Life, ADeletedSessionDoesNotOutliveItsTrace) {
  AddPod("a", "n1");
  AddPod("b", "n2");
  Step();
  s_.sessions[0].metadata.deletion_timestamp = kube::FormatTime(s_.now);
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  Plan plan = Step();
  ASSERT_EQ(s_.sessions.size(), 2u);
  EXPECT_TRUE(HasFinalizer(s_.sessions[0].metadata)) << "it is drained first";
  EXPECT_FALSE(HasFinalizer(s_.sessions[1].metadata)) << "Kubernetes deletes it with its Trace";
  s_.now += kDrainLimit;
  plan = MakePlan(s_);
  EXPECT_TRUE(plan.remove_finalizer);
  EXPECT_EQ(plan.remove, std::vector<std::string>{s_.sessions[0].metadata.name});
}

TEST_F(Life, SessionsOfManyNodesThatGoAtOnceWaitForEachOther) {
  constexpr std::size_t kMore = 10;
  for (std::size_t i = 0; i < api::limits::kRemovedSessions + kMore; ++i) {
    s_.nodes["m" + std::to_string(i)] = {};
    AddPod("p" + std::to_string(i), "m" + std::to_string(i));
  }
  Step();
  for (std::size_t i = 0; i < s_.sessions.size(); ++i) Count(i, 1, 1);
  std::erase_if(s_.nodes, [](const auto& entry) { return entry.first.starts_with('m'); });
  s_.pods.clear();
  Plan plan = MakePlan(s_);
  EXPECT_EQ(plan.remove.size(), api::limits::kRemovedSessions);
  EXPECT_FALSE(plan.remove_finalizer);
  const auto all = static_cast<std::int64_t>(s_.sessions.size());
  EXPECT_EQ(plan.status.events.recorded, all);
  Apply(plan);
  plan = Step();
  EXPECT_EQ(plan.remove.size(), kMore);
  EXPECT_TRUE(plan.remove_finalizer);
  EXPECT_EQ(plan.status.events.recorded, all);
  EXPECT_EQ(plan.status.removed_sessions.uids.size(), api::limits::kRemovedSessions);
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

// The life of a ClusterTrace, which records whole nodes.
class ClusterLife : public Life {
 protected:
  ClusterLife() {
    s_.trace.metadata.name_space = "";
    s_.trace.spec = {};
    s_.trace.spec.kernel.tracepoints = {{.name = "irq_handler_entry"}};
  }
};

TEST_F(ClusterLife, HasASessionOnEveryNodeWhateverItsPods) {
  const Plan plan = Step();
  ASSERT_EQ(plan.apply.size(), 2u);
  EXPECT_EQ(plan.apply[0].metadata.name_space, "weft");
  EXPECT_EQ(plan.apply[0].metadata.name, api::SessionName("t", "n1", true));
  EXPECT_TRUE(plan.apply[0].spec.cluster_wide);
  EXPECT_EQ(ReadyReason(), "WaitingForNodes");
  Say(0, "Ready");
  Say(1, "Ready");
  EXPECT_EQ(Reasons(Step()), "Recording ");
  EXPECT_EQ(s_.trace.status.folder, "weft/t/" + s_.trace.metadata.uid);
  s_.trace.metadata.deletion_timestamp = kube::FormatTime(s_.now);
  EXPECT_EQ(Step().apply.at(1).spec.state, api::SessionState::kDraining);
  Say(0, "Drained");
  Say(1, "Drained");
  EXPECT_TRUE(MakePlan(s_).remove_finalizer);
}

TEST_F(ClusterLife, FollowsSelectedNodes) {
  s_.trace.spec.nodes.selector.match_labels["kubernetes.io/hostname"] = "n1";
  EXPECT_EQ(Step().apply.at(0).spec.node_name, "n1");
  EXPECT_EQ(s_.sessions.at(0).spec.record.nodes, api::NodeSelection{});
  Say(0, "Ready");
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kRecording);
  // The other one instead.
  s_.nodes.at("n1").labels = {};
  s_.nodes.at("n2").labels["kubernetes.io/hostname"] = "n1";
  EXPECT_EQ(Step().apply.size(), 2u);
  EXPECT_EQ(s_.sessions.at(0).spec.state, api::SessionState::kDraining);
  Say(1, "Ready");
  Step();
  EXPECT_EQ(s_.trace.status.phase, Phase::kRecording);
  Say(0, "Drained");
  const Plan gone = MakePlan(s_);
  EXPECT_EQ(gone.remove, std::vector<std::string>{s_.sessions.at(0).metadata.name});
}

TEST_F(ClusterLife, ReportsThatNoNodeIsSelected) {
  s_.trace.spec.nodes.selector.match_labels["zone"] = "nowhere";
  EXPECT_EQ(Reasons(Step()), "NoNodes ");
  EXPECT_EQ(s_.trace.status.phase, Phase::kPending);
}

}  // namespace
}  // namespace weft::controller
