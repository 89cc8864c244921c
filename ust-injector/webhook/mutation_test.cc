// SPDX-License-Identifier: Apache-2.0
// What becomes of a pod: every rule of the design, each patch applied to its pod, and applied
// again.
#include "ust-injector/webhook/mutation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::webhook {
namespace {

using testing::HasSubstr;

ClusterFacts Cluster() {
  return {.library = Library{"weft-lib-0123", {"amd64", "arm64"}}, .node_architectures = {"amd64"}};
}

Json Pod(const std::string& container) {
  return {{"metadata", {{"name", "p"}}},
          {"spec", {{"containers", Json::array({Json::parse(container)})}}}};
}

// Returns the pod with its patch; a second call must find nothing more to do.
Json Mutated(const Json& pod, const ClusterFacts& cluster = Cluster()) {
  const Mutation mutation = MutatePod(pod, cluster);
  Json out = pod.patch(mutation.patch);
  const Mutation again = MutatePod(out, cluster);
  EXPECT_EQ(again.patch, Json::array());
  EXPECT_EQ(again.containers, 0);
  return out;
}

Json EnvOf(const Json& pod) { return pod["spec"]["containers"][0]["env"]; }

std::string ReasonFor(const Json& pod, const ClusterFacts& cluster = Cluster()) {
  const Mutation mutation = MutatePod(pod, cluster);
  EXPECT_EQ(mutation.patch, Json::array());
  return mutation.left_alone.empty() ? "" : mutation.left_alone[0].reason;
}

const char* const kPlain = R"({"name":"app"})";

TEST(Mutation, APlainPodGetsVolumeMountAndVariables) {
  EXPECT_EQ(Mutated(Pod(kPlain))["spec"], Json::parse(R"({
    "volumes": [{"name": "weft", "configMap": {"name": "weft-lib-0123", "optional": true,
                 "items": [{"key": "libweft.so.amd64", "path": "libweft.so"}]}}],
    "containers": [{"name": "app",
      "volumeMounts": [{"name": "weft", "mountPath": "/weft", "readOnly": true}],
      "env": [{"name": "LD_PRELOAD", "value": "/weft/libweft.so"},
              {"name": "WEFT_CONTAINER", "value": "app"}]}]})"));
}

TEST(Mutation, KeepsThePodsOwnFields) {
  Json pod = Pod(R"({"name":"app","image":"i","env":[{"name":"A","value":"1"}],
                     "volumeMounts":[{"name":"v","mountPath":"/v"}]})");
  pod["spec"]["volumes"] = Json::parse(R"([{"name":"v","emptyDir":{}}])");
  const Json out = Mutated(pod);
  EXPECT_EQ(out["spec"]["volumes"][0], pod["spec"]["volumes"][0]);
  EXPECT_EQ(out["spec"]["volumes"].size(), 2u);
  EXPECT_EQ(EnvOf(out)[0], EnvOf(pod)[0]);
  EXPECT_EQ(EnvOf(out).size(), 3u);
  EXPECT_EQ(out["spec"]["containers"][0]["volumeMounts"].size(), 2u);
  EXPECT_EQ(out["spec"]["containers"][0]["image"], "i");
}

std::string PreloadOf(const std::string& env) {
  const Json out = Mutated(Pod(R"({"name":"app","env":[)" + env + "]}"));
  std::string value;
  for (const Json& variable : EnvOf(out)) {
    if (variable["name"] == "LD_PRELOAD") value = variable.value("value", "");
  }
  return value;
}

TEST(Preload, APlainValueIsAppendedTo) {
  EXPECT_EQ(PreloadOf(R"({"name":"LD_PRELOAD","value":"/a.so"})"), "/a.so:/weft/libweft.so");
  EXPECT_EQ(PreloadOf(R"({"name":"LD_PRELOAD","value":""})"), "/weft/libweft.so");
  EXPECT_EQ(PreloadOf(R"({"name":"LD_PRELOAD"})"), "/weft/libweft.so");
  EXPECT_EQ(PreloadOf(R"raw({"name":"X","value":"x"},{"name":"LD_PRELOAD","value":"$(X)"})raw"),
            "$(X):/weft/libweft.so");
}

TEST(Preload, AContainerWithTheLibraryKeepsItsValue) {
  for (const char* value : {"/weft/libweft.so", "/a.so:/weft/libweft.so", "/weft/libweft.so /b.so"})
    EXPECT_EQ(PreloadOf(R"({"name":"LD_PRELOAD","value":")" + std::string(value) + "\"}"), value);
  EXPECT_EQ(PreloadOf(R"({"name":"LD_PRELOAD","value":"/weft/libweft.so.1"})"),
            "/weft/libweft.so.1:/weft/libweft.so");
}

