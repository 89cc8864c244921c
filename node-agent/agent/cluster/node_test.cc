// SPDX-License-Identifier: Apache-2.0
// An agent on a node: the test is API server, kubelet, keeper and consumer around it. News come in
// any order; what is done about them is seen in files, in messages and in the statuses that are
// written.
#include "node-agent/agent/cluster/node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/metric_family.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "lib/ipc/connection.h"
#include "lib/kube/testing_transport.h"

namespace weft::agent {
namespace {

namespace fs = std::filesystem;
using kube::Json;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

constexpr const char* kPods = "/api/v1/pods";
constexpr const char* kSessions = "/apis/weft.dev/v1alpha1/tracesessions";
const std::string kRelay = "r.weft-relay.weft.svc";
const std::string kUid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";

// Longer than anything takes: only a failure waits for it.
constexpr auto kPatience = 60s;

// One that is Running has a container that has started.
Json PodObject(const std::string& phase = "Running") {
  Json container = {{"name", "main"}};
  if (phase == "Running") container["containerID"] = "containerd://" + std::string(64, 'a');
  return {
      {"metadata",
       {{"uid", kUid}, {"namespace", "shop"}, {"name", "shop-0"}, {"labels", {{"app", "shop"}}}}},
      {"spec",
       {{"nodeName", "n1"},
        {"volumes", {{{"name", "weft"}, {"configMap", {{"name", "weft-lib-0a1b"}}}}}},
        {"containers",
         {{{"name", "main"}, {"volumeMounts", {{{"name", "weft"}, {"mountPath", "/weft"}}}}}}}}},
      {"status", {{"phase", phase}, {"containerStatuses", {container}}}}};
}

Json SessionObject(const char* app, const char* state = "Active") {
  return {{"apiVersion", "weft.dev/v1alpha1"},
          {"kind", "TraceSession"},
          {"metadata", {{"name", "t-1"}, {"namespace", "shop"}, {"uid", "s"}, {"generation", 1}}},
          {"spec",
           {{"nodeName", "n1"},
            {"traceName", "t"},
            {"traceUid", "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10"},
            {"traceGeneration", 1},
            {"state", state},
            {"relay", {{"name", "r"}, {"control", kRelay + ":1"}, {"data", kRelay + ":2"}}},
            {"record",
             {{"pods", {{"selector", {{"matchLabels", {{"app", app}}}}}}},
              {"user", {{"events", {{{"name", "shop:*"}}}}}}}}}}};
}

class NodeTest : public testing::Test {
 protected:
  NodeTest() {
    char name[] = "/tmp/weft-node-test-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    fs::create_directories(folder_ / "sessions");
    // An agent was here an hour ago; no session is of that time.
    std::ofstream(folder_ / "present").close();
    fs::last_write_time(folder_ / "present", fs::file_time_type::clock::now() - 1h);
    auto transport =
        std::make_unique<kube::testing::TestTransport>([](const kube::HttpRequest& request) {
          const Json list = {{"items", Json::array()}, {"metadata", {{"resourceVersion", "1"}}}};
          return kube::testing::Reply(200, request.method == "GET" ? list : Json::object());
        });
    api_ = transport.get();
    client_ = std::make_unique<kube::Client>(std::move(transport), "weft-agent");
    auto pair = ipc::Connection::MakePair();
    EXPECT_TRUE(pair);
    keeper_ = ipc::Connection(std::move(pair->first));
    agent_ = std::thread([this, end = std::move(pair->second)]() mutable { Run(std::move(end)); });
    EXPECT_TRUE(keeper_.Send(ipc::KeptComplete{}));
  }
  ~NodeTest() override {
    EndAgent();
    fs::remove_all(folder_);
  }

  void EndAgent() {
    keeper_.Close();
    if (agent_.joinable()) agent_.join();
  }

  void Run(UniqueFd keeper) {
    auto loop = ipc::Loop::Make();
    ASSERT_TRUE(loop);
    Agent agent(*loop, folder_ / "sessions", ipc::Connection(std::move(keeper)));
    Node node(agent, *client_, "n1", folder_ / "kubelet", {}, {}, {});
    node.FollowOnlyWeftOf("weft");
    metrics_ = &node.metrics();
    ASSERT_TRUE(agent.Start(node, node.lookup()));
    EXPECT_TRUE(loop->Run());
  }

