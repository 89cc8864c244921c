// SPDX-License-Identifier: Apache-2.0
// From plans to requests: their order, and what is not written. The real API server is in
// tests/cluster/control_test.py.
#include "controller/reconcile/reconciler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/kube/testing_transport.h"

namespace weft::controller {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

const ObjectKey kTrace = {"shop", "t"};
constexpr const char* kUid = "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";

Json Trace() {
  return {{"apiVersion", "weft.dev/v1alpha1"},
          {"kind", "Trace"},
          {"metadata",
           {{"name", "t"},
            {"namespace", "shop"},
            {"uid", kUid},
            {"generation", 1},
            {"resourceVersion", "5"}}},
          {"spec",
           {{"pods", {{"selector", {{"matchLabels", {{"app", "shop"}}}}}}},
            {"user", {{"events", {{{"name", "shop:*"}}}}}}}}};
}

class Reconciling : public testing::Test {
 protected:
  Reconciling()
      : cache_(queue_),
        client_(MakeTransport(), "weft-controller"),
        reconciler_(client_, cache_, {.name = "r", .control = "r:1", .data = "r:2"}, "weft",
                    "pod") {
    cache_.Replace(ObjectCache::kNodes, {{{"metadata", {{"name", "n1"}}}}});
    cache_.Replace(
        ObjectCache::kPods,
        {{{"metadata", {{"name", "p"}, {"namespace", "shop"}, {"labels", {{"app", "shop"}}}}},
          {"spec",
           {{"nodeName", "n1"},
            {"volumes", {{{"name", "weft"}, {"configMap", {{"name", "weft-lib-1"}}}}}}}}}});
    cache_.Replace(ObjectCache::kTraces, {Trace()});
  }

  std::unique_ptr<kube::Transport> MakeTransport() {
    auto transport =
        std::make_unique<kube::testing::TestTransport>([this](const kube::HttpRequest& request) {
          if (request.target.starts_with(refused_) && !refused_.empty())
            return kube::testing::Reply(refusal_, {{"message", "no"}});
          Json answer = request.method == "GET" ? pod_ : Json::object();
          if (version_ != 0) answer["metadata"]["resourceVersion"] = std::to_string(version_++);
          return kube::testing::Reply(200, answer);
        });
    api_ = transport.get();
    return transport;
  }

  // Runs Reconcile once more and returns its requests as "METHOD path".
  std::vector<std::string> Requests() {
    const size_t before = api_->requests().size();
    result_ = reconciler_.Reconcile(kTrace);
    std::vector<std::string> out;
    const auto all = api_->requests();
    for (size_t i = before; i < all.size(); ++i) {
      std::string path = all[i].target.substr(0, all[i].target.find('?'));
      constexpr std::string_view kGroup = "/apis/weft.dev/v1alpha1/namespaces/shop/";
      if (path.starts_with(kGroup)) path = path.substr(kGroup.size());
      out.push_back(all[i].method + " " + path);
    }
    return out;
  }

  // The session as the API server has it after what was applied, with an agent's status.
  void AgentSays(const char* condition, int recorded, const char* deleted = "") {
    Json session;
    for (const kube::HttpRequest& request : api_->requests()) {
      if (request.target.contains("/tracesessions/")) session = Json::parse(request.body);
    }
    session["metadata"]["namespace"] = "shop";
    session["metadata"]["generation"] = 1;
    session["metadata"]["uid"] = "s";
    if (*deleted != 0) session["metadata"]["deletionTimestamp"] = deleted;
    session["status"] = {{"observedGeneration", 1},
                         {"phase", "Recording"},
                         {"pods", {{"matched", 1}, {"traced", 1}}},
                         {"events", {{"recorded", recorded}, {"delivered", recorded}}},
                         {"conditions",
                          {{{"type", condition},
                            {"status", "True"},
                            {"reason", "x"},
                            {"message", ""},
                            {"lastTransitionTime", "2026-11-21T10:00:00Z"}}}}};
    cache_.Replace(ObjectCache::kSessions, {session});
  }

  Json pod_ = Json::object();  // as the API server has it
  std::string refused_;
  int refusal_ = 500;
  int version_ = 0;  // of the next answer; 0: it has none
  WorkQueue queue_;
  ObjectCache cache_;
  kube::testing::TestTransport* api_ = nullptr;
  kube::Client client_;
  Reconciler reconciler_;
  Result<std::optional<std::chrono::milliseconds>> result_;
};

const std::string kSession = "PATCH tracesessions/" + api::SessionName("t", "n1");
const std::string kStatus = "PATCH traces/t/status";
const std::string kEvent = "POST /apis/events.k8s.io/v1/namespaces/shop/events";

TEST_F(Reconciling, TheFinalizerIsThereBeforeAnySession) {
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kSession, kStatus));
  EXPECT_TRUE(result_);
}

