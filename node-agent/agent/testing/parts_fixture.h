// SPDX-License-Identifier: Apache-2.0
// For tests of parts that need most others: all parts as the agent has them, one session, and the
// consumer of its channel, which the test plays.
#ifndef WEFT_NODE_AGENT_AGENT_TESTING_PARTS_FIXTURE_H_
#define WEFT_NODE_AGENT_AGENT_TESTING_PARTS_FIXTURE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/pidfd.h"
#include "node-agent/agent/core/agent_parts.h"
#include "node-agent/agent/testing/agent_fixture.h"

namespace weft::agent::testing {

// A process may have ring sets of any container; the container of none is known.
class AnyProcessBelongs final : public ContainerLookup {
 public:
  bool Belongs(const std::string&, const CallerId&) override { return true; }
  std::optional<std::string> ContainerOf(int32_t) override { return std::nullopt; }
};

class PartsFixture : public AgentFixture {
 protected:
  static constexpr uint64_t kInstance = 42;

  PartsFixture() {
    MakeParts();
    EXPECT_TRUE(parts_->sessions.Add("one", MakeClusterSession()));
  }

  // Makes the parts as an agent does when it starts.
  void MakeParts() {
    loop_.AfterEachRound([this] { parts_->consumers.Pump(); });
    parts_ = std::make_unique<AgentParts>(
        loop_, folder(), JournalFiles(),
        [this](ipc::Message message) {
          if (on_keeper_) on_keeper_(message);
          ToKeeper(std::move(message));
        },
        listener_, lookup_);
  }

  [[nodiscard]] Session& session() { return *parts_->sessions.Find("one"); }
  [[nodiscard]] SessionChannel& channel() { return session().channels.front(); }
  [[nodiscard]] uint64_t id() { return channel().definition.id; }
  // Returns the channel as its file has it.
  [[nodiscard]] SessionChannel Saved() {
    SessionStore store(folder(), [](const std::string&) {});
    const Status loaded = store.Load("one");
    EXPECT_TRUE(loaded) << loaded.error().message;
    return store.Find("one")->channels.front();
  }

  // Adopts a ring set of the channel, of this process.
  void AdoptRing(uint64_t instance = kInstance) { AdoptRing(getpid(), instance); }
  void AdoptRing(pid_t pid, uint64_t instance) {
    ipc::Arrived arrived{.key = "ring/" + std::to_string(instance), .pid = pid};
    arrived.fd.reset(memfd_create("ring", MFD_CLOEXEC));
    arrived.pidfd = OpenPidfd(pid);
    const RingEntry* ring = parts_->processes.Adopt(arrived, id(), instance);
    ASSERT_NE(ring, nullptr);
    parts_->processes.Watch(ring->process);
  }

  // Connects the consumer anew, and says Hello. Returns when the parts have heard it.
  void Connect() {
    parts_->consumers.Start("shop");
    auto pair = ipc::Connection::MakePair();
    ASSERT_TRUE(pair);
    consumer_ = ipc::Connection(std::move(pair->first));
    parts_->consumers.Connect({"shop", std::move(pair->second)});
    Say(ipc::Hello{.pid = getpid()});
  }
  // The consumer says this. Returns when the parts have heard it.
  void Say(ipc::Message message) {
    const uint64_t handled = parts_->consumers.handled();
    ASSERT_TRUE(consumer_.Send(std::move(message)));
    RunUntil([&] { return parts_->consumers.handled() > handled; });
  }
  // Runs the loop until `is_done`.
  void RunUntil(const std::function<bool()>& is_done) {
    const auto timer = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (is_done()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }
  // Returns what the consumer was told since the last call.
  std::vector<ipc::Message> Told() {
    constexpr uint64_t kLast = 0;  // no channel has this id
    parts_->consumers.Tell("shop", [] { return ipc::ForgetChannel{kLast}; });
    parts_->consumers.Pump();
    std::vector<ipc::Message> told;
    for (;;) {
      auto message = consumer_.Wait(std::chrono::seconds(60));
      EXPECT_TRUE(message) << message.error().message;
      const auto* last = message ? std::get_if<ipc::ForgetChannel>(&*message) : nullptr;
      if (!message || (last != nullptr && last->channel_id == kLast)) return told;
      told.push_back(std::move(*message));
    }
  }
  // Returns the names of these messages, each followed by a space.
  static std::string Names(const std::vector<ipc::Message>& messages) {
    std::string names;
    for (const ipc::Message& message : messages)
      names += std::string(ipc::MessageName(message)) + " ";
    return names;
  }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  NotingListener listener_;
  AnyProcessBelongs lookup_;
  std::function<void(const ipc::Message&)> on_keeper_;  // called before the keeper gets a message
  std::unique_ptr<AgentParts> parts_;
  ipc::Connection consumer_;
};

}  // namespace weft::agent::testing

#endif  // WEFT_NODE_AGENT_AGENT_TESTING_PARTS_FIXTURE_H_