  // Reads what the agent says until `done`.
  template <typename Done>
  bool Until(const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      if (auto message = keeper_.Wait(10ms)) said_.push_back(std::move(*message));
      if (!consumer_.valid()) continue;
      if (auto message = consumer_.Wait(10ms)) told_.push_back(std::move(*message));
    }
    return true;
  }

  // The last message of a kind, to keeper or consumer.
  template <typename Message>
  static Message* Last(std::vector<ipc::Message>& messages) {
    const auto is = [](const ipc::Message& m) { return std::holds_alternative<Message>(m); };
    const auto found = std::find_if(messages.rbegin(), messages.rend(), is);
    return found == messages.rend() ? nullptr : &std::get<Message>(*found);
  }

  // What was last written about the session.
  Json SessionStatus() {
    Json status = Json::object();
    for (const kube::HttpRequest& request : api_->requests()) {
      if (request.method == "PATCH" && request.target.contains("/tracesessions/t-1/status"))
        status = Json::parse(request.body)["status"];
    }
    return status;
  }
  bool SaysPhase(const char* phase) {
    return Until([&] { return SessionStatus().value("phase", "") == phase; });
  }

  // The counter's sum over all Traces.
  double RecordedInMetrics() {
    double sum = 0;
    for (const prometheus::MetricFamily& family : metrics_.load()->Collect()) {
      if (family.name != "weft_events_recorded_total") continue;
      for (const prometheus::ClientMetric& metric : family.metric) sum += metric.counter.value;
    }
    return sum;
  }

  // As the kubelet does.
  fs::path MakeVolume() {
    const fs::path volume =
        folder_ / "kubelet/pods" / kUid / "volumes/kubernetes.io~configmap/weft";
    fs::create_directories(volume);
    return volume;
  }

  // As the keeper and a new consumer do.
  void ConnectConsumer() {
    auto pair = ipc::Connection::MakePair();
    ASSERT_TRUE(pair);
    consumer_ = ipc::Connection(std::move(pair->first));
    ASSERT_TRUE(keeper_.Send(ipc::Connect{"shop", std::move(pair->second)}));
    ASSERT_TRUE(consumer_.Send(ipc::Hello{.pid = getpid()}));
  }

