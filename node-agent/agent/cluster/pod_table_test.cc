// SPDX-License-Identifier: Apache-2.0
// Pods from their appearance to their end; the test is the kubelet, which makes their volumes.
#include "node-agent/agent/cluster/pod_table.h"

#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;
using testing::MakeClusterSession;

const std::string kUid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

class SilentListener final : public AgentListener {
 public:
  void SessionChanged(Session&) override {}
  void ChannelFailed(Session&, const std::string&) override {}
  void Note(std::string) override {}
  bool TakeKept(ipc::Kept&) override { return false; }
  Status Restore() override { return {}; }
  void ConsumerFailed(const std::string&, const std::string&) override {}
  void OwnerGone() override {}
  void Tick(int64_t) override {}
};

class PodTableTest : public testing::AgentFixture {
 protected:
  PodTableTest() { EXPECT_TRUE(agent_.Start(listener_, table_)); }

  static PodFacts Facts() {
    return {.uid = kUid,
            .name_space = "shop",
            .name = "shop-0",
            .labels = {{"app", "shop"}},
            .containers = {"main"},
            .ids = {}};
  }
  void MakeVolume() const {
    fs::create_directories(folder() + "/pods/" + kUid + "/volumes/kubernetes.io~configmap/weft");
  }
  static std::pair<UniqueFd, UniqueFd> Pair() { return std::move(*ipc::Connection::MakePair()); }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::pair<UniqueFd, UniqueFd> ends_ = Pair();
  SilentListener listener_;
  Agent agent_{loop_, folder(), ipc::Connection(std::move(ends_.first))};
  PodTable table_{agent_, folder(), false, {}, [](const std::string&) {}};
  const std::string key_ = ContainerKey(kUid, "main");
};

TEST_F(PodTableTest, APodThatHasNotStartedIsReportedWithTheReason) {
  MakeVolume();
  PodFacts facts = Facts();
  facts.waiting = "ImagePullBackOff";
  table_.List({facts});
  ASSERT_TRUE(table_.OpenVolumes());
  const Session session = MakeClusterSession();
  SelectedPods pods = table_.SelectedBy(session);
  ASSERT_TRUE(pods.without_library.contains(kUid));
  EXPECT_EQ(pods.without_library[kUid].reason, "NotStarted");
  EXPECT_EQ(pods.without_library[kUid].message, "no container has started (ImagePullBackOff)");
  facts.ids = {{"cc", "main"}};
  table_.See(facts);
  EXPECT_TRUE(table_.SelectedBy(session).without_library.empty()) << "its processes decide";
}

TEST_F(PodTableTest, AVolumeThatTheKubeletMadeGetsAControlFileAndADoorbell) {
  EXPECT_FALSE(table_.is_known());
  table_.List({Facts()});
  EXPECT_TRUE(table_.is_known());
  EXPECT_FALSE(table_.OpenVolumes()) << "there is none yet";
  MakeVolume();
  EXPECT_TRUE(table_.OpenVolumes());
  EXPECT_FALSE(table_.OpenVolumes()) << "once";
  EXPECT_TRUE(agent_.parts().areas.Has(key_));
  EXPECT_EQ(agent_.parts().doorbells.Names(), std::vector<std::string>{kUid});
}

TEST_F(PodTableTest, APodThatIsGoneIsForgottenWhenNoChannelIsOfIt) {
  table_.See(Facts());
  MakeVolume();
  ASSERT_TRUE(table_.OpenVolumes());
  Session session = MakeClusterSession();
  session.channels[0].definition.pod_uid = kUid;
  ASSERT_TRUE(agent_.parts().sessions.Add("one", std::move(session)));
  table_.Lose(kUid);
  table_.ForgetUnused();
  EXPECT_TRUE(agent_.parts().areas.Has(key_)) << "its channel is not drained";
  agent_.parts().sessions.Remove("one");
  table_.ForgetUnused();
  EXPECT_FALSE(agent_.parts().areas.Has(key_));
  EXPECT_TRUE(agent_.parts().doorbells.Names().empty());
  EXPECT_TRUE(table_.all().empty());
}

TEST_F(PodTableTest, APodWithoutTheLibraryIsKeptForTheKernelOnly) {
  PodFacts facts = Facts();
  facts.containers.clear();
  table_.See(facts);
  EXPECT_TRUE(table_.all().empty());
  PodTable of_all(agent_, folder(), true, {}, [](const std::string&) {});
  of_all.See(facts);
  ASSERT_EQ(of_all.all().size(), 1u);
  const Session session = MakeClusterSession();
  EXPECT_TRUE(SelectsForKernel(session, of_all.all().at(kUid)));
  EXPECT_FALSE(of_all.SelectsForUser(session, of_all.all().at(kUid)));
}