TEST(Preload, TheLastOfSeveralCounts) {
  EXPECT_EQ(PreloadOf(R"({"name":"LD_PRELOAD","value":"/a"},{"name":"LD_PRELOAD","value":"/b"})"),
            "/b:/weft/libweft.so");
}

TEST(Preload, AReferenceIsRenamedAndReferredTo) {
  for (const char* from : {R"({"configMapKeyRef":{"name":"c","key":"k"}})",
                           R"({"secretKeyRef":{"name":"c","key":"k","optional":false}})",
                           R"({"fieldRef":{"fieldPath":"metadata.name"}})"}) {
    const Json out = Mutated(Pod(R"({"name":"app","env":[{"name":"LD_PRELOAD","valueFrom":)" +
                                 std::string(from) + "}]}"));
    EXPECT_EQ(EnvOf(out)[0]["name"], "WEFT_ORIG_LD_PRELOAD");
    EXPECT_EQ(EnvOf(out)[0]["valueFrom"], Json::parse(from));
    EXPECT_EQ(EnvOf(out)[1], Json({{"name", "LD_PRELOAD"},
                                   {"value", "/weft/libweft.so:$(WEFT_ORIG_LD_PRELOAD)"}}));
  }
}

TEST(Preload, AnOptionalReferenceIsLeftAlone) {
  for (const char* kind : {"configMapKeyRef", "secretKeyRef"}) {
    EXPECT_EQ(ReasonFor(Pod(R"({"name":"app","env":[{"name":"LD_PRELOAD","valueFrom":{")" +
                            std::string(kind) + R"(":{"name":"c","key":"k","optional":true}}}]})")),
              "OptionalPreload");
  }
}

TEST(Preload, ASecondOriginalWouldHideTheFirst) {
  EXPECT_EQ(ReasonFor(Pod(R"({"name":"app","env":[{"name":"WEFT_ORIG_LD_PRELOAD","value":"x"},
      {"name":"LD_PRELOAD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]})")),
            "PreloadConflict");
}

TEST(Preload, EnvFromIsOverriddenUnlessThePodSaysThatItHasTheKey) {
  Json pod = Pod(R"({"name":"app","envFrom":[{"configMapRef":{"name":"c"}}]})");
  EXPECT_EQ(EnvOf(Mutated(pod))[0]["value"], "/weft/libweft.so");
  pod["metadata"]["annotations"]["weft.dev/preload-from-env"] = "true";
  EXPECT_EQ(EnvOf(Mutated(pod))[0]["value"], "/weft/libweft.so:$(LD_PRELOAD)");
  pod["spec"]["containers"][0].erase("envFrom");
  EXPECT_EQ(EnvOf(Mutated(pod))[0]["value"], "/weft/libweft.so");
}

TEST(Preload, EnvFromIsKeptWhereTheLibrarysConfigMapSetsWhatItLacks) {
  ClusterFacts cluster = Cluster();
  cluster.library->sets_preload = true;
  Json pod = Pod(R"({"name":"app","envFrom":[{"secretRef":{"name":"s"}}]})");
  const Json out = Mutated(pod, cluster);
  EXPECT_EQ(EnvOf(out)[0]["value"], "/weft/libweft.so:$(LD_PRELOAD)");
  EXPECT_EQ(out["spec"]["containers"][0]["envFrom"], Json::parse(R"([
    {"configMapRef":{"name":"weft-lib-0123","optional":true}}, {"secretRef":{"name":"s"}}])"));
  const Json without = Mutated(Pod(kPlain), cluster);
  EXPECT_EQ(EnvOf(without)[0]["value"], "/weft/libweft.so");
  EXPECT_FALSE(without["spec"]["containers"][0].contains("envFrom"));
}

TEST(Preload, TheImagesIsAddedWhereThePodNamesIt) {
  ClusterFacts cluster = Cluster();
  cluster.library->sets_preload = true;
  Json pod = Pod(kPlain);
  pod["metadata"]["annotations"]["weft.dev/preload"] = "/image.so";
  EXPECT_EQ(EnvOf(Mutated(pod, cluster))[0]["value"], "/weft/libweft.so:/image.so");
  pod["spec"]["containers"][0]["envFrom"] = Json::parse(R"([{"configMapRef":{"name":"c"}}])");
  EXPECT_EQ(EnvOf(Mutated(pod, cluster))[0]["value"], "/weft/libweft.so:$(LD_PRELOAD):/image.so");
  // Without weft, too, the pod's own value would have replaced the image's.
  pod = Pod(R"({"name":"app","env":[{"name":"LD_PRELOAD","value":"/own.so"}]})");
  pod["metadata"]["annotations"]["weft.dev/preload"] = "/image.so";
  EXPECT_EQ(EnvOf(Mutated(pod, cluster))[0]["value"], "/own.so:/weft/libweft.so");
}

TEST(Mutation, OverwritesWeftContainer) {
  const Json out =
      Mutated(Pod(R"({"name":"app","env":[{"name":"WEFT_CONTAINER","value":"../other"}]})"));
  EXPECT_EQ(EnvOf(out)[0], Json::parse(R"({"name":"WEFT_CONTAINER","value":"app"})"));
}

Json SeveralContainers() {
  return Json::parse(R"({"metadata":{"name":"p"},"spec":{
    "initContainers":[{"name":"init"},{"name":"sidecar","restartPolicy":"Always"}],
    "containers":[{"name":"a"},{"name":"b"}]}})");
}

