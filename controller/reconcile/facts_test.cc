// SPDX-License-Identifier: Apache-2.0
// What the controller takes from objects of Kubernetes.
#include "controller/reconcile/facts.h"

#include <gtest/gtest.h>

namespace weft::controller {
namespace {

TEST(Facts, OfAPod) {
  const PodFacts pod = ReadPod(Json::parse(R"({
    "metadata":{"name":"shop-7d9f-x","labels":{"app":"shop","pod-template-hash":"7d9f",
      "weft.dev/inject":"enabled"},
      "ownerReferences":[{"kind":"ReplicaSet","name":"shop-7d9f"}]},
    "spec":{"nodeName":"n1","volumes":[{"name":"weft","configMap":{"name":"weft-lib-01"}}],
      "containers":[{"name":"main","volumeMounts":[{"name":"weft","mountPath":"/weft"}]},
        {"name":"side","volumeMounts":[{"name":"weft","mountPath":"/elsewhere"}]}],
      "initContainers":[{"name":"first"}, 7],"ephemeralContainers":[{"name":"debugger"}]},
    "status":{"phase":"Running"}})"));
  EXPECT_EQ(pod.name, "shop-7d9f-x");
  EXPECT_EQ(pod.node, "n1");
  EXPECT_EQ(pod.restart, "deployment/shop");
  EXPECT_TRUE(pod.has_library);
  EXPECT_EQ(pod.containers,
            (std::map<std::string, bool>{{"first", false}, {"main", true}, {"side", false}}));
  EXPECT_EQ(pod.ephemeral, std::set<std::string>{"debugger"});
  EXPECT_TRUE(pod.wants_library);
  EXPECT_FALSE(pod.is_over);
  EXPECT_TRUE(ReadPod(Json::parse(R"({"status":{"phase":"Failed"}})")).is_over);
  EXPECT_FALSE(ReadPod(Json()).has_library);
}

TEST(Facts, ANamespacesLabelAsksForTheLibraryOrRefusesIt) {
  const auto read = [](const char* wish) {
    return ReadNamespace({{"metadata", {{"labels", {{"weft.dev/inject", wish}}}}}});
  };
  EXPECT_EQ(read("enabled").labels.at("weft.dev/inject"), "enabled");
  EXPECT_TRUE(read("enabled").wants_library);
  EXPECT_FALSE(read("enabled").refuses_library);
  EXPECT_TRUE(read("disabled").refuses_library);
  EXPECT_FALSE(read("").refuses_library);
}

}  // namespace
}  // namespace weft::controller