TEST_F(PodTableTest, ATraceThatAttachesSelectsContainersThatWereMadeWithoutTheLibrary) {
  const AttachPolicy policy{.is_on = true, .own_namespace = "weft"};
  PodTable table(agent_, folder(), false, policy, [](const std::string&) {});
  PodFacts facts = Facts();
  facts.containers.clear();
  facts.bare = {{"main", ""}, {"side", "it is privileged"}};
  facts.ids = {{"cc", "main"}, {"dd", "side"}};
  facts.running = {"main"};
  table.List({facts});
  const PodTable::Pod& pod = table.all().at(kUid);
  Session session = MakeClusterSession();
  EXPECT_FALSE(table.SelectsForUser(session, pod));
  session.order->spec.record.user.attach = true;
  EXPECT_EQ(table.ContainersOf(session, pod), std::vector<std::string>{"main"});
  EXPECT_EQ(table.SelectedBy(session).without_library.at(kUid).reason, "NotAttached");
  session.attach_pending = true;
  EXPECT_TRUE(table.SelectedBy(session).without_library.empty());
  session.attached = {key_};
  EXPECT_TRUE(table.SelectedBy(session).without_library.empty());
  session.order->spec.record.pods.containers = {"side"};
  EXPECT_TRUE(table.ContainersOf(session, pod).empty());
  EXPECT_TRUE(table.SelectedBy(session).untouched.contains(kUid));
  EXPECT_EQ(table.SelectedBy(session).without_library.at(kUid).reason, "NotStarted");
  facts.running = {"side"};
  table.See(facts);
  EXPECT_EQ(table.SelectedBy(session).without_library.at(kUid).reason, "NotAttached");
  EXPECT_FALSE(table_.SelectsForUser(session, pod)) << "the policy of this one does not allow it";
  EXPECT_NE(table_.WhyNotAttached(session), "");
}

TEST_F(PodTableTest, KubeSystemAndWeftsOwnNamespaceAreNeverAttachedTo) {
  const AttachPolicy policy{.is_on = true, .own_namespace = "weft"};
  EXPECT_EQ(policy.WhyNot("shop"), "");
  EXPECT_NE(policy.WhyNot("kube-system"), "");
  EXPECT_NE(policy.WhyNot("weft"), "");
  EXPECT_NE(AttachPolicy{}.WhyNot("shop"), "");
}

TEST_F(PodTableTest, APodOfAnotherNamespaceOrThatIsOverIsNotSelected) {
  PodTable::Pod pod;
  pod.facts = Facts();
  EXPECT_TRUE(table_.SelectsForUser(MakeClusterSession("shop"), pod));
  EXPECT_FALSE(table_.SelectsForUser(MakeClusterSession("bank"), pod));
  pod.facts.is_over = true;
  EXPECT_FALSE(table_.SelectsForUser(MakeClusterSession("shop"), pod));
  EXPECT_FALSE(SelectsForKernel(MakeClusterSession("shop"), pod));
}

TEST_F(PodTableTest, APodWithoutAContainerThatTheTraceNamesIsNotSelected) {
  PodTable::Pod pod;
  pod.facts = Facts();
  pod.facts.bare = {{"side", ""}};
  Session session = MakeClusterSession();
  session.order->spec.record.pods.containers = {"typo"};
  EXPECT_FALSE(SelectsForKernel(session, pod));
  for (const char* name : {"main", "side"}) {
    session.order->spec.record.pods.containers.back() = name;
    EXPECT_TRUE(SelectsForKernel(session, pod)) << name;
  }
}

// The caller's process is gone: the doorbell alone tells.
TEST_F(PodTableTest, ARingSetBelongsToThePodWhoseDoorbellWasCalled) {
  const std::string other = "pod-of-another";
  EXPECT_FALSE(table_.Belongs(key_, {.doorbell = &kUid})) << "the pod is not known";
  table_.See(Facts());
  EXPECT_TRUE(table_.Belongs(key_, {.doorbell = &kUid}));
  EXPECT_FALSE(table_.Belongs(key_, {.doorbell = &other}));
  EXPECT_FALSE(table_.Belongs(key_, {})) << "nothing tells";
}

// It ended while no agent ran: the next agent's list of pods does not have it.
TEST_F(PodTableTest, ARingSetOfAPodThatIsNotListedBelongsToThePodsChannel) {
  table_.List({});
  Session session = MakeClusterSession();
  session.channels[0].definition.pod_uid = kUid;
  ASSERT_TRUE(agent_.parts().sessions.Add("one", std::move(session)));
  const std::string other = "pod-of-another";
  EXPECT_TRUE(table_.Belongs(key_, {.doorbell = &kUid}));
  EXPECT_FALSE(table_.Belongs(key_, {.doorbell = &other}));
  EXPECT_FALSE(table_.Belongs(key_, {})) << "nothing tells";
}

}  // namespace
}  // namespace weft::agent