std::string Injected(const Json& pod) {
  std::string names;
  for (const char* field : {"initContainers", "containers"}) {
    for (const Json& container : pod["spec"][field]) {
      if (container.contains("env")) names += container["name"].get<std::string>() + " ";
    }
  }
  return names;
}

TEST(Mutation, SidecarsYesInitContainersOnlyByName) {
  Json pod = SeveralContainers();
  EXPECT_EQ(Injected(Mutated(pod)), "sidecar a b ");
  pod["metadata"]["annotations"]["weft.dev/containers"] = "b, init";
  EXPECT_EQ(Injected(Mutated(pod)), "init b ");
  pod["metadata"]["annotations"]["weft.dev/containers"] = "absent";
  EXPECT_EQ(Mutated(pod), pod);
}

TEST(Mutation, AContainerThatCannotBeChangedDoesNotStopTheOthers) {
  Json pod = SeveralContainers();
  pod["spec"]["containers"][0]["volumeMounts"] =
      Json::parse(R"([{"name":"x","mountPath":"/weft/"}])");
  const Mutation mutation = MutatePod(pod, Cluster());
  EXPECT_EQ(mutation.containers, 2);
  ASSERT_EQ(mutation.left_alone.size(), 1u);
  EXPECT_EQ(mutation.left_alone[0].reason, "FolderInUse");
  EXPECT_THAT(mutation.left_alone[0].note, HasSubstr("container a"));
  EXPECT_EQ(Injected(pod.patch(mutation.patch)), "sidecar b ");
}

TEST(Mutation, LeavesAPodAloneWithAReason) {
  const Json pod = Pod(kPlain);
  ClusterFacts cluster = Cluster();
  cluster.library.reset();
  EXPECT_EQ(ReasonFor(pod, cluster), "LibraryMissing");
  cluster.untrusted = "weft-lib-9";
  EXPECT_EQ(ReasonFor(pod, cluster), "LibraryNotTrusted");
  cluster = Cluster();
  cluster.node_architectures = {"amd64", "arm64"};
  EXPECT_EQ(ReasonFor(pod, cluster), "ArchitectureUnknown");
  cluster.node_architectures = {"riscv64"};
  EXPECT_EQ(ReasonFor(pod, cluster), "ArchitectureUnsupported");
  Json own_volume = pod;
  own_volume["spec"]["volumes"] = Json::parse(R"([{"name":"weft","emptyDir":{}}])");
  EXPECT_EQ(ReasonFor(own_volume), "VolumeInUse");
}

TEST(Mutation, TheNodeSelectorTellsTheArchitecture) {
  ClusterFacts cluster = Cluster();
  cluster.node_architectures = {"amd64", "arm64"};
  Json pod = Pod(kPlain);
  pod["spec"]["nodeSelector"]["kubernetes.io/arch"] = "arm64";
  const Json out = Mutated(pod, cluster);
  EXPECT_EQ(out["spec"]["volumes"][0]["configMap"]["items"][0]["key"], "libweft.so.arm64");
}

TEST(Mutation, OptingOutIsQuiet) {
  Json disabled = Pod(kPlain);
  disabled["metadata"]["labels"]["weft.dev/inject"] = "disabled";
  Json windows = Pod(kPlain);
  windows["spec"]["os"]["name"] = "windows";
  for (const Json& pod : {disabled, windows}) {
    const Mutation mutation = MutatePod(pod, Cluster());
    EXPECT_EQ(mutation.patch, Json::array());
    ASSERT_EQ(mutation.left_alone.size(), 1u);
    EXPECT_TRUE(mutation.left_alone[0].quiet);
  }
}

TEST(Mutation, SurvivesAnyJson) {
  for (const char* text :
       {"null", "[]", "1", "{}", R"({"spec":1})", R"({"spec":{"containers":{}}})",
        R"({"spec":{"containers":[1,{"name":2},{"name":"a","env":1,"volumeMounts":2}]}})",
        R"({"spec":{"volumes":3,"containers":[{"name":"a","env":[1,{"name":[]}]}]}})",
        R"({"metadata":{"labels":[],"annotations":1},"spec":{"containers":[null]}})"}) {
    const Json pod = Json::parse(text);
    const Mutation mutation = MutatePod(pod, Cluster());
    EXPECT_NO_THROW((void)pod.patch(mutation.patch)) << text;
  }
}

}  // namespace
}  // namespace weft::webhook
