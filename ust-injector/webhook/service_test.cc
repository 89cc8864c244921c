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

  Json Response(const std::string& body, const std::string& path = "/mutate") {
    const http::Response answer = service_.Answer({.method = "POST", .path = path, .body = body});
    EXPECT_EQ(answer.status, 200);
    return Json::parse(answer.body)["response"];
  }

  ClusterFacts facts_{.library = Library{"weft-lib-0", {"amd64"}}, .node_architectures = {"amd64"}};
  std::vector<std::string> notices_;
  Result<std::size_t> traces_ = 0;
  metrics::Registry metrics_{metrics::Part::kWebhook};
  Service service_{"weft",
                   [this](const std::string&) { return facts_; },
                   [this](const Json&, const std::string& name_space, const LeftAlone& left) {
                     notices_.push_back(name_space + " " + left.reason);
                   },
                   metrics_,
                   [this](const std::string&) { return traces_; },
                   /*traces_per_namespace=*/2};
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

TEST_F(ServiceTest, ATraceIsAllowedUnchangedOrRefused) {
  Json review = Json::parse(Review("shop", "UPDATE"));
  review["request"]["kind"] = {{"group", "weft.dev"}, {"version", "v1alpha1"}, {"kind", "Trace"}};
  review["request"]["object"] = Json::parse(R"({"metadata":{"name":"t"},"spec":{"duration":10}})");
  const Json refused = Response(review.dump(), "/check");
  EXPECT_EQ(refused["allowed"], false);
  EXPECT_EQ(refused["status"]["details"]["causes"][0]["field"], "spec.duration");
  review["request"]["object"]["spec"] = Json::parse(R"({"user":{"events":[{"name":"a:*"}]}})");
  EXPECT_EQ(Response(review.dump(), "/check"), Json::parse(R"({"uid":"u","allowed":true})"));
}

TEST_F(ServiceTest, ANewTraceThatIsOneTooManyIsRefused) {
  Json review = Json::parse(Review("shop"));
  review["request"]["kind"] = {{"group", "weft.dev"}, {"version", "v1alpha1"}, {"kind", "Trace"}};
  review["request"]["object"] =
      Json::parse(R"({"metadata":{"name":"t"},"spec":{"user":{"events":[{"name":"a:*"}]}}})");
  const auto response = [&] { return Response(review.dump(), "/check"); };
  traces_ = 1;
  EXPECT_EQ(response()["allowed"], true);
  traces_ = 2;
  EXPECT_EQ(response()["status"]["code"], 403);
  EXPECT_EQ(response()["status"]["message"],
            "the namespace has as many Traces as it may have, 2, also counting those that are "
            "over: delete some, or ask an administrator for more (the chart's value "
            "traces.perNamespace)");
  traces_ = Fail(ErrorCode::kIo, "the API server is away");
  EXPECT_EQ(response()["allowed"], true);
  traces_ = 2;
  review["request"]["operation"] = "UPDATE";
  EXPECT_EQ(response()["allowed"], true);
}

TEST_F(ServiceTest, RefusesReviewsAtAnotherPath) {
  Json review = Json::parse(Review("shop"));
  const auto status = [&](const char* path) {
    return service_.Answer({.method = "POST", .path = path, .body = review.dump()}).status;
  };
  EXPECT_EQ(status("/check"), 400);
  review["request"]["kind"] = {{"group", "weft.dev"}, {"version", "v1alpha1"}, {"kind", "Trace"}};
  EXPECT_EQ(status("/mutate"), 400);
}

TEST_F(ServiceTest, RefusesBytesThatAreNoReview) {
  EXPECT_EQ(service_.Answer({.method = "POST", .path = "/mutate", .body = "x"}).status, 400);
  EXPECT_EQ(service_.Answer({.method = "GET", .path = "/mutate"}).status, 405);
  EXPECT_EQ(service_.Answer({.method = "POST", .path = "/"}).status, 404);
}

// Returns a ConfigMap of the namespace shop with this library, and the reference to it in weft's
// own.
Json ConfigMap(const std::string& bytes) {
  const kube::LibraryFiles files = {{"amd64", bytes}};
  return {{"metadata",
           {{"name", kube::LibraryName(*kube::LibraryDigest(files))},
            {"namespace", "shop"},
            {"labels", {{"weft.dev/library", "current"}}}}},
          {"immutable", true},
          {"binaryData", {{"libweft.so.amd64", EncodeBase64(bytes)}, {"other", "eA=="}}}};
}

