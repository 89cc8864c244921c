// SPDX-License-Identifier: Apache-2.0
// Tickets from a relay over TLS, whose API the test is, with the relay's real server.
#include "node-agent/agent/cluster/relay_tickets.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>

#include "lib/http/certificates.h"
#include "lib/http/server.h"
#include "lib/kube/testing_transport.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

using kube::Json;

constexpr const char* kRelay = "localhost";
constexpr const char* kMaps = "/api/v1/namespaces/weft/configmaps";

using Requests = std::vector<std::string>;  // each "PATH AUTHORIZATION"

http::Validity Today() { return {std::chrono::system_clock::now(), std::chrono::hours(24)}; }

Json MapObject(const std::string& bundle) {
  return {{"metadata", {{"name", "weft-relay-ca"}, {"namespace", "weft"}}},
          {"data", {{"ca.crt", bundle}}}};
}

class RelayTicketsTest : public testing::Test {
 protected:
  RelayTicketsTest() {
    char name[] = "/tmp/weft-tickets-test-XXXXXX";
    const UniqueFd fd(mkstemp(name));
    token_file_ = name;
    std::ofstream(token_file_) << "node-token";
    map_ = MapObject(authority_->certificate_pem);
    auto transport = std::make_unique<kube::testing::TestTransport>(
        [this](const kube::HttpRequest& /*request*/) {
          const Json items = map_.is_null() ? Json::array() : Json::array({map_});
          return kube::testing::Reply(200,
                                      {{"items", items}, {"metadata", {{"resourceVersion", "1"}}}});
        });
    api_ = transport.get();
    client_ = std::make_unique<kube::Client>(std::move(transport), "weft-agent");
    auto relay = http::Server::Start(
        {.tls = true}, [this](const http::Request& request) { return Answer(request); });
    EXPECT_TRUE(relay);
    relay_ = std::move(*relay);
    SetCertificate(*authority_, kRelay);
  }
  ~RelayTicketsTest() override { unlink(token_file_.c_str()); }

