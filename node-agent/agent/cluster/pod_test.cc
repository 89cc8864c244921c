// SPDX-License-Identifier: Apache-2.0
// What the agent takes from a pod as the API server has it.
#include "node-agent/agent/cluster/pod.h"

#include <gtest/gtest.h>

namespace weft::agent {
namespace {

using kube::Json;

const Json kMount = {{"name", "weft"}, {"mountPath", "/weft"}};

Json Pod() {
  return {{"metadata",
           {{"uid", "u"}, {"namespace", "shop"}, {"name", "p"}, {"labels", {{"app", "shop"}}}}},
          {"spec",
           {{"volumes", {{{"name", "weft"}, {"configMap", {{"name", "weft-lib-0a1b"}}}}}},
            {"containers",
             {{{"name", "main"}, {"volumeMounts", {kMount}}},
              {{"name", "proxy"}},
              {{"name", "other"},
               {"volumeMounts", {{{"name", "weft"}, {"mountPath", "/elsewhere"}}}}}}},
            {"initContainers", {{{"name", "first"}, {"volumeMounts", {kMount}}}}}}},
          {"status",
           {{"phase", "Running"},
            {"containerStatuses",
             {{{"name", "main"}, {"containerID", "containerd://aa"}},
              {{"name", "proxy"}, {"containerID", ""}}}},
            {"initContainerStatuses", {{{"name", "first"}, {"containerID", "cri-o://bb"}}}}}}};
}

TEST(ReadPod, ContainersWithTheLibraryAndTheirIds) {
  const PodFacts facts = ReadPod(Pod());
  EXPECT_EQ(facts.uid, "u");
  EXPECT_EQ(facts.name_space, "shop");
  EXPECT_EQ(facts.name, "p");
  EXPECT_EQ(facts.labels.at("app"), "shop");
  EXPECT_EQ(facts.containers, (std::vector<std::string>{"main", "first"}));
  EXPECT_EQ(facts.ids, (std::map<std::string, std::string>{{"aa", "main"}, {"bb", "first"}}));
  EXPECT_FALSE(facts.is_over);
  EXPECT_EQ(ContainerKey(facts.uid, "main"), "u/main");
}

TEST(ReadPod, ContainersWithoutTheLibraryMayBeAttachedToUnlessTheyArePartsOfTheNode) {
  using Bare = std::map<std::string, std::string>;
  Json pod = Pod();
  EXPECT_EQ(ReadPod(pod).bare, (Bare{{"other", ""}, {"proxy", ""}}));
  pod["spec"]["containers"][1]["securityContext"]["privileged"] = true;
  EXPECT_EQ(ReadPod(pod).bare, (Bare{{"other", ""}, {"proxy", "it is privileged"}}));
  pod["spec"]["hostPID"] = true;
  for (const auto& [name, why] : ReadPod(pod).bare)
    EXPECT_EQ(why, "its pod has the node's process ids (hostPID)");
  pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "hash";
  for (const auto& [name, why] : ReadPod(pod).bare)
    EXPECT_TRUE(why.starts_with("its pod is static"));
  pod["metadata"]["labels"]["weft.dev/inject"] = "disabled";
  for (const auto& [name, why] : ReadPod(pod).bare)
    EXPECT_EQ(why, "its pod has the label weft.dev/inject: disabled");
}

TEST(ReadPod, ContainersThatRunNow) {
  Json pod = Pod();
  EXPECT_TRUE(ReadPod(pod).running.empty());
  Json& statuses = pod["status"]["containerStatuses"];
  statuses[0]["state"]["running"]["startedAt"] = "2026-11-28T10:00:00Z";
  EXPECT_EQ(ReadPod(pod).running, std::set<std::string>{"main"});
  statuses[0]["state"] = {{"waiting", {{"reason", "CrashLoopBackOff"}}}};
  EXPECT_TRUE(ReadPod(pod).running.empty());
}

TEST(ReadPod, AVolumeOfThatNameAloneIsNotOurs) {
  Json pod = Pod();
  pod["spec"]["volumes"][0]["configMap"]["name"] = "settings";
  EXPECT_TRUE(ReadPod(pod).containers.empty());
  pod["spec"]["volumes"][0] = {{"name", "weft"}, {"emptyDir", Json::object()}};
  EXPECT_TRUE(ReadPod(pod).containers.empty());
}

TEST(ReadPod, IsOverWhenAllOfItEnded) {
  Json pod = Pod();
  for (const char* phase : {"Succeeded", "Failed"}) {
    pod["status"]["phase"] = phase;
    EXPECT_TRUE(ReadPod(pod).is_over);
  }
}

TEST(ReadPod, TakesAnyJson) {
  EXPECT_EQ(ReadPod(Json::object()), PodFacts());
  Json pod = Pod();
  pod["spec"]["containers"] = "none";
  pod["spec"]["initContainers"] = Json::array({1, nullptr, Json::array()});
  pod["status"]["containerStatuses"] = {{"name", "main"}};
  pod["status"]["initContainerStatuses"] = Json::array({{{"containerID", 7}}});
  const PodFacts facts = ReadPod(pod);
  EXPECT_TRUE(facts.containers.empty());
  EXPECT_TRUE(facts.ids.empty());
}

TEST(ReadPod, AnEphemeralContainerChangesNothing) {
  Json pod = Pod();
  pod["spec"]["ephemeralContainers"] = {{{"name", "debugger"}, {"targetContainerName", "main"}}};
  pod["status"]["ephemeralContainerStatuses"] = {
      {{"name", "debugger"},
       {"containerID", "containerd://cc"},
       {"state", {{"waiting", {{"reason", "ImagePullBackOff"}}}}}}};
  EXPECT_EQ(ReadPod(pod), ReadPod(Pod()));
}

TEST(ReadPod, WhyAContainerWaits) {
  Json pod = Pod();
  EXPECT_EQ(ReadPod(pod).waiting, "");
  pod["status"]["containerStatuses"][1]["state"] = {{"waiting", {{"reason", "ImagePullBackOff"}}}};
  EXPECT_EQ(ReadPod(pod).waiting, "ImagePullBackOff");
}

TEST(Pod, ReadsQuantities) {
  EXPECT_EQ(ReadQuantity("16Mi"), uint64_t{16} << 20);
  EXPECT_EQ(ReadQuantity("1.5Gi"), uint64_t{3} << 29);
  EXPECT_EQ(ReadQuantity("128974848"), 128974848U);
  EXPECT_EQ(ReadQuantity("129M"), 129'000'000U);
  EXPECT_EQ(ReadQuantity("129e6"), 129'000'000U);
  EXPECT_EQ(ReadQuantity("128974848000m"), 128974848U);
  EXPECT_EQ(ReadQuantity("2Ki"), 2048U);
  EXPECT_EQ(ReadQuantity("2k"), 2000U);
  for (const char* none : {"", "Mi", "-1", "1Xi", "1Mib", "nan", "1e300"})
    EXPECT_EQ(ReadQuantity(none), 0U) << none;
}

}  // namespace
}  // namespace weft::agent
