// SPDX-License-Identifier: Apache-2.0
// Files and connections that a consumer, which the test plays, asks for; the relay is a listening
// socket.
#include "node-agent/agent/consumers/consumer_requests.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "node-agent/agent/testing/parts_fixture.h"

namespace weft::agent {
namespace {

// A port on loopback. If nothing listens, connections are refused, and no other program gets it.
class Relay {
 public:
  explicit Relay(bool listens = true)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    if (listens) {
      EXPECT_EQ(listen(fd_.get(), 8), 0);
    }
    EXPECT_EQ(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  [[nodiscard]] uint16_t port() const { return port_; }
  // Returns how many have connected since the last call. Waits for the first, if one is expected.
  int Accepted(bool is_expected = false) {
    int count = 0;
    pollfd ready{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (is_expected) poll(&ready, 1, 60'000);
    while (UniqueFd(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid()) ++count;
    return count;
  }

 private:
  UniqueFd fd_;
  uint16_t port_ = 0;
};

// Remembers what it was asked for. The test answers.
class HeldAccess final : public RelayAccess {
 public:
  void GetPass(const std::string& relay_host, const std::string& kubernetes_namespace,
               bool was_refused, Done done) override {
    asked.push_back(relay_host + " " + kubernetes_namespace + (was_refused ? " refused" : ""));
    held.push_back(std::move(done));
  }
  [[nodiscard]] Result<std::string> authorities() const override { return known; }

  std::vector<std::string> asked;
  std::vector<Done> held;
  Result<std::string> known = "the CA";
};

class ConsumerRequestsTest : public testing::PartsFixture {
 protected:
  ConsumerRequestsTest() {
    session().relay = {
        .host = "127.0.0.1", .control_port = control_.port(), .data_port = data_.port()};
    Connect();
    (void)Told();
  }

  // Runs the loop until the consumer has an answer, and returns it.
  template <typename Answer>
  Answer Wait() {
    RunUntil([this] {
      pollfd p{consumer_.fd(), POLLIN, 0};
      return poll(&p, 1, 0) == 1;
    });
    auto message = consumer_.Wait(std::chrono::seconds(60));
    EXPECT_TRUE(message) << message.error().message;
    auto* answer = message ? std::get_if<Answer>(&*message) : nullptr;
    EXPECT_NE(answer, nullptr);
    return answer != nullptr ? std::move(*answer) : Answer();
  }
  ipc::FileAnswer AskForFile(const std::string& name) {
    Say(ipc::FileRequest{.request = ++request_, .name = name});
    auto answer = Wait<ipc::FileAnswer>();
    EXPECT_EQ(answer.request, request_);
    return answer;
  }
  ipc::ConnectionAnswer AskForConnection(bool data = false) {
    Say(ipc::ConnectionRequest{.request = ++request_, .channel_id = id(), .data = data});
    auto answer = Wait<ipc::ConnectionAnswer>();
    EXPECT_EQ(answer.request, request_);
    return answer;
  }
  // The session is of another consumer from now on.
  void GiveSessionAway() {
    for (SessionChannel& other : session().channels) other.consumer = "bank";
  }

  Relay control_, data_;
  HeldAccess access_;
  uint64_t request_ = 100;
};

TEST_F(ConsumerRequestsTest, OpensFilesBeneathTheOutputFolderOnly) {
  EXPECT_NE(AskForFile("stream").error, 0) << "there is no folder";
  std::filesystem::create_directory(folder() + "/out");
  parts_->requests.SetOutput(std::move(*OutputFolder::Open(folder() + "/out")));
  const auto answer = AskForFile("ust/stream");
  EXPECT_EQ(answer.error, 0);
  ASSERT_TRUE(answer.fd);
  EXPECT_EQ(write(answer.fd.get(), "x", 1), 1);
  EXPECT_EQ(std::filesystem::file_size(folder() + "/out/ust/stream"), 1u);
  listener_.notes.clear();
  const auto refused = AskForFile("../stream");
  EXPECT_NE(refused.error, 0);
  EXPECT_FALSE(refused.fd);
  ASSERT_EQ(listener_.notes.size(), 1u);
  EXPECT_TRUE(listener_.notes[0].starts_with("../stream: ")) << listener_.notes[0];
}

TEST_F(ConsumerRequestsTest, ConnectsToTheRelayOfTheChannel) {
  const auto control = AskForConnection();
  EXPECT_EQ(control.error, "");
  EXPECT_TRUE(control.fd);
  EXPECT_EQ(control.authorities + control.server_name + control.ticket, "") << "local mode";
  EXPECT_EQ(control_.Accepted(true), 1);
  EXPECT_EQ(data_.Accepted(), 0);
  EXPECT_TRUE(AskForConnection(/*data=*/true).fd);
  EXPECT_EQ(control_.Accepted(), 0);
  EXPECT_EQ(data_.Accepted(true), 1);
}

TEST_F(ConsumerRequestsTest, AChannelOfAnotherConsumerHasNoRelay) {
  GiveSessionAway();
  EXPECT_EQ(AskForConnection().error, "the channel has no relay");
  Say(ipc::RelayRefusal{.channel_id = id(), .reason = "full"});
  EXPECT_EQ(session().relay_refusal, "");
  EXPECT_EQ(control_.Accepted(), 0);
}

TEST_F(ConsumerRequestsTest, ASessionWithoutARelayHasNone) {
  session().relay = {};
  EXPECT_EQ(AskForConnection().error, "the channel has no relay");
}

TEST_F(ConsumerRequestsTest, TheSessionKnowsWhetherItsRelayIsThere) {
  const Relay away(/*listens=*/false);
  session().relay.control_port = away.port();
  listener_.changes = 0;
  for (int i = 0; i < 2; ++i) EXPECT_NE(AskForConnection().error, "");
  EXPECT_NE(session().relay_failure, "");
  EXPECT_EQ(listener_.changes, 1) << "the second failure was no news";
  EXPECT_TRUE(AskForConnection(/*data=*/true).fd);
  EXPECT_EQ(session().relay_failure, "");
  EXPECT_EQ(listener_.changes, 2);
}

TEST_F(ConsumerRequestsTest, TheSessionKnowsWhatItsRelayRefuses) {
  listener_.changes = 0;
  for (int i = 0; i < 2; ++i) Say(ipc::RelayRefusal{.channel_id = id(), .reason = "full"});
  EXPECT_EQ(session().relay_refusal, "full");
  EXPECT_EQ(listener_.changes, 1);
  Say(ipc::RelayRefusal{.channel_id = id(), .reason = ""});
  EXPECT_EQ(session().relay_refusal, "");
  EXPECT_EQ(listener_.changes, 2);
}

TEST_F(ConsumerRequestsTest, AControlConnectionComesWithATicket) {
  parts_->requests.SetRelayAccess(access_);
  Say(ipc::ConnectionRequest{.request = 1, .channel_id = id(), .was_refused = true});
  EXPECT_EQ(access_.asked, std::vector<std::string>{"127.0.0.1 shop refused"});
  EXPECT_EQ(control_.Accepted(), 0);
  access_.held.at(0)(RelayPass{.authorities = "the CA", .ticket = "a ticket"});
  const auto answer = Wait<ipc::ConnectionAnswer>();
  EXPECT_TRUE(answer.fd);
  EXPECT_EQ(answer.ticket, "a ticket");
  EXPECT_EQ(answer.authorities, "the CA");
  EXPECT_EQ(answer.server_name, "127.0.0.1");
}

TEST_F(ConsumerRequestsTest, ADataConnectionNeedsNoTicket) {
  parts_->requests.SetRelayAccess(access_);
  const auto answer = AskForConnection(/*data=*/true);
  EXPECT_TRUE(answer.fd);
  EXPECT_EQ(answer.authorities, "the CA");
  EXPECT_EQ(answer.server_name, "127.0.0.1");
  EXPECT_EQ(answer.ticket, "");
  EXPECT_TRUE(access_.asked.empty());
  access_.known = Fail(ErrorCode::kNotFound, "no CA");
  EXPECT_EQ(AskForConnection(/*data=*/true).error, "no CA");
}

TEST_F(ConsumerRequestsTest, WithoutATicketNothingConnects) {
  parts_->requests.SetRelayAccess(access_);
  Say(ipc::ConnectionRequest{.request = 1, .channel_id = id()});
  access_.held.at(0)(Fail(ErrorCode::kPermission, "no ticket"));
  const auto answer = Wait<ipc::ConnectionAnswer>();
  EXPECT_EQ(answer.error, "no ticket");
  EXPECT_FALSE(answer.fd);
  EXPECT_EQ(session().relay_failure, "no ticket");
  EXPECT_EQ(control_.Accepted(), 0);
}

TEST_F(ConsumerRequestsTest, AnotherConnectionDoesNotGetTheAnswer) {
  parts_->requests.SetRelayAccess(access_);
  const auto ask = [this] { Say(ipc::ConnectionRequest{.request = 1, .channel_id = id()}); };
  ask();
  Connect();
  ask();
  // A new consumer gets this name once its last session has ended.
  parts_->consumers.Stop("shop");
  Connect();
  ask();
  (void)Told();
  ASSERT_EQ(access_.held.size(), 3u);
  for (size_t i = 0; i < 3; ++i)
    access_.held[i](Fail(ErrorCode::kPermission, "answer " + std::to_string(i)));
  EXPECT_EQ(Wait<ipc::ConnectionAnswer>().error, "answer 2");
  EXPECT_EQ(Names(Told()), "");
}

}  // namespace
}  // namespace weft::agent
