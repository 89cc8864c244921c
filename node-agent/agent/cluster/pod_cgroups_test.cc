// SPDX-License-Identifier: Apache-2.0
// The kubelet's folders, made as its two drivers make them.
#include "node-agent/agent/cluster/pod_cgroups.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace weft::agent {
namespace {

namespace fs = std::filesystem;

const std::string kUid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
const std::string kSliced = "1b4e28ba_2fa1_11d2_883f_0016d3cca427";
const std::string kId = std::string(60, 'a') + "0123";
const std::string kOtherId = std::string(60, 'b') + "0123";

class PodCgroupsTest : public ::testing::Test {
 protected:
  PodCgroupsTest() {
    char name[] = "/tmp/weft-cgroups-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    mount_ = name;
  }
  ~PodCgroupsTest() override { fs::remove_all(mount_); }

  uint64_t Make(const std::string& folder) const {
    fs::create_directories(mount_ / folder);
    struct stat st{};
    EXPECT_EQ(stat((mount_ / folder).c_str(), &st), 0);
    return st.st_ino;
  }

  fs::path mount_;
};

TEST_F(PodCgroupsTest, FindsPodsOfBothDriversAndAllClasses) {
  PodCgroups cgroups(mount_);
  EXPECT_FALSE(cgroups.OfPod(kUid));
  for (const std::string& folder :
       {"kubepods/pod" + kUid, "node/kubepods/burstable/pod" + kUid,
        "kubepods.slice/kubepods-pod" + kSliced + ".slice",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
        "kubelet-kubepods-besteffort-pod" +
            kSliced + ".slice"}) {
    const uint64_t id = Make(folder);
    EXPECT_EQ(cgroups.OfPod(kUid), id) << folder;
    fs::remove_all(mount_ / folder.substr(0, folder.find('/')));
    EXPECT_FALSE(cgroups.OfPod(kUid));
  }
}

TEST_F(PodCgroupsTest, ContainersByTheirIds) {
  PodCgroups cgroups(mount_);
  const std::string pod = "kubepods.slice/kubepods-pod" + kSliced + ".slice/";
  const uint64_t id = Make(pod + "cri-containerd-" + kId + ".scope");
  Make(pod + "cri-containerd-" + kOtherId + ".scope");
  EXPECT_EQ(cgroups.OfContainers(kUid, {kId}), std::set<uint64_t>{id});
  EXPECT_EQ(cgroups.OfContainers(kUid, {kId, kOtherId}).size(), 2u);
  EXPECT_TRUE(cgroups.OfContainers(kUid, {}).empty());
}

// A container may make folders in its own.
TEST_F(PodCgroupsTest, IgnoresFoldersBelowAPod) {
  PodCgroups cgroups(mount_);
  const std::string other = "2" + kUid.substr(1);
  Make("kubepods/pod" + kUid + "/" + kId + "/kubepods/pod" + other);
  EXPECT_TRUE(cgroups.OfPod(kUid));
  EXPECT_FALSE(cgroups.OfPod(other));
  EXPECT_FALSE(cgroups.OfPod("../kubepods"));
}

}  // namespace
}  // namespace weft::agent
