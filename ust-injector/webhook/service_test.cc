// SPDX-License-Identifier: Apache-2.0
// Requests and answers of the webhook, without the network.
#include "ust-injector/webhook/service.h"

#include <gtest/gtest.h>

#include "lib/kube/base64.h"
#include "ust-injector/webhook/cluster_view.h"
#include "ust-injector/webhook/notices.h"

namespace weft::webhook {
namespace {

class ServiceTest : public testing::Test {
 protected:
  static std::string Review(const std::string& name_space, const std::string& operation = "CREATE",
                            bool dry_run = false) {
    const Json review = {{"apiVersion", "admission.k8s.io/v1"},
                         {"kind", "AdmissionReview"},
                         {"request",
                          {{"uid", "u"},
                           {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
                           {"namespace", name_space},
                           {"operation", operation},
                           {"dryRun", dry_run},
                           {"object", Json::parse(R"({"metadata":{"name":"p"},
                                     "spec":{"containers":[{"name":"app"}]}})")}}}};
    return review.dump();
  }

  Json Response(const std::string& body) {
    const http::Response answer =
        service_.Answer({.method = "POST", .path = "/mutate", .body = body});
    EXPECT_EQ(answer.status, 200);
    return Json::parse(answer.body)["response"];
  }

  ClusterFacts facts_{.library = Library{"weft-lib-0", {"amd64"}}, .node_architectures = {"amd64"}};
  std::vector<std::string> notices_;
  metrics::Registry metrics_{metrics::Part::kWebhook};
  Service service_{"weft", [this](const std::string&) { return facts_; },
                   [this](const Json&, const std::string& name_space, const LeftAlone& left) {
                     notices_.push_back(name_space + " " + left.reason);
                   },
                   metrics_};
};

TEST_F(ServiceTest, APodIsPatched) {
  const Json response = Response(Review("shop"));
  EXPECT_EQ(response["allowed"], true);
  const auto patch = DecodeBase64(response["patch"].get<std::string>());
  ASSERT_TRUE(patch.has_value());
  EXPECT_EQ(Json::parse(*patch)[0]["path"], "/spec/volumes");
  EXPECT_TRUE(notices_.empty());
}

TEST_F(ServiceTest, WeftsOwnNamespaceAndTheSystemsAreNotTouched) {
  for (const char* name_space : {"weft", "kube-system"})
    EXPECT_FALSE(Response(Review(name_space)).contains("patch"));
}

TEST_F(ServiceTest, OnlyNewPodsAreChanged) {
  EXPECT_FALSE(Response(Review("shop", "UPDATE")).contains("patch"));
}

TEST_F(ServiceTest, AllowsAndReportsUnchangedPodsExceptInADryRun) {
  facts_.library.reset();
  EXPECT_FALSE(Response(Review("shop", "CREATE", /*dry_run=*/true)).contains("patch"));
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(Response(Review("shop"))["allowed"], true);
  EXPECT_EQ(notices_, std::vector<std::string>{"shop LibraryMissing"});
}

TEST_F(ServiceTest, RefusesBytesThatAreNoReview) {
  EXPECT_EQ(service_.Answer({.method = "POST", .path = "/mutate", .body = "x"}).status, 400);
  EXPECT_EQ(service_.Answer({.method = "GET", .path = "/mutate"}).status, 405);
  EXPECT_EQ(service_.Answer({.method = "POST", .path = "/"}).status, 404);
}

TEST(ClusterView, KnowsTheLibraryOfEachNamespace) {
  ClusterView view;
  EXPECT_FALSE(view.is_complete());
  const auto config_map = [](const std::string& name) {
    return Json{{"metadata", {{"name", name}, {"namespace", "shop"}}},
                {"binaryData", {{"libweft.so.amd64", "x"}, {"other", "y"}}}};
  };
  view.SetLibraries({config_map("weft-lib-0")});
  view.SetNodes(
      {Json::parse(R"({"metadata":{"name":"n"},"status":{"nodeInfo":{"architecture":"amd64"}}})")});
  EXPECT_TRUE(view.is_complete());
  const ClusterFacts facts = view.Facts("shop");
  ASSERT_TRUE(facts.library.has_value());
  EXPECT_EQ(facts.library->config_map, "weft-lib-0");
  EXPECT_EQ(facts.library->architectures, std::set<std::string>{"amd64"});
  EXPECT_EQ(facts.node_architectures, std::set<std::string>{"amd64"});
  EXPECT_FALSE(view.Facts("other").library.has_value());
  view.ChangeLibrary({kube::WatchType::kDeleted, config_map("weft-lib-0")});
  EXPECT_FALSE(view.Facts("shop").library.has_value());
  view.ChangeNode({kube::WatchType::kDeleted, Json::parse(R"({"metadata":{"name":"n"}})")});
  EXPECT_TRUE(view.Facts("shop").node_architectures.empty());
}

TEST(Regarding, IsTheOwnerOrThePod) {
  EXPECT_EQ(Regarding(Json::parse(R"({"metadata":{"generateName":"a-b-","ownerReferences":[
      {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"a-b","uid":"u"}]}})"),
                      "ns")
                .kind,
            "ReplicaSet");
  EXPECT_EQ(Regarding(Json::parse(R"({"metadata":{"name":"p"}})"), "ns").name, "p");
  EXPECT_EQ(Regarding(Json::parse(R"({"metadata":{"generateName":"p-"}})"), "ns").name, "p");
  EXPECT_EQ(Regarding(Json(), "ns").name, "");
}

}  // namespace
}  // namespace weft::webhook
