// SPDX-License-Identifier: Apache-2.0
// A Trace with pods, nodes and agents around it, for tests of plans.
#ifndef WEFT_CONTROLLER_RECONCILE_PLAN_FIXTURE_H_
#define WEFT_CONTROLLER_RECONCILE_PLAN_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "controller/reconcile/plan.h"

namespace weft::controller {

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
    s_.name_space.is_known = true;
    s_.name_space.wants_library = true;
    s_.nodes = {{"n1", {.labels = {{"kubernetes.io/hostname", "n1"}}}}, {"n2", {}}};
    s_.own_namespace = "weft";
    s_.relay = {.name = "weft-relay-0", .control = "r:1", .data = "r:2"};
    s_.now = kube::WallTime{std::chrono::seconds(1'800'000'000)};
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

inline std::string Reasons(const Plan& plan) {
  std::string out;
  for (const Note& note : plan.notes) out += note.reason + " ";
  return out;
}

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_RECONCILE_PLAN_FIXTURE_H_