  void SetCertificate(const http::KeyPair& authority, const char* name) {
    const auto pair = http::MakeServerCertificate(authority, {name}, Today());
    ASSERT_TRUE(pair);
    ASSERT_TRUE(relay_->SetCertificate({pair->certificate_pem, pair->key_pem}));
  }
  http::Response Answer(const http::Request& request) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(request.path + " " + request.Header("authorization"));
    if (status_ != 200) return {.status = status_, .body = "no pods of yours\nsecret"};
    return {
        .body =
            Json({{"ticket", "ticket-" + std::to_string(asked_.size())}, {"seconds", 100}}).dump()};
  }
  // Returns what the relay was asked for.
  Requests asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  void SetStatus(int status) {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }

  // Makes the tickets. Returns when they know what the API server's ConfigMap holds.
  void Start() {
    tickets_.emplace(*client_, loop_,
                     RelayTicketOptions{.token_file = token_file_,
                                        .api_port = relay_->port(),
                                        .own_namespace = "weft",
                                        .now = [this] { return now_; }});
    WaitFor([this] {
      return !api_->requests().empty() && (map_.is_null() || tickets_->authorities());
    });
  }
  static void WaitFor(const std::function<bool()>& is_so) {
    // Longer than anything takes: only a failure waits for it.
    for (int i = 0; i < 60'000 && !is_so(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(is_so());
  }
  void Begin(const std::string& name_space, bool was_refused = false) {
    tickets_->GetPass(kRelay, name_space, was_refused,
                      [this](Result<RelayPass> pass) { passes_.push_back(std::move(pass)); });
  }
  // Runs the loop until so many requests of Begin have an answer.
  void RunUntil(size_t count) {
    WaitInLoop([&] { return passes_.size() >= count; });
  }
  Result<RelayPass> GetPass(const std::string& name_space, bool was_refused = false) {
    const size_t before = passes_.size();
    Begin(name_space, was_refused);
    RunUntil(before + 1);
    return passes_.back();
  }
  std::string Ticket(const std::string& name_space, bool was_refused = false) {
    const auto pass = GetPass(name_space, was_refused);
    return pass ? pass->ticket : pass.error().message;
  }

  // The ticket that a request gets without a wait.
  std::string TicketAtOnce(const std::string& name_space) {
    const size_t before = passes_.size();
    Begin(name_space);
    return passes_.size() > before && passes_.back() ? passes_.back()->ticket : "none";
  }
  // Runs the loop until this is so.
  void WaitInLoop(const std::function<bool()>& is_so) {
    const auto timer = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (is_so()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }

  const Result<http::KeyPair> authority_ = http::MakeAuthority("ca", Today());
  std::string token_file_;
  Json map_;  // null: there is none
  kube::testing::TestTransport* api_ = nullptr;
  std::unique_ptr<kube::Client> client_;
  std::mutex mutex_;
  int status_ = 200;
  std::vector<std::string> asked_;
  std::unique_ptr<http::Server> relay_;
  RelayTickets::Clock::time_point now_ = RelayTickets::Clock::now();
  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::vector<Result<RelayPass>> passes_;
  std::optional<RelayTickets> tickets_;
};

TEST_F(RelayTicketsTest, ShowsTheNodesTokenAndGetsATicketForTheNamespace) {
  Start();
  const auto pass = GetPass("shop");
  ASSERT_TRUE(pass) << pass.error().message;
  EXPECT_EQ(pass->ticket, "ticket-1");
  EXPECT_EQ(pass->authorities, authority_->certificate_pem);
  EXPECT_EQ(asked(), Requests({"/v1/tickets/shop Bearer node-token"}));
  const std::string target = api_->requests().front().target;
  EXPECT_TRUE(target.starts_with(kMaps)) << target;
  EXPECT_TRUE(target.contains("metadata.name%3Dweft-relay-ca")) << target;
}

TEST_F(RelayTicketsTest, ReplacesATicketBesideRequestsWhenHalfOfItsLifetimeIsOver) {
  Start();
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  now_ += std::chrono::seconds(49);
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  EXPECT_EQ(asked().size(), 1u);
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(TicketAtOnce("shop"), "ticket-1");
  EXPECT_EQ(TicketAtOnce("shop"), "ticket-1");
  WaitInLoop([this] { return TicketAtOnce("shop") == "ticket-2"; });
  EXPECT_EQ(asked().size(), 2u);
}

TEST_F(RelayTicketsTest, UsesATicketToItsEndWhileTheRelayGivesNone) {
  Start();
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  SetStatus(503);
  now_ += std::chrono::seconds(50);
  EXPECT_EQ(TicketAtOnce("shop"), "ticket-1");
  now_ += std::chrono::seconds(49);
  EXPECT_EQ(TicketAtOnce("shop"), "ticket-1");
  now_ += std::chrono::seconds(1);
  EXPECT_FALSE(GetPass("shop"));
  SetStatus(200);
  EXPECT_TRUE(GetPass("shop"));
}

TEST_F(RelayTicketsTest, ARefusedTicketIsNotUsedAgain) {
  Start();
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  SetStatus(503);
  now_ += kTicketPause;
  EXPECT_FALSE(GetPass("shop", /*was_refused=*/true));
  EXPECT_FALSE(GetPass("shop"));
  SetStatus(200);
  EXPECT_EQ(Ticket("shop"), "ticket-4");
}

TEST_F(RelayTicketsTest, EachNamespaceHasItsOwnTicket) {
  Start();
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  EXPECT_EQ(Ticket("bank"), "ticket-2");
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  EXPECT_TRUE(asked().back().starts_with("/v1/tickets/bank "));
}

TEST_F(RelayTicketsTest, ARefusedTicketIsReplacedAndNotWithoutAPause) {
  Start();
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  EXPECT_EQ(Ticket("shop", /*was_refused=*/true), "ticket-1") << "it is new";
  now_ += kTicketPause;
  EXPECT_EQ(Ticket("shop"), "ticket-1");
  EXPECT_EQ(Ticket("shop", /*was_refused=*/true), "ticket-2");
  EXPECT_EQ(Ticket("shop", /*was_refused=*/true), "ticket-2");
}

TEST_F(RelayTicketsTest, OneRequestAnswersAllThatWait) {
  Start();
  for (int i = 0; i < 3; ++i) Begin("shop");
  RunUntil(3);
  for (const auto& pass : passes_) {
    ASSERT_TRUE(pass) << pass.error().message;
    EXPECT_EQ(pass->ticket, "ticket-1");
  }
  EXPECT_EQ(asked().size(), 1u);
}

TEST_F(RelayTicketsTest, ARefusalIsToldAndNotRemembered) {
  Start();
  SetStatus(403);
  const auto refused = GetPass("shop");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermission);
  EXPECT_EQ(refused.error().message, "no ticket from the relay: 403 no pods of yours");
  SetStatus(200);
  EXPECT_EQ(Ticket("shop"), "ticket-2");
}

