// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/cluster/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::agent {
namespace {

const std::string kUid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
const std::string kSlicedUid = "1b4e28ba_2fa1_11d2_883f_0016d3cca427";
const std::string kId = std::string(60, 'a') + "0123";
const CgroupPlace kPlace{kUid, kId};

TEST(Cgroup, Cgroupfs) {
  EXPECT_EQ(ParseCgroup("0::/kubepods/besteffort/pod" + kUid + "/" + kId + "\n"), kPlace);
  EXPECT_EQ(ParseCgroup("0::/kubepods/pod" + kUid + "/" + kId), kPlace);
  EXPECT_EQ(ParseCgroup("9:name=systemd:/\n4:memory:/x/kubepods/burstable/pod" + kUid + "/" + kId +
                        "\n0::/\n"),
            kPlace);
}

TEST(Cgroup, Systemd) {
  const std::string slices = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod";
  for (const char* runtime : {"cri-containerd-", "crio-", "docker-"})
    EXPECT_EQ(ParseCgroup("0::" + slices + kSlicedUid + ".slice/" + runtime + kId + ".scope"),
              kPlace);
  EXPECT_EQ(ParseCgroup("0::" + slices + kSlicedUid + ".slice/crio-" + kId + ".scope/container"),
            kPlace);
  EXPECT_EQ(ParseCgroup("1:cpu:/kubepods.slice/kubepods-pod" + kSlicedUid + ".slice/" + kId),
            kPlace);
}

TEST(Cgroup, SeenFromAnotherNamespace) {
  EXPECT_EQ(ParseCgroup("0::/../../besteffort/pod" + kUid + "/" + kId), kPlace);
}

TEST(Cgroup, StaticPodsHaveOtherUids) {
  const std::string uid(32, 'b');
  EXPECT_EQ(ParseCgroup("0::/kubepods/burstable/pod" + uid + "/" + kId),
            (CgroupPlace{.pod_uid = uid, .container_id = kId}));
}

TEST(Cgroup, IgnoresCgroupsThatAContainerMadeBelow) {
  const std::string other = "ffffffff-2fa1-11d2-883f-0016d3cca427";
  EXPECT_EQ(ParseCgroup("0::/kubepods/pod" + kUid + "/" + kId + "/pod" + other + "/" + kId),
            kPlace);
  EXPECT_EQ(ParseCgroup("0::/kubepods/pod" + kUid + "/mine/" + kId),
            (CgroupPlace{.pod_uid = kUid, .container_id = ""}));
}

TEST(Cgroup, NoPod) {
  EXPECT_EQ(ParseCgroup(""), std::nullopt);
  EXPECT_EQ(ParseCgroup("0::/system.slice/sshd.service\n"), std::nullopt);
  EXPECT_EQ(ParseCgroup("0::/podman/" + kId), std::nullopt);
  EXPECT_EQ(ParseCgroup("0::/pod" + kUid + "0/" + kId), std::nullopt);
  EXPECT_EQ(ParseCgroup("::::\n\n:/"), std::nullopt);
  EXPECT_EQ(PlaceOf(getpid()).has_value(), false);
}

TEST(Cgroup, AFileThatOpensAndCannotBeReadIsNoPods) {
  EXPECT_EQ(PlaceIn("/proc/self"), std::nullopt);
}

}  // namespace
}  // namespace weft::agent