TEST_F(Reconciling, ATraceThatIsOneTooManyGetsNoSession) {
  Json older = Trace();
  older["metadata"]["name"] = "older";
  older["metadata"]["uid"] = "0e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";
  Reconciler bounded(client_, cache_, {.name = "r", .control = "r:1", .data = "r:2"}, "weft", "pod",
                     false, {}, /*traces_per_namespace=*/1);
  const auto reason = [&] {
    EXPECT_TRUE(bounded.Reconcile(kTrace));
    const Json said = Json::parse(api_->requests().back().body);
    return said.value("reason", "");
  };
  cache_.Replace(ObjectCache::kTraces, {older, Trace()});
  EXPECT_EQ(reason(), "TooManyTraces");
  for (const kube::HttpRequest& request : api_->requests())
    EXPECT_FALSE(request.target.contains("/tracesessions/")) << request.target;
  cache_.Replace(ObjectCache::kTraces, {Trace()});
  EXPECT_THAT(Requests(), Contains(kSession));
}

TEST_F(Reconciling, ATraceThatRecordsIsNotOneTooMany) {
  EXPECT_THAT(Requests(), Contains(kSession));
  AgentSays("Ready", 5);
  Json older = Trace();
  older["metadata"]["name"] = "older";
  older["metadata"]["uid"] = "0e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";
  cache_.Replace(ObjectCache::kTraces, {older, Trace()});
  Reconciler bounded(client_, cache_, {.name = "r", .control = "r:1", .data = "r:2"}, "weft", "pod",
                     false, {}, /*traces_per_namespace=*/1);
  EXPECT_TRUE(bounded.Reconcile(kTrace));
  for (const kube::HttpRequest& request : api_->requests())
    EXPECT_FALSE(request.body.contains("TooManyTraces")) << request.body;
}

TEST_F(Reconciling, ResumesAfterAFailureHalfWay) {
  refused_ = "/apis/weft.dev/v1alpha1/namespaces/shop/tracesessions/";
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kSession));
  EXPECT_FALSE(result_);
  refused_.clear();
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kSession, kStatus));
  EXPECT_TRUE(result_);
}

TEST_F(Reconciling, AcceptsTraceDeletedMeanwhile) {
  refused_ = "/apis/weft.dev/v1alpha1/namespaces/shop/traces/";
  refusal_ = 404;
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t"));
  ASSERT_TRUE(result_);
  EXPECT_EQ(*result_, std::nullopt);
  cache_.Replace(ObjectCache::kTraces, {});
  EXPECT_THAT(Requests(), IsEmpty());
  EXPECT_TRUE(result_);
}

TEST_F(Reconciling, CountsAloneWaitForTheirInterval) {
  Requests();
  Json trace = Trace();
  trace["metadata"]["finalizers"] = {kFinalizer};
  cache_.Replace(ObjectCache::kTraces, {trace});
  AgentSays("Ready", 0);
  EXPECT_THAT(Requests(), ElementsAre(kStatus, kEvent));
  AgentSays("Ready", 100);
  EXPECT_THAT(Requests(), ElementsAre(kStatus)) << "the first events are a condition, too";
  AgentSays("Ready", 200);
  EXPECT_THAT(Requests(), IsEmpty());
  ASSERT_TRUE(result_ && *result_) << "it is to be looked at again";
  EXPECT_LE(**result_, std::chrono::seconds(4))
      << "those of agents are 5 s old, and 10 s is promised";
}

// A pod without the library that the Trace asks to be evicted.
Json OldPod() {
  return {{"metadata",
           {{"name", "old"},
            {"namespace", "shop"},
            {"labels", {{"app", "shop"}}},
            {"creationTimestamp", "2026-11-21T09:00:00Z"},
            {"ownerReferences", {{{"kind", "StatefulSet"}, {"name", "shop"}}}}}},
          {"spec", {{"nodeName", "n1"}}},
          {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
}

void RestartMissed(ObjectCache& cache) {
  Json trace = Trace();
  trace["metadata"]["annotations"] = {{"weft.dev/restart-missed", "true"}};
  trace["metadata"]["creationTimestamp"] = "2026-11-21T10:00:00Z";
  cache.Replace(ObjectCache::kTraces, {trace});
  cache.Replace(ObjectCache::kNamespaces,
                {{{"metadata", {{"name", "shop"}, {"labels", {{"weft.dev/inject", "enabled"}}}}}}});
  cache.Replace(ObjectCache::kPods, {OldPod()});
}

const std::string kLook = "GET /api/v1/namespaces/shop/pods/old";
const std::string kEviction = "POST /api/v1/namespaces/shop/pods/old/eviction";

TEST_F(Reconciling, PostsItsEventsWhereRbacForbidsTheEviction) {
  RestartMissed(cache_);
  refused_ = "/api/v1/namespaces/shop/pods/old/eviction";
  refusal_ = 403;
  EXPECT_THAT(Requests(),
              ElementsAre("PATCH traces/t", kSession, kStatus, kLook, kEviction, kEvent))
      << "NothingTraced";
  ASSERT_FALSE(result_);
  EXPECT_EQ(result_.error().code, ErrorCode::kPermission);
}

TEST_F(Reconciling, EvictsAPodAndSaysSoOnce) {
  Json old = OldPod();
  RestartMissed(cache_);
  refused_ = "/api/v1/namespaces/shop/pods/old/eviction";
  refusal_ = 429;
  EXPECT_THAT(Requests(),
              ElementsAre("PATCH traces/t", kSession, kStatus, kLook, kEviction, kEvent))
      << "NothingTraced";
  ASSERT_TRUE(result_ && *result_) << "a PodDisruptionBudget may allow it later";
  EXPECT_LE(**result_, kEvictAgain);
  refused_.clear();
  pod_["metadata"]["uid"] = "o";
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kSession, kLook, kEviction, kEvent));
  const auto requests = api_->requests();
  EXPECT_EQ(
      Json::parse(requests[requests.size() - 2].body)["deleteOptions"]["preconditions"]["uid"],
      "o");
  old["metadata"]["deletionTimestamp"] = "2026-11-27T10:00:00Z";
  pod_ = old;
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kSession, kLook)) << "the informer lags";
  cache_.Replace(ObjectCache::kPods, {old});
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kSession));
}

