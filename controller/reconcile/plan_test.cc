// SPDX-License-Identifier: Apache-2.0
// The life of a Trace as the controller plans it: each test plays pods, nodes and agents around it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/reconcile/plan.h"
#include "controller/reconcile/plan_fixture.h"
#include "lib/api/limits.h"

namespace weft::controller {
namespace {

using api::Phase;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

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
  s_.now += kRestartAge;
  s_.trace.spec.pods.containers = {"typo"};
  EXPECT_TRUE(MakePlan(s_).evict.empty()) << "that does not help";
  s_.trace.spec.pods.containers.clear();
  EXPECT_FALSE(MakePlan(s_).evict.empty());
  s_.served_namespaces.match_expressions = {{.key = "team", .op = api::SelectorOperator::kExists}};
  EXPECT_TRUE(MakePlan(s_).evict.empty()) << "the webhook does not look at the namespace";
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

TEST_F(Life, ATraceThatIsOneTooManyIsLookedAtAgain) {
  AddPod("a", "n1");
  s_.problem = "the namespace has as many Traces as it may have";
  s_.problem_reason = kTooManyTraces;
  const Plan plan = Step();
  EXPECT_TRUE(plan.apply.empty());
  EXPECT_EQ(Reasons(plan), "TooManyTraces ");
  EXPECT_EQ(plan.again, s_.now + kTooManyAgain);
  s_.problem.clear();
  s_.problem_reason = Situation().problem_reason;
  EXPECT_EQ(Step().apply.size(), 1u);
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

// The status is written before the session is removed, and the controller may end between them.
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
