// SPDX-License-Identifier: Apache-2.0
// For tests of the agent's parts: a folder, a session as a node of a cluster has it, and a
// listener that records the events of sessions.
#ifndef WEFT_NODE_AGENT_AGENT_TESTING_AGENT_FIXTURE_H_
#define WEFT_NODE_AGENT_AGENT_TESTING_AGENT_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "lib/ipc/messages.h"
#include "node-agent/agent/session/session.h"
#include "node-agent/agent/session/session_listener.h"

namespace weft::agent::testing {

// Returns a session of this namespace that records user events, with one channel, in the container
// "pod/main".
inline Session MakeClusterSession(const std::string& name_space = "shop") {
  api::TraceSession order;
  order.metadata = {.name = "t-1", .name_space = name_space, .uid = "u"};
  order.spec.node_name = "n1";
  order.spec.trace_name = "t";
  order.spec.trace_uid = "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";
  order.spec.trace_generation = 1;
  order.spec.relay = {.name = "r", .control = "relay.svc:4460", .data = "relay.svc:4461"};
  order.spec.record.user.events = {{.name = "shop:*"}};
  auto session = Session::FromOrder(std::move(order));
  EXPECT_TRUE(session) << session.error().message;
  session->AddChannel({"pod/main", name_space, "shop-0", "pod", "main"});
  return std::move(*session);
}

class NotingListener final : public SessionListener {
 public:
  void SessionChanged(Session&) override { ++changes; }
  void ChannelFailed(Session&, const std::string& why) override { failures.push_back(why); }
  void Note(std::string text) override { notes.push_back(std::move(text)); }

  int changes = 0;
  std::vector<std::string> failures, notes;
};

class AgentFixture : public ::testing::Test {
 protected:
  AgentFixture() {
    char name[] = "/tmp/weft-agent-part-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  ~AgentFixture() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] const std::string& folder() const { return folder_; }
  void ToKeeper(ipc::Message message) { kept_.push_back(std::move(message)); }
  // Returns how many messages of this kind the keeper got.
  template <typename Message>
  [[nodiscard]] size_t Count() const {
    size_t count = 0;
    for (const ipc::Message& message : kept_)
      count += std::holds_alternative<Message>(message) ? 1 : 0;
    return count;
  }
  // Returns the last message of this kind to the keeper; there must be one.
  template <typename Message>
  Message& Last() {
    for (size_t i = kept_.size(); i-- > 0;)
      if (auto* message = std::get_if<Message>(&kept_[i])) return *message;
    ADD_FAILURE() << "the keeper got no such message";
    std::abort();
  }

 private:
  std::string folder_;
  std::vector<ipc::Message> kept_;
};

}  // namespace weft::agent::testing

#endif  // WEFT_NODE_AGENT_AGENT_TESTING_AGENT_FIXTURE_H_
