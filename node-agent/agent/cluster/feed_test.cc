// SPDX-License-Identifier: Apache-2.0
// What the agent's loop learns of pods and TraceSessions, and in which order.
#include "node-agent/agent/cluster/feed.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "lib/kube/testing_transport.h"

namespace weft::agent {
namespace {

using kube::Json;

constexpr const char* kPods = "/api/v1/pods";
constexpr const char* kSessions = "/apis/weft.dev/v1alpha1/tracesessions";

Json Pod(const std::string& uid) {
  return {{"metadata", {{"uid", uid}, {"namespace", "shop"}, {"name", "pod-" + uid}}},
          {"spec", {{"nodeName", "n1"}}}};
}

Json Order(const std::string& uid, const std::string& node = "n1") {
  return {{"apiVersion", "weft.dev/v1alpha1"},
          {"kind", "TraceSession"},
          {"metadata", {{"name", "s-" + uid}, {"namespace", "shop"}, {"uid", uid}}},
          {"spec",
           {{"nodeName", node},
            {"traceName", "t"},
            {"traceUid", "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10"},
            {"traceGeneration", 1},
            {"state", "Active"},
            {"relay", {{"name", "r"}, {"control", "r:1"}, {"data", "r:2"}}},
            {"record",
             {{"pods", {{"selector", {{"matchLabels", {{"app", "shop"}}}}}}},
              {"user", {{"events", {{{"name", "shop:*"}}}}}}}}}}};
}

class FeedTest : public testing::Test {
 protected:
  FeedTest() {
    auto transport = std::make_unique<kube::testing::TestTransport>(
        [this](const kube::HttpRequest& request) { return Answer(request); });
    api_ = transport.get();
    client_ = std::make_unique<kube::Client>(std::move(transport), "weft-agent");
  }

  kube::HttpReply Answer(const kube::HttpRequest& request) {
    if (failures_ > 0) {
      --failures_;
      return kube::testing::Reply(500, {{"message", "not now"}});
    }
    const Json& items = request.target.starts_with(kPods) ? pods_ : orders_;
    return kube::testing::Reply(200, {{"items", items}, {"metadata", {{"resourceVersion", "1"}}}});
  }

  void Start() {
    auto feed = Feed::Start(*client_, "n1", loop_, [this](News&& news) {
      EXPECT_EQ(std::this_thread::get_id(), thread_);
      news_.push_back(std::move(news));
    });
    ASSERT_TRUE(feed) << feed.error().message;
    feed_ = std::move(*feed);
  }
  // Runs the loop until `is_done`.
  void RunUntil(const std::function<bool()>& is_done) {
    const auto timer = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (is_done()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }
  // Returns the news of this kind, in their order.
  template <typename Kind>
  std::vector<Kind> All() const {
    std::vector<Kind> all;
    for (const News& news : news_)
      if (const auto* one = std::get_if<Kind>(&news)) all.push_back(*one);
    return all;
  }
  void RunUntilListed() {
    RunUntil([this] { return !All<PodsListed>().empty() && !All<OrdersListed>().empty(); });
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  Json pods_ = Json::array(), orders_ = Json::array();  // which the API server has at first
  std::atomic<int> failures_ = 0;                       // of its next answers
  kube::testing::TestTransport* api_ = nullptr;
  std::unique_ptr<kube::Client> client_;
  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::vector<News> news_;
  std::unique_ptr<Feed> feed_;
};

TEST_F(FeedTest, PassesAllThatThereIsAndThenWhatChanges) {
  pods_ = Json::array({Pod("p1"), Pod("p2")});
  orders_ = Json::array({Order("o1")});
  Start();
  RunUntilListed();
  ASSERT_EQ(All<PodsListed>()[0].pods.size(), 2u);
  EXPECT_EQ(All<PodsListed>()[0].pods[1].uid, "p2");
  ASSERT_EQ(All<OrdersListed>()[0].orders.size(), 1u);
  EXPECT_EQ(All<OrdersListed>()[0].orders[0].metadata.uid, "o1");

  api_->Put(kPods, "ADDED", Pod("p3"));
  api_->Put(kPods, "MODIFIED", Pod("p1"));
  api_->Put(kPods, "DELETED", Pod("p2"));
  api_->Put(kSessions, "ADDED", Order("o2"));
  api_->Put(kSessions, "DELETED", Order("o1"));
  RunUntil([this] { return !All<PodGone>().empty() && !All<OrderGone>().empty(); });
  const auto seen = All<PodSeen>();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].pod.uid, "p3");
  EXPECT_EQ(seen[1].pod.uid, "p1");
  EXPECT_EQ(All<PodGone>()[0].uid, "p2");
  ASSERT_EQ(All<OrderSeen>().size(), 1u);
  EXPECT_EQ(All<OrderSeen>()[0].order.metadata.uid, "o2");
  EXPECT_EQ(All<OrderGone>()[0].uid, "o1");
  EXPECT_TRUE(All<WatchFailed>().empty());
}

TEST_F(FeedTest, AsksForThisNodesOnly) {
  Start();
  RunUntilListed();
  for (const kube::HttpRequest& request : api_->requests())
    EXPECT_TRUE(request.target.contains("fieldSelector=spec.nodeName%3Dn1")) << request.target;
}

// No session for this node: the controller writes none of these, and another writer may.
TEST_F(FeedTest, AnObjectThatIsNoSessionOfThisNodeIsNotPassed) {
  Json broken = Order("broken");
  broken["spec"].erase("traceUid");
  orders_ = Json::array({Order("elsewhere", "n2"), broken, Order("o1")});
  Start();
  RunUntilListed();
  ASSERT_EQ(All<OrdersListed>()[0].orders.size(), 1u);
  EXPECT_EQ(All<OrdersListed>()[0].orders[0].metadata.uid, "o1");
  api_->Put(kSessions, "ADDED", Order("elsewhere", "n2"));
  api_->Put(kSessions, "ADDED", broken);
  api_->Put(kSessions, "DELETED", broken);
  RunUntil([this] { return !All<OrderGone>().empty(); });
  EXPECT_TRUE(All<OrderSeen>().empty());
  EXPECT_EQ(All<OrderGone>()[0].uid, "broken") << "it may have been one before";
}

TEST_F(FeedTest, AFailureIsToldAndTriedAgain) {
  failures_ = 2;
  orders_ = Json::array({Order("o1")});
  Start();
  RunUntilListed();
  const auto failed = All<WatchFailed>();
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_TRUE(failed[0].why.contains("not now")) << failed[0].why;
  EXPECT_EQ(All<OrdersListed>()[0].orders.size(), 1u);
}

TEST_F(FeedTest, NothingIsToldAfterItsEnd) {
  Start();
  // Both have been asked for, but the loop does not run.
  for (int i = 0; i < 60'000 && api_->requests().size() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(api_->requests().size(), 2u);
  feed_.reset();
  loop_.After(std::chrono::milliseconds(0), [this] { loop_.Stop(); });
  EXPECT_TRUE(loop_.Run());
  EXPECT_TRUE(news_.empty());
}

}  // namespace
}  // namespace weft::agent
