// SPDX-License-Identifier: Apache-2.0
// What is replaced, by files as containerd 1.6 makes them, and as CRI-O's documentation and sources
// have them. A real containerd is in tests/cluster/modes_test.py.
#include "node-agent/agent/cluster/image_preload.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "lib/kube/base64.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;
using kube::Json;

const std::string kContainer(64, 'c');
const std::string kImage(64, 'a');
const std::string kManifest(64, 'b');
const std::string kIndex(64, 'd');
const std::string kContainerd = "run/containerd/io.containerd.runtime.v2.task/k8s.io/";
const std::string kBlobs = "var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/";

Json Spec(const std::string& preload) {
  return {{"process", {{"env", {"A=b", "LD_PRELOAD=" + preload}}}}};
}
const Json kConfig = {
    {"config", {{"Env", {"PATH=/bin", "LD_PRELOAD=/old.so", "LD_PRELOAD=/own.so"}}}}};

class ImagePreload : public testing::Test {
 protected:
  ImagePreload() {
    char name[] = "/tmp/weft-image-preload-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  ~ImagePreload() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  void WriteContainerd(const std::string& preload) const {
    Write(kContainerd + kContainer + "/config.json", Spec(preload).dump());
    Write(kBlobs + kImage, kConfig.dump());
  }
  // What is found for a pod's container of this image; "": nothing.
  [[nodiscard]] std::string Found(const std::string& image,
                                  const std::string& id = kContainer) const {
    ImagePreloads images(UniqueFd(open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
    PodFacts pod{.containers = {"main"}, .ids = {{id, "main"}}, .images = {{"main", image}}};
    images.AddTo(pod);
    return pod.replaced_preloads.empty() ? "" : pod.replaced_preloads.at("main");
  }

  std::string root_;
};

TEST_F(ImagePreload, ThatOfAnImageIsReplacedByWefts) {
  WriteContainerd("/weft/libweft.so");
  EXPECT_EQ(Found("sha256:" + kImage), "/own.so");
  WriteContainerd("/weft/libweft.so:/weft/libweft.so");
  EXPECT_EQ(Found("sha256:" + kImage), "/own.so") << "envFrom has none";
}

TEST_F(ImagePreload, APodsOwnValueReplacesItWithOrWithoutWeft) {
  for (const char* preload :
       {"/other.so:/weft/libweft.so", "/weft/libweft.so:/own.so", "", "/x.so"}) {
    WriteContainerd(preload);
    EXPECT_EQ(Found("sha256:" + kImage), "") << preload;
  }
}

TEST_F(ImagePreload, AManifestAndAnIndexLeadToTheConfiguration) {
  WriteContainerd("/weft/libweft.so");
  Write(kBlobs + kManifest, Json({{"config", {{"digest", "sha256:" + kImage}}}}).dump());
  const auto entry = [](const char* architecture, const std::string& digest) -> Json {
    return {{"digest", "sha256:" + digest},
            {"platform", {{"architecture", architecture}, {"os", "linux"}}}};
  };
  Write(kBlobs + kIndex,
        Json({{"manifests",
               {entry("riscv64", kImage), entry("amd64", kManifest), entry("arm64", kManifest)}}})
            .dump());
  EXPECT_EQ(Found("registry.example/shop@sha256:" + kManifest), "/own.so");
  EXPECT_EQ(Found("registry.example/shop@sha256:" + kIndex), "/own.so");
  Write(kBlobs + kManifest, Json({{"config", {{"digest", "sha256:" + kManifest}}}}).dump());
  EXPECT_EQ(Found("sha256:" + kManifest), "") << "it names itself";
}

TEST_F(ImagePreload, CrioNamesTheImageInTheContainersAnnotation) {
  Json spec = Spec("/weft/libweft.so");
  spec["annotations"]["io.kubernetes.cri-o.ImageRef"] = kImage;
  Write("run/containers/storage/overlay-containers/" + kContainer + "/userdata/config.json",
        spec.dump());
  Write("var/lib/containers/storage/overlay-images/" + kImage +
            "/=" + EncodeBase64("sha256:" + kImage),
        kConfig.dump());
  EXPECT_EQ(Found("registry.example/shop@sha256:" + kManifest), "/own.so");
}

TEST_F(ImagePreload, FoldersMayBeLinksInsideOfTheRoot) {
  WriteContainerd("/weft/libweft.so");
  fs::rename(root_ + "/var/lib/containerd", root_ + "/data");
  fs::create_symlink("/data", root_ + "/var/lib/containerd");
  EXPECT_EQ(Found("sha256:" + kImage), "/own.so");
}

TEST_F(ImagePreload, NothingIsFoundInWhatIsNoFileOfARuntime) {
  EXPECT_EQ(Found("sha256:" + kImage), "") << "no runtime is known";
  WriteContainerd("/weft/libweft.so");
  for (const char* image : {"", "shop:1", "sha256:", "sha256:../../etc/passwd", "docker://x"})
    EXPECT_EQ(Found(image), "") << image;
  EXPECT_EQ(Found("sha256:" + kImage, "../" + kContainer), "");
  const std::string file = root_ + "/" + kBlobs + kImage;
  for (const std::string& text :
       {std::string("no JSON"), std::string("[]"), std::string(R"({"config":{"Env":7}})"),
        std::string(R"({"config":[],"manifests":[7]})"), std::string(1 << 19, '[')}) {
    Write(kBlobs + kImage, text);
    EXPECT_EQ(Found("sha256:" + kImage), "") << text.substr(0, 40);
  }
  Write(kBlobs + kImage, kConfig.dump() + std::string(2 << 20, ' '));
  EXPECT_EQ(Found("sha256:" + kImage), "") << "too long";
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(Found("sha256:" + kImage), "");
}

TEST_F(ImagePreload, AMessageGetsLittleAndPrintableText) {
  WriteContainerd("/weft/libweft.so");
  Write(kBlobs + kImage,
        Json({{"config", {{"Env", {"LD_PRELOAD=/a\n\"b" + std::string(999, 'x')}}}}}).dump());
  EXPECT_EQ(Found("sha256:" + kImage), "/a??b" + std::string(195, 'x'));
}

}  // namespace
}  // namespace weft::agent
