// SPDX-License-Identifier: Apache-2.0
// TraceSessions: what is written is read back, what is wrong is refused with its place, and the CRD
// in the repository is the one made from the table.
#include "lib/api/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "lib/api/crd.h"
#include "lib/api/document.h"
#include "lib/api/testing.h"

namespace weft::api {
namespace {

using testing::HasSubstr;

TraceSession Example() {
  TraceSession session;
  session.metadata.name = SessionName("slow-orders", "node-1");
  session.metadata.name_space = "shop";
  session.spec = {.node_name = "node-1",
                  .trace_name = "slow-orders",
                  .trace_uid = "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10",
                  .trace_generation = 3,
                  .relay = {.name = "weft-relay-0",
                            .control = "weft-relay-0.weft-relay.weft.svc:4460",
                            .data = "[fd00::1]:4461"},
                  .deadline = "2026-01-02T03:04:05Z"};
  session.spec.record.user.events = {{.name = "shop:*"}};
  session.spec.record.pods.selector.match_labels["app"] = "shop";
  session.status.observed_generation = 1;
  session.status.phase = Phase::kRecording;
  session.status.conditions = {{.type = "Ready",
                                .status = ConditionStatus::kTrue,
                                .last_transition_time = "2026-01-02T03:04:05Z",
                                .reason = "Recording"}};
  session.status.pods = {.matched = 2, .traced = 1, .skipped = {{.reason = "Static", .count = 1}}};
  session.status.events.delivered = 7;
  return session;
}

TEST(Session, IsReadBackAsItWasWritten) {
  const auto again = ParseSession(ToJson(Example()));
  ASSERT_TRUE(again.has_value()) << ToString(again.error());
  EXPECT_EQ(*again, Example());
}

TEST(Session, TheStatusAloneIsAPatch) {
  SessionStatus status;
  status.phase = Phase::kDraining;
  EXPECT_EQ(StatusToJson(status), R"({"status":{"phase":"Draining"}})");
}

TEST(Session, OfAnotherWeftIsForeign) {
  TraceSession session = Example();
  session.spec.relay.data = "weft-relay-0.weft-relay.weft.svc:4461";
  EXPECT_EQ(WhyForeign(session, "weft"), "");
  EXPECT_THAT(WhyForeign(session, "weft-system"), HasSubstr("is no relay of this weft"));
  for (const char* foreign :
       {"relay.shop.svc:4461", "10.0.0.1:4461", "[fd00::1]:4461", ".weft-relay.weft.svc:4461",
        "a.b.weft-relay.weft.svc:4461", "weft-relay-0.weft-relay.weft.svc.example.org:4461",
        "weft-relay.weft.svc:4461", ""}) {
    session.spec.relay.data = foreign;
    EXPECT_THAT(WhyForeign(session, "weft"), HasSubstr("is no relay of this weft")) << foreign;
    std::swap(session.spec.relay.control, session.spec.relay.data);
    EXPECT_THAT(WhyForeign(session, "weft"), HasSubstr("is no relay of this weft")) << foreign;
    std::swap(session.spec.relay.control, session.spec.relay.data);
  }
}

TEST(Session, RecordsWholeNodesInWeftsOwnNamespaceOnly) {
  TraceSession session = Example();
  session.spec.relay.data = session.spec.relay.control;
  session.spec.cluster_wide = true;
  EXPECT_THAT(WhyForeign(session, "weft"), HasSubstr("spec.clusterWide"));
  session.metadata.name_space = "weft";
  EXPECT_EQ(WhyForeign(session, "weft"), "");
}

std::string Refusal(TraceSession session) {
  const auto read = ParseSession(ToJson(session));
  return read ? "" : ToString(read.error());
}

TEST(Session, RefusesMistakesWithTheirPlace) {
  TraceSession session = Example();
  session.spec.trace_uid = "not-a-uuid";
  EXPECT_THAT(Refusal(session), HasSubstr("spec.traceUid"));
  session = Example();
  session.spec.relay.data = "host";
  EXPECT_THAT(Refusal(session), HasSubstr("spec.relay.data"));
  session = Example();
  session.spec.record.user.events[0].name = "no pattern";
  EXPECT_THAT(Refusal(session), HasSubstr("spec.record.user.events[0].name"));
  EXPECT_FALSE(ParseSession(R"({"apiVersion":"weft.dev/v1alpha1","kind":"Trace"})").has_value());
  EXPECT_FALSE(ParseSession("[]").has_value());
  EXPECT_FALSE(ParseSession("").has_value());
}

TEST(Session, NameJoinsTraceAndNode) {
  EXPECT_EQ(SessionName("t", ""), "t-cbf29ce484222325");  // FNV-1a's offset basis
  EXPECT_NE(SessionName("t", "a"), SessionName("t", "b"));
  EXPECT_NE(SessionName("t", "a"), SessionName("t", "a", true));
  EXPECT_EQ(SessionName(std::string(63, 't'), std::string(253, 'n')).size(), 80u);
}

TEST(Session, ConditionsAreFoundByType) {
  const auto conditions = Example().status.conditions;
  EXPECT_TRUE(IsTrue(conditions, kConditionReady));
  EXPECT_FALSE(IsTrue(conditions, kConditionDrained));
  EXPECT_EQ(FindCondition(conditions, kConditionDrained), nullptr);
}

TEST(SessionCrd, CommittedFileMatchesTheTable) {
  ExpectCommitted("charts/weft/definitions/tracesession.yaml", SessionCrdYaml());
  ExpectCommittedReference("docs/formats/tracesession.md", SessionReference());
}

TEST(SessionCrd, NodeNameSelectsAndNeverChanges) {
  const Documents crd = ReadYaml(SessionCrdYaml());
  ASSERT_TRUE(crd.has_value());
  const Value& version = crd->front().Find("spec")->Find("versions")->list.at(0);
  EXPECT_EQ(version.Find("selectableFields")->list.at(0).Find("jsonPath")->text, ".spec.nodeName");
  const Value* spec =
      version.Find("schema")->Find("openAPIV3Schema")->Find("properties")->Find("spec");
  EXPECT_EQ(spec->Find("x-kubernetes-validations")->list.at(0).Find("rule")->text,
            "self.nodeName == oldSelf.nodeName");
}

}  // namespace
}  // namespace weft::api