// With the node's token, another server could get tickets for all namespaces of the node.
TEST_F(RelayTicketsTest, ARelayOfAnotherAuthorityDoesNotSeeTheToken) {
  Start();
  SetCertificate(*http::MakeAuthority("another", Today()), kRelay);
  const auto pass = GetPass("shop");
  ASSERT_FALSE(pass);
  EXPECT_EQ(pass.error().code, ErrorCode::kIo);
  SetCertificate(*authority_, "another.relay");
  EXPECT_FALSE(GetPass("shop"));
  EXPECT_EQ(asked(), Requests());
}

TEST_F(RelayTicketsTest, WithoutTheAuthorityThereIsNoPass) {
  map_ = nullptr;
  Start();
  Begin("shop");
  ASSERT_EQ(passes_.size(), 1u) << "at once";
  ASSERT_FALSE(passes_[0]);
  EXPECT_EQ(passes_[0].error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(passes_[0].error().message.contains("ConfigMap weft/weft-relay-ca"));
  api_->Put(kMaps, "ADDED", MapObject(authority_->certificate_pem));
  WaitFor([this] { return tickets_->authorities().has_value(); });
  EXPECT_EQ(Ticket("shop"), "ticket-1");
}

TEST_F(RelayTicketsTest, TrustsAnAuthorityUntilItIsReplaced) {
  Start();
  map_ = nullptr;  // for the next list
  api_->Put(kMaps, "MODIFIED", MapObject("next"));
  api_->Put(kMaps, "DELETED", MapObject("deleted"));
  api_->Put(kMaps, "MODIFIED", MapObject(""));
  // The watch expires after these events, and they are listed anew.
  const size_t before = api_->requests().size();
  api_->Put(kMaps, "ERROR", {{"kind", "Status"}, {"code", 410}});
  WaitFor([&] { return api_->requests().size() > before; });
  EXPECT_EQ(tickets_->authorities(), "next");
}

TEST(ParseRelayTicket, TakesATicketAndItsLifetime) {
  const auto ticket = ParseRelayTicket(R"({"ticket": "t", "seconds": 60, "node": "n1"})");
  ASSERT_TRUE(ticket);
  EXPECT_EQ(ticket->text, "t");
  EXPECT_EQ(ticket->lifetime, std::chrono::seconds(60));
  const auto endless = ParseRelayTicket(R"({"ticket": "t", "seconds": 18446744073709551615})");
  ASSERT_TRUE(endless);
  EXPECT_EQ(endless->lifetime, std::chrono::seconds(kMaxTicketSeconds));
}

TEST(ParseRelayTicket, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{"), std::string(R"({"seconds": 60})"),
        std::string(R"({"ticket": "t"})"), std::string(R"({"ticket": "", "seconds": 60})"),
        std::string(R"({"ticket": 7, "seconds": 60})"),
        std::string(R"({"ticket": "t", "seconds": -1})"),
        std::string(R"({"ticket": "t", "seconds": "60"})"),
        R"({"ticket": ")" + std::string(kMaxTicketBytes + 1, 't') + R"(", "seconds": 60})"}) {
    const auto ticket = ParseRelayTicket(text);
    ASSERT_FALSE(ticket) << text;
    EXPECT_EQ(ticket.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace weft::agent