Json Reference(const std::string& bytes) {
  const std::string digest = *kube::LibraryDigest({{"amd64", bytes}});
  return {{"metadata",
           {{"name", kube::LibraryName(digest)},
            {"namespace", "weft"},
            {"labels", {{"weft.dev/library", "reference"}}}}},
          {"data", {{"sha256", digest}}}};
}

std::string NameOf(const Json& object) { return object["metadata"]["name"]; }

TEST(ClusterView, KnowsTheLibraryOfEachNamespace) {
  ClusterView view("weft");
  EXPECT_FALSE(view.is_complete());
  view.SetLibraries({ConfigMap("x"), Reference("x")});
  view.SetNodes(
      {Json::parse(R"({"metadata":{"name":"n"},"status":{"nodeInfo":{"architecture":"amd64"}}})")});
  EXPECT_TRUE(view.is_complete());
  const ClusterFacts facts = view.Facts("shop");
  ASSERT_TRUE(facts.library.has_value());
  EXPECT_EQ(facts.library->config_map, NameOf(ConfigMap("x")));
  EXPECT_EQ(facts.library->architectures, std::set<std::string>{"amd64"});
  EXPECT_FALSE(facts.library->sets_preload) << "of an older version";
  EXPECT_EQ(facts.node_architectures, std::set<std::string>{"amd64"});
  EXPECT_FALSE(view.Facts("other").library.has_value());
  Json with_data = ConfigMap("x");
  with_data["data"] = kube::PreloadData();
  view.ChangeLibrary({kube::WatchType::kModified, with_data});
  EXPECT_TRUE(view.Facts("shop").library->sets_preload);
  view.ChangeLibrary({kube::WatchType::kDeleted, ConfigMap("x")});
  EXPECT_FALSE(view.Facts("shop").library.has_value());
  view.ChangeNode({kube::WatchType::kDeleted, Json::parse(R"({"metadata":{"name":"n"}})")});
  EXPECT_TRUE(view.Facts("shop").node_architectures.empty());
}

TEST(ClusterView, IsNotCompleteWithoutAReference) {
  ClusterView view("weft");
  view.SetNodes({});
  view.SetLibraries({ConfigMap("x")});
  EXPECT_FALSE(view.is_complete());
  EXPECT_FALSE(view.Facts("shop").library.has_value());
  view.ChangeLibrary({kube::WatchType::kAdded, Reference("x")});
  EXPECT_TRUE(view.is_complete());
  EXPECT_TRUE(view.Facts("shop").library.has_value());
}

// A name with the hash of its own content is not enough: any user can compute one.
TEST(ClusterView, TakesNoConfigMapOfAnotherDigest) {
  ClusterView view("weft");
  Json other_content = ConfigMap("x");
  other_content["binaryData"]["libweft.so.amd64"] = EncodeBase64("evil");
  Json may_change = ConfigMap("x");
  may_change["immutable"] = false;
  Json not_in_own_namespace = Reference("evil");
  not_in_own_namespace["metadata"]["namespace"] = "shop";
  Json not_labelled_so = Reference("evil");
  not_labelled_so["metadata"]["labels"]["weft.dev/library"] = "current";
  for (const Json& wrong : {other_content, may_change, ConfigMap("evil")}) {
    view.SetLibraries({wrong, Reference("x"), not_in_own_namespace, not_labelled_so});
    EXPECT_FALSE(view.Facts("shop").library.has_value()) << wrong;
    view.SetLibraries({Reference("x")});
    for (const Json& object : {wrong, not_in_own_namespace, not_labelled_so})
      view.ChangeLibrary({kube::WatchType::kAdded, object});
    EXPECT_FALSE(view.Facts("shop").library.has_value()) << wrong;
    EXPECT_FALSE(view.Facts("shop").untrusted.empty());
    view.ChangeLibrary({kube::WatchType::kModified, ConfigMap("x")});
    EXPECT_EQ(view.Facts("shop").library->config_map, NameOf(ConfigMap("x")));
  }
}

// The controller writes the new reference, then the new library, then labels the old one.
TEST(ClusterView, TakesEitherVersionDuringAnUpgrade) {
  ClusterView view("weft");
  view.SetLibraries({ConfigMap("old"), Reference("old")});
  view.ChangeLibrary({kube::WatchType::kAdded, Reference("new")});
  EXPECT_EQ(view.Facts("shop").library->config_map, NameOf(ConfigMap("old")));
  view.ChangeLibrary({kube::WatchType::kAdded, ConfigMap("new")});
  EXPECT_TRUE(view.Facts("shop").library.has_value());
  view.ChangeLibrary({kube::WatchType::kDeleted, ConfigMap("old")});
  EXPECT_EQ(view.Facts("shop").library->config_map, NameOf(ConfigMap("new")));
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