  fs::path folder_;
  kube::testing::TestTransport* api_ = nullptr;
  std::unique_ptr<kube::Client> client_;
  ipc::Connection keeper_, consumer_;
  std::vector<ipc::Message> said_, told_;  // to the keeper, to the consumer
  std::atomic<const Metrics*> metrics_ = nullptr;
  std::thread agent_;  // last: it uses the others
};

TEST_F(NodeTest, FromASessionToItsEnd) {
  api_->Put(kSessions, "ADDED", SessionObject("shop"));
  ASSERT_TRUE(SaysPhase("Recording")) << "no pod of this node is meant yet";
  api_->Put(kPods, "ADDED", PodObject("Pending"));
  ASSERT_TRUE(SaysPhase("Pending"));
  EXPECT_EQ(SessionStatus()["pods"]["skipped"][0]["reason"], "VolumeNotReady");

  const fs::path volume = MakeVolume();
  ASSERT_TRUE(Until([&] { return Last<ipc::StartConsumer>(said_) != nullptr; }));
  EXPECT_EQ(Last<ipc::StartConsumer>(said_)->name, "shop");
  EXPECT_TRUE(fs::exists(volume / "main.ctl"));
  EXPECT_TRUE(fs::is_socket(volume / "agent.sock"));
  EXPECT_EQ(Last<ipc::ListenDoorbell>(said_)->name, kUid);

  ConnectConsumer();
  ASSERT_TRUE(Until([&] { return Last<ipc::ChannelDefinition>(told_) != nullptr; }));
  const uint64_t id = Last<ipc::ChannelDefinition>(told_)->id;
  EXPECT_EQ(Last<ipc::ChannelDefinition>(told_)->pod, "shop-0");
  ASSERT_TRUE(consumer_.Send(ipc::ChannelReady{.channel_id = id}));
  ASSERT_TRUE(SaysPhase("Recording"));
  EXPECT_EQ(SessionStatus()["pods"]["skipped"][0]["reason"], "NotStarted");
  api_->Put(kPods, "MODIFIED", PodObject());
  ASSERT_TRUE(Until([&] { return SessionStatus()["pods"].value("traced", 0) == 1; }));
  EXPECT_THAT(SessionStatus().dump(), Not(HasSubstr("AgentStayed")));

  api_->Put(kSessions, "MODIFIED", SessionObject("shop", "Draining"));
  ASSERT_TRUE(Until([&] { return Last<ipc::Sync>(said_) != nullptr; }));
  ASSERT_TRUE(keeper_.Send(ipc::Synced{Last<ipc::Sync>(said_)->number}));
  ASSERT_TRUE(Until([&] { return Last<ipc::StopChannel>(told_) != nullptr; }));
  EXPECT_EQ(Last<ipc::StopChannel>(told_)->channel_id, id);
  ASSERT_TRUE(SaysPhase("Draining"));
  ASSERT_TRUE(consumer_.Send(ipc::Drained{id, {.recorded = 7, .delivered = 7}}));
  ASSERT_TRUE(SaysPhase("Completed"));
  EXPECT_EQ(SessionStatus()["events"]["delivered"], 7);

  api_->Put(kSessions, "DELETED", SessionObject("shop", "Draining"));
  ASSERT_TRUE(Until([&] { return Last<ipc::StopConsumer>(said_) != nullptr; }));
  EXPECT_TRUE(fs::is_empty(folder_ / "sessions"));
  EXPECT_TRUE(fs::exists(volume / "main.ctl")) << "the pod is still there";
}

// The node's state folder was emptied, or another machine has the node's name now.
TEST_F(NodeTest, GoesOnFromTheCountsOfAnAgentWhoseStateIsLost) {
  Json session = SessionObject("shop");
  session["status"] = {{"phase", "Recording"},
                       {"events",
                        {{"recorded", 100},
                         {"delivered", 90},
                         {"discarded", 5},
                         {"lost", 3},
                         {"missing", 8},
                         {"reasons",
                          {{{"stage", "ring"}, {"reason", "full"}, {"count", 5}},
                           {{"stage", "store"}, {"reason", "write"}, {"count", 3}}}}}}};
  api_->Put(kSessions, "ADDED", session);
  ASSERT_TRUE(SaysPhase("Recording"));
  const Json events = SessionStatus()["events"];
  EXPECT_EQ(events["recorded"], 100);
  EXPECT_EQ(events["delivered"], 90);
  EXPECT_EQ(events["discarded"], 5);
  EXPECT_EQ(events["lost"], 10) << "what was in flight is in no ring that this agent knows";
  EXPECT_EQ(events["reasons"].size(), 3u);
}

TEST_F(NodeTest, CountsThatAreReportedAreOnDisk) {
  MakeVolume();
  api_->Put(kPods, "ADDED", PodObject());
  api_->Put(kSessions, "ADDED", SessionObject("shop"));
  ASSERT_TRUE(Until([&] { return Last<ipc::StartConsumer>(said_) != nullptr; }));
  ConnectConsumer();
  ASSERT_TRUE(Until([&] { return Last<ipc::ChannelDefinition>(told_) != nullptr; }));
  const uint64_t id = Last<ipc::ChannelDefinition>(told_)->id;
  ASSERT_TRUE(consumer_.Send(ipc::ChannelReady{.channel_id = id}));
  ASSERT_TRUE(consumer_.Send(ipc::Stats{id, {.recorded = 7, .delivered = 7}}));
  ASSERT_TRUE(Until([&] {
    const Json status = SessionStatus();
    return status.contains("events") && status["events"]["delivered"] == 7;
  }));
  const auto saved = [&] { return Session::Load(folder_ / "sessions/s.json")->Counts().delivered; };
  EXPECT_EQ(saved(), 7u);
  ASSERT_TRUE(consumer_.Send(ipc::Stats{id, {.recorded = 9, .delivered = 9}}));
  ASSERT_TRUE(Until([&] { return RecordedInMetrics() == 9; }));
  EndAgent();
  EXPECT_EQ(saved(), 9u) << "the agent that ends saves what it was told last";
}

// A consumer that was started again while the relay is away says so after some seconds.
TEST_F(NodeTest, ARelayThatIsAwayIsWaitedForAtTheEnd) {
  api_->Put(kSessions, "ADDED", SessionObject("shop"));
  api_->Put(kPods, "ADDED", PodObject());
  MakeVolume();
  ASSERT_TRUE(Until([&] { return Last<ipc::StartConsumer>(said_) != nullptr; }));
  ConnectConsumer();
  ASSERT_TRUE(Until([&] { return Last<ipc::ChannelDefinition>(told_) != nullptr; }));
  const uint64_t id = Last<ipc::ChannelDefinition>(told_)->id;
  ASSERT_TRUE(consumer_.Send(
      ipc::ChannelReady{.channel_id = id, .error = "relay r: no answer", .waits = true}));
  api_->Put(kSessions, "MODIFIED", SessionObject("shop", "Draining"));
  ASSERT_TRUE(Until([&] { return Last<ipc::Sync>(said_) != nullptr; }));
  ASSERT_TRUE(keeper_.Send(ipc::Synced{Last<ipc::Sync>(said_)->number}));
  ASSERT_TRUE(Until([&] { return Last<ipc::StopChannel>(told_) != nullptr; }));
  ASSERT_TRUE(SaysPhase("Draining"));
  ASSERT_TRUE(consumer_.Send(ipc::Drained{id, {.recorded = 7, .delivered = 7}}));
  ASSERT_TRUE(SaysPhase("Completed"));
  EXPECT_EQ(SessionStatus()["events"]["delivered"], 7);
}

TEST_F(NodeTest, APodOfAnotherLabelIsLeftAlone) {
  const fs::path volume = MakeVolume();
  api_->Put(kPods, "ADDED", PodObject());
  api_->Put(kSessions, "ADDED", SessionObject("other"));
  ASSERT_TRUE(SaysPhase("Recording"));
  ASSERT_TRUE(Until([&] { return fs::is_socket(volume / "agent.sock"); }));
  EXPECT_FALSE(SessionStatus().contains("pods")) << "0, which is not written";
  EXPECT_EQ(Last<ipc::StartConsumer>(said_), nullptr);
}

TEST_F(NodeTest, AnotherNodesSessionIsNoneOfOurs) {
  Json foreign = SessionObject("shop");
  foreign["spec"]["nodeName"] = "n2";
  api_->Put(kSessions, "ADDED", foreign);
  Json own = SessionObject("shop");
  own["metadata"]["uid"] = "own";
  api_->Put(kSessions, "ADDED", own);
  ASSERT_TRUE(SaysPhase("Recording"));
  EXPECT_FALSE(fs::exists(folder_ / "sessions/s.json"));
  EXPECT_TRUE(fs::exists(folder_ / "sessions/own.json"));
}

TEST_F(NodeTest, ReportsAnImpossibleOrderAndRecoversWithABetterOne) {
  Json wrong = SessionObject("shop");
  wrong["spec"]["relay"]["data"] = "other.weft-relay.weft.svc:2";
  api_->Put(kSessions, "ADDED", wrong);
  ASSERT_TRUE(SaysPhase("Failed"));
  EXPECT_THAT(SessionStatus()["conditions"][0]["message"].get<std::string>(),
              HasSubstr("different hosts"));
  api_->Put(kSessions, "MODIFIED", SessionObject("shop"));
  EXPECT_TRUE(SaysPhase("Recording"));
}

TEST_F(NodeTest, RefusesASessionOfAnotherWeft) {
  Json foreign = SessionObject("shop");
  foreign["spec"]["relay"] = {
      {"name", "r"}, {"control", "evil.shop.svc:1"}, {"data", "evil.shop.svc:2"}};
  api_->Put(kSessions, "ADDED", foreign);
  ASSERT_TRUE(SaysPhase("Failed"));
  EXPECT_THAT(SessionStatus()["conditions"][0]["message"].get<std::string>(),
              HasSubstr("evil.shop.svc:1 is no relay of this weft"));
  Json wide = SessionObject("shop");
  wide["metadata"]["uid"] = "wide";
  wide["spec"]["clusterWide"] = true;
  api_->Put(kSessions, "ADDED", wide);
  ASSERT_TRUE(Until([&] {
    return SessionStatus()["conditions"][0]["message"].get<std::string>().contains("ClusterTraces");
  }));
  EXPECT_TRUE(fs::is_empty(folder_ / "sessions"));
  api_->Put(kSessions, "MODIFIED", SessionObject("shop"));
  EXPECT_TRUE(SaysPhase("Recording"));
}

}  // namespace
}  // namespace weft::agent
