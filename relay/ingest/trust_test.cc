// SPDX-License-Identifier: Apache-2.0
// The relay's listeners with a gate, against clients on loopback with and without TLS and tickets:
// who is welcomed, what is refused, counted and closed, and that strangers keep no node out.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "lib/http/certificates.h"
#include "lib/stream/packet.h"
#include "lib/tls/engine.h"
#include "relay/ingest/archive.h"
#include "relay/ingest/server.h"
#include "relay/ingest/stream_shares.h"

namespace weft::ingest {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr const char* kName = "relay.svc";
constexpr const char* kUid = "00000000-0000-0000-0000-000000000001";
const stream::OpenTrace kOpenTrace{.trace = 1,
                                   .pod = "p",
                                   .pod_uid = "",
                                   .container = "c",
                                   .uuid = kUid,
                                   .path = "ust",
                                   .metadata = 0};
constexpr std::chrono::seconds kPatience{20};
const http::Validity kToday{.now = std::chrono::system_clock::now(),
                            .lifetime = std::chrono::hours(24)};

UniqueFd Connect(const std::string& address) {
  const auto port = static_cast<uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval limit{kPatience.count(), 0};
  EXPECT_EQ(setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

// A node's connection with TLS.
class Client {
 public:
  Client(const std::string& address, const std::string& authority_pem)
      : fd_(Connect(address)),
        tls_(*tls::Engine::Connect(*tls::ClientContext::Make(authority_pem), kName)) {
    Flush();
    while (!tls_.established() && Receive()) continue;
  }

  [[nodiscard]] bool established() const { return tls_.established(); }
  [[nodiscard]] const std::string& problem() const { return problem_; }

  void Write(Bytes bytes) {
    if (tls_.Write(bytes)) Flush();
  }
  void Say(const stream::Message& message) {
    std::string text;
    ASSERT_TRUE(stream::Append(message, text));
    Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  // The next message; std::nullopt: the connection ended.
  std::optional<stream::Message> Hear() {
    for (;;) {
      auto message = reader_.Next();
      if (message && *message) return std::move(**message);
      std::vector<uint8_t> room(10'000);
      const auto n = tls_.Read(room);
      if (n && *n > 0) {
        reader_.Push(Bytes(room).first(*n));
      } else if (!n || !Receive()) {
        return std::nullopt;
      }
    }
  }
  // What the relay answers to this hello: "welcome", or the reason of a refusal; "": it closed.
  std::string Meet(const stream::Hello& hello) {
    Say(stream::Offer{.versions = {WEFT_STREAM_VERSION}});
    if (!Hear()) return "";
    Say(hello);
    const auto answer = Hear();
    if (!answer) return "";
    if (const auto* welcome = std::get_if<stream::Welcome>(&*answer)) {
      session_ = welcome->session;
      return "welcome";
    }
    const auto* refusal = std::get_if<stream::Refusal>(&*answer);
    return refusal == nullptr ? "another message" : refusal->reason;
  }
  [[nodiscard]] uint64_t session() const { return session_; }

 private:
  void Flush() {
    while (!tls_.out().empty()) {
      const Bytes out = tls_.out();
      const ssize_t n = send(fd_.get(), out.data(), out.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      tls_.Sent(static_cast<size_t>(n));
    }
  }
  // False: the connection ended, or the channel refuses what came.
  bool Receive() {
    std::vector<uint8_t> room(10'000);
    const ssize_t n = recv(fd_.get(), room.data(), room.size(), 0);
    if (n <= 0) return false;
    const Status status = tls_.Receive(Bytes(room).first(static_cast<size_t>(n)));
    Flush();
    if (!status) problem_ = status.error().message;
    return status.has_value();
  }

  UniqueFd fd_;
  tls::Engine tls_;
  stream::MessageReader reader_;
  std::string problem_;
  uint64_t session_ = 0;
};

class GatedServer : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "weft-trust-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    maker_.emplace(UniqueFd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    retention_.emplace(*maker_, metrics_, StorageLimits());
    archive_.emplace(*maker_, safe_, metrics_, rates_, *retention_);
    UseCertificate(authority_);
    Present("n1", "shop", "t");
    server_ = *Server::Make(*archive_, metrics_,
                            {.control = "127.0.0.1:0",
                             .data = "127.0.0.1:0",
                             .gate = &gate_,
                             .hello_limit = hello_limit_});
    thread_ = std::thread([this] { EXPECT_TRUE(server_->Run()); });
  }
  void TearDown() override {
    // Run takes this signal.
    kill(getpid(), SIGTERM);
    thread_.join();
    std::filesystem::remove_all(folder_);
  }

  void UseCertificate(const http::KeyPair& authority) {
    const auto pair = http::MakeServerCertificate(authority, {kName}, kToday);
    ASSERT_TRUE(gate_.SetCertificate(pair->certificate_pem, pair->key_pem));
  }
  void Present(const std::string& node, const std::string& name_space, const std::string& trace) {
    sessions_.push_back({{"metadata", {{"namespace", name_space}}},
                         {"spec", {{"nodeName", node}, {"traceName", trace}, {"traceUid", kUid}}}});
    gate_.sessions().Replace(sessions_);
  }
  [[nodiscard]] stream::Hello HelloOf(const std::string& trace = "t") const {
    return {.node = "n1",
            .kubernetes_namespace = "shop",
            .trace = trace,
            .trace_uid = kUid,
            .ticket = *gate_.IssueTicket("n1", "shop")};
  }
  [[nodiscard]] std::string Control() const { return server_->control_address(); }
  [[nodiscard]] Client Node() const { return {Control(), authority_.certificate_pem}; }
  // Waits until so many were refused for this reason.
  void ExpectRefused(const std::string& reason, int count) const {
    const std::string sample = "weft_relay_refused_sessions_total{reason=\"" + reason + "\"} " +
                               std::to_string(count) + "\n";
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (metrics_.Text().find(sample) == std::string::npos) {
      ASSERT_LT(std::chrono::steady_clock::now(), until) << sample << metrics_.Text();
      std::this_thread::sleep_for(5ms);
    }
  }

  std::chrono::milliseconds hello_limit_ = kHelloTime;
  std::string folder_;
  std::atomic<int64_t> now_{1000};
  metrics::Registry metrics_{metrics::Part::kRelay};
  store::SafeReads safe_;
  relay_rates::TraceRates rates_;
  std::optional<store::DirectoryFileMaker> maker_;
  std::optional<Retention> retention_;
  std::optional<DiskArchive> archive_;
  const http::KeyPair authority_ = *http::MakeAuthority("ca", kToday);
  relay_trust::Gate gate_{
      relay_trust::TicketBook({1, 2, 3}, [this] { return std::chrono::seconds(now_.load()); })};
  std::vector<kube::Json> sessions_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

TEST_F(GatedServer, WelcomesANodeAndStoresWhatItSends) {
  Client control = Node();
  EXPECT_EQ(control.Meet(HelloOf()), "welcome");
  Client data(server_->data_address(), authority_.certificate_pem);
  ASSERT_TRUE(data.established());
  data.Write(stream::EncodeHello(control.session()));
  control.Say(kOpenTrace);
  EXPECT_TRUE(std::holds_alternative<stream::TraceOpened>(*control.Hear()));
  control.Say(stream::OpenStream{
      .trace = 1, .stream = 1, .channel = "user", .cpu = 0, .next = 0, .events = 0});
  const auto opened = control.Hear();
  ASSERT_TRUE(std::holds_alternative<stream::StreamOpened>(*opened));
  ctf::PacketWriter writer({.trace_uuid = *ParseUuid(kUid), .first_sequence = 0});
  const Bytes packet = writer.Finish(0, 100);
  data.Write(stream::EncodeHeader({.stream_handle = std::get<stream::StreamOpened>(*opened).handle,
                                   .seq = 0,
                                   .prev_seq = WEFT_STREAM_NO_SEQ,
                                   .events = 3},
                                  packet));
  data.Write(packet);
  const auto stored = control.Hear();
  ASSERT_TRUE(stored && std::holds_alternative<stream::Stored>(*stored));
}

TEST_F(GatedServer, RefusesWithoutAFittingTicketAndCounts) {
  stream::Hello hello = HelloOf();
  hello.ticket = "";
  EXPECT_NE(Node().Meet(hello).find("no ticket"), std::string::npos);
  ExpectRefused("no_ticket", 1);
  hello.ticket = *gate_.IssueTicket("n1", "bank");
  EXPECT_NE(Node().Meet(hello).find("not for this node and namespace"), std::string::npos);
  hello.ticket = *gate_.IssueTicket("n2", "shop");
  EXPECT_NE(Node().Meet(hello).find("not for this node and namespace"), std::string::npos);
  ExpectRefused("wrong_ticket", 2);
  hello = HelloOf();
  now_ += relay_trust::kTicketLifetime.count();
  EXPECT_NE(Node().Meet(hello).find("expired"), std::string::npos);
  ExpectRefused("expired_ticket", 1);
}

TEST_F(GatedServer, WaitsForATraceSessionForAMoment) {
  Client early = Node();
  std::thread later([this] {
    std::this_thread::sleep_for(300ms);
    Present("n1", "shop", "later");
  });
  EXPECT_EQ(early.Meet(HelloOf("later")), "welcome");
  later.join();
  EXPECT_NE(Node().Meet(HelloOf("never")).find("no TraceSession"), std::string::npos);
  ExpectRefused("no_session", 1);
}

TEST_F(GatedServer, ANewSessionOfATraceEndsTheOneBefore) {
  Client first = Node();
  ASSERT_EQ(first.Meet(HelloOf()), "welcome");
  Client second = Node();
  ASSERT_EQ(second.Meet(HelloOf()), "welcome");
  EXPECT_FALSE(first.Hear());
  Client third = Node();
  Present("n1", "shop", "other");
  ASSERT_EQ(third.Meet(HelloOf("other")), "welcome");
  second.Say(stream::Beacon{});
  second.Say(kOpenTrace);
  EXPECT_TRUE(second.Hear());
}

TEST_F(GatedServer, RefusesPlainBytes) {
  const UniqueFd plain = Connect(Control());
  const std::string text = "\x24\x00\x00\x00{\"type\":\"offer\",\"versions\":[1]}"s;
  ASSERT_EQ(send(plain.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  ExpectRefused("tls", 1);
  char byte = 0;
  while (recv(plain.get(), &byte, 1, 0) > 0) continue;
}

TEST_F(GatedServer, RefusesManyBytesBeforeTheWelcome) {
  Client client = Node();
  const std::vector<uint8_t> size{0, 0, 0x10, 0};
  client.Write(size);
  client.Write(std::vector<uint8_t>(kMaxBytesBeforeWelcome, 'x'));
  EXPECT_TRUE(std::holds_alternative<stream::Refusal>(*client.Hear()));
  EXPECT_FALSE(client.Hear());
  ExpectRefused("limit", 1);
}

TEST(StreamShares, OneNamespaceCannotTakeAll) {
  StreamShares shares(400);
  EXPECT_TRUE(shares.Change("shop", 0, 60));
  EXPECT_TRUE(shares.Change("shop", 0, 40));
  EXPECT_FALSE(shares.Change("shop", 40, 41));
  EXPECT_TRUE(shares.Change("shop", 41, 0));
  EXPECT_TRUE(shares.Change("shop", 0, 40));
  EXPECT_TRUE(shares.Change("bank", 0, 100));
  EXPECT_TRUE(shares.Change("club", 0, 100));
  EXPECT_FALSE(shares.Change("other", 0, 1));
  EXPECT_TRUE(shares.Change("other", 1, 0));
  EXPECT_TRUE(shares.Change("bank", 100, 0));
  EXPECT_TRUE(shares.Change("other", 0, 100));
}

TEST(CheckSessionShare, ANamespaceLeavesAsManyFreeAsItHas) {
  EXPECT_TRUE(CheckSessionShare("shop", 0, 0));
  EXPECT_TRUE(CheckSessionShare("shop", kMaxSessions / 2 - 1, kMaxSessions / 2 - 1));
  const Status refused = CheckSessionShare("shop", kMaxSessions / 2, kMaxSessions / 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kLimit);
  EXPECT_EQ(refused.error().message,
            "the namespace shop has 2048 sessions at the relay, one for each node and Trace, and "
            "2048 are left for all others: a namespace may not have more than it leaves: delete "
            "Traces that are not needed");
  EXPECT_TRUE(CheckSessionShare("bank", 0, kMaxSessions / 2));
  EXPECT_FALSE(CheckSessionShare("bank", kMaxSessions / 4, kMaxSessions / 4 * 3));
  EXPECT_TRUE(CheckSessionShare("club", 0, kMaxSessions - 1));
  const Status full = CheckSessionShare("club", 0, kMaxSessions);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::kLimit);
  EXPECT_EQ(full.error().message,
            "the relay has 4096 sessions, as many as it may have, one for each node and Trace: "
            "delete Traces that are not needed");
}

TEST_F(GatedServer, StrangersKeepNoNodeOut) {
  Client before = Node();
  ASSERT_EQ(before.Meet(HelloOf()), "welcome");
  std::vector<UniqueFd> strangers;
  for (size_t i = 0; i < kMaxStrangers + 100; i++) strangers.push_back(Connect(Control()));
  ExpectRefused("limit", 100);
  Present("n1", "shop", "other");
  EXPECT_EQ(Node().Meet(HelloOf("other")), "welcome");
  before.Say(kOpenTrace);
  EXPECT_TRUE(before.Hear());
}

TEST_F(GatedServer, NewConnectionsGetANewCertificate) {
  Client before = Node();
  const auto next = *http::MakeAuthority("next", kToday);
  UseCertificate(next);
  EXPECT_EQ(before.Meet(HelloOf()), "welcome");
  const Client old_trust = Node();
  EXPECT_FALSE(old_trust.established());
  EXPECT_NE(old_trust.problem().find("certificate"), std::string::npos);
  EXPECT_TRUE(Client(Control(), authority_.certificate_pem + next.certificate_pem).established());
}

// Peers that are too slow to begin.
class ImpatientServer : public GatedServer {
 protected:
  ImpatientServer() { hello_limit_ = 200ms; }
};

TEST_F(ImpatientServer, ClosesPeersThatDoNotSayHello) {
  const UniqueFd silent = Connect(Control());
  Client shaken = Node();
  EXPECT_FALSE(shaken.Hear() && shaken.Hear());
  char byte = 0;
  EXPECT_LE(recv(silent.get(), &byte, 1, 0), 0);
  const Client data(server_->data_address(), authority_.certificate_pem);
  ExpectRefused("timeout", 3);
}

}  // namespace
}  // namespace weft::ingest