// A status that lacks a session's counts must not be the last one of that session.
TEST_F(Reconciling, RemovesASessionAfterItsCountsAreWritten) {
  Requests();
  Json trace = Trace();
  trace["metadata"]["finalizers"] = {kFinalizer};
  cache_.Replace(ObjectCache::kTraces, {trace});
  AgentSays("Ready", 100);
  cache_.Replace(ObjectCache::kNodes, {});
  refused_ = "/apis/weft.dev/v1alpha1/namespaces/shop/traces/t/status";
  refusal_ = 409;
  EXPECT_THAT(Requests(), ElementsAre(kStatus));
  EXPECT_FALSE(result_) << "another controller wrote: plan again";
  refused_.clear();
  const std::string remove = "DELETE" + kSession.substr(kSession.find(' '));
  EXPECT_THAT(Requests(), ElementsAre(kStatus, kSession, remove, kEvent, "PATCH traces/t"));
  const auto requests = api_->requests();
  const Json status = Json::parse(requests[requests.size() - 5].body);
  EXPECT_EQ(status["metadata"]["resourceVersion"], "5");
  EXPECT_EQ(status["status"]["events"]["recorded"], 100);
  EXPECT_EQ(status["status"]["removedSessions"]["uids"], Json::array({"s"}));
  const Json released = Json::parse(requests[requests.size() - 4].body);
  EXPECT_EQ(released["metadata"]["uid"], "s");
  EXPECT_EQ(released["metadata"]["finalizers"], Json::array());
}

// The informer lags behind what was written, and then shows what someone else wrote.
TEST_F(Reconciling, GoesOnFromTheNewestStatus) {
  version_ = 6;
  Requests();
  const auto last_version = [&] {
    return Json::parse(api_->requests().back().body)["metadata"]["resourceVersion"];
  };
  EXPECT_EQ(last_version(), "6") << "the status was written after the finalizer";
  AgentSays("Ready", 100);
  EXPECT_THAT(Requests(), ElementsAre("PATCH traces/t", kStatus, kEvent));
  Json trace = Trace();
  trace["metadata"]["finalizers"] = {kFinalizer};
  trace["metadata"]["resourceVersion"] = "100";
  trace["status"] = {{"phase", "Recording"},
                     {"removedSessions", {{"events", {{"recorded", 1000}}}, {"uids", {"other"}}}}};
  cache_.Replace(ObjectCache::kTraces, {trace});
  EXPECT_THAT(Requests(), ElementsAre(kStatus, kEvent));
  const auto requests = api_->requests();
  const Json status = Json::parse(requests[requests.size() - 2].body);
  EXPECT_EQ(status["metadata"]["resourceVersion"], "100");
  EXPECT_EQ(status["status"]["events"]["recorded"], 1100);
}

TEST_F(Reconciling, LetsADeletedSessionGoWhoseTraceIsGone) {
  Requests();
  AgentSays("Ready", 1, "2026-11-21T10:00:00Z");
  cache_.Replace(ObjectCache::kTraces, {});
  const std::string remove = "DELETE" + kSession.substr(kSession.find(' '));
  EXPECT_THAT(Requests(), ElementsAre(kSession, remove));
}

TEST_F(Reconciling, RemovesFinalizerLast) {
  Requests();
  Json trace = Trace();
  trace["metadata"]["finalizers"] = {"other", kFinalizer};
  trace["metadata"]["deletionTimestamp"] = kube::FormatTime(std::chrono::system_clock::now());
  cache_.Replace(ObjectCache::kTraces, {trace});
  AgentSays("Ready", 1);
  EXPECT_THAT(Requests(), ElementsAre(kSession, kStatus));
  AgentSays("Drained", 1);
  EXPECT_THAT(Requests(), ElementsAre(kStatus, kEvent, "PATCH traces/t"));
  EXPECT_EQ(Json::parse(api_->requests().back().body)["metadata"]["finalizers"],
            Json::array({"other"}));
}

}  // namespace
}  // namespace weft::controller
