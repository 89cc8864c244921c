// SPDX-License-Identifier: Apache-2.0
// The server against clients on loopback that are not Beast: plain sockets, and OpenSSL's TLS.
#include "lib/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <latch>
#include <mutex>
#include <semaphore>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/http/certificates.h"
#include "lib/http/health.h"

namespace weft::http {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

Response Echo(const Request& request) {
  if (request.path == "/throw") throw std::runtime_error("no");
  return {.status = request.path == "/missing" ? 404 : 200,
          .body = request.method + " " + request.path + " " + request.query + " " + request.body};
}

std::unique_ptr<Server> StartServer(bool tls = false) {
  auto server = Server::Start({.address = "127.0.0.1", .port = 0, .tls = tls}, Echo);
  EXPECT_TRUE(server.has_value());
  return std::move(*server);
}

// `from`: another loopback address is another client to the server.
UniqueFd Connect(std::uint16_t port, const char* from = "127.0.0.1") {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = inet_addr(from);
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

std::string Exchange(std::uint16_t port, const std::string& request) {
  const UniqueFd fd = Connect(port);
  send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL);
  std::string answer;
  std::array<char, 4096> chunk;
  for (ssize_t got; (got = recv(fd.get(), chunk.data(), chunk.size(), 0)) > 0;)
    answer.append(chunk.data(), static_cast<std::size_t>(got));
  return answer;
}

TEST(Server, AnswersAndEndsAConnectionThatShallEnd) {
  const auto server = StartServer();
  const std::string answer = Exchange(server->port(),
                                      "POST /a/b?c=d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Content-Length: 4\r\n\r\nbody");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nPOST /a/b c=d body"));
}

TEST(Server, KeepsAConnectionForMore) {
  const auto server = StartServer();
  const std::string answer =
      Exchange(server->port(),
               "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /missing HTTP/1.1\r\nHost: x\r\n"
               "Connection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("GET /1"));
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 404 Not Found"));
}

TEST(Server, AHandlersExceptionEndsOneRequestOnly) {
  const auto server = StartServer();
  EXPECT_THAT(
      Exchange(server->port(), "GET /throw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
      StartsWith("HTTP/1.1 500"));
}

TEST(Server, RefusesMalformedAndTooLargeRequests) {
  const auto server = StartServer();
  EXPECT_EQ(Exchange(server->port(), "nonsense\r\n\r\n"), "");
  EXPECT_EQ(Exchange(server->port(),
                     "GET / HTTP/1.1\r\nX: " + std::string(kMaxHeadBytes, 'x') + "\r\n\r\n"),
            "");
  EXPECT_THAT(Exchange(server->port(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " +
                                           std::to_string(kMaxBodyBytes + 1) + "\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
}

std::unique_ptr<Server> StartServer(Server::Options options, Handler handler) {
  options.address = "127.0.0.1";
  auto server = Server::Start(options, std::move(handler));
  EXPECT_TRUE(server.has_value());
  return std::move(*server);
}

const std::string kProbe = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr char kHalfHead[] = "GET /metrics HTTP/1.1\r\nX-Slow: ";

std::string PostOf(std::size_t bytes) {
  return "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
         std::to_string(bytes) + "\r\n\r\n";
}

void Send(const UniqueFd& fd, const std::string& bytes) {
  send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Blocks until the server closes the connection.
bool IsClosedByServer(const UniqueFd& fd) {
  std::array<char, 4096> chunk;
  ssize_t got = 0;
  while ((got = recv(fd.get(), chunk.data(), chunk.size(), 0)) > 0) continue;
  return got == 0 || errno == ECONNRESET;
}

bool IsOpen(const UniqueFd& fd) {
  char byte;
  return recv(fd.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

TEST(HealthPort, RefusesRequestsWithABody) {
  const auto server = StartServer(HealthOptions(0), Echo);
  const std::string chunked =
      "POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string& request : std::initializer_list<std::string>{
           PostOf(kMaxBodyBytes), PostOf(kMaxBodyBytes) + std::string(300'000, 'x'),
           PostOf(4) + "body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
           chunked, chunked + "4\r\nbody\r\n0\r\n\r\n"}) {
    const std::string answer = Exchange(server->port(), request);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 413")) << request.substr(0, 80);
    EXPECT_THAT(answer, HasSubstr("leave the body out"));
    EXPECT_THAT(answer, HasSubstr("Connection: close"));
  }
  EXPECT_THAT(Exchange(server->port(), kProbe), StartsWith("HTTP/1.1 200"));
}

TEST(HealthPort, AnswersHeadWithoutABody) {
  const auto server = StartServer(HealthOptions(0), Echo);
  const std::string answer =
      Exchange(server->port(), "HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 15"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HealthPort, AnswersProbesWhileConnectionsFloodIt) {
  const auto server = StartServer(HealthOptions(0), Echo);
  const UniqueFd kept = Connect(server->port());
  Send(kept, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  std::array<char, 4096> answer;
  ASSERT_GT(recv(kept.get(), answer.data(), answer.size(), 0), 0);
  std::vector<UniqueFd> flood;
  for (std::size_t i = 0; i < 2 * kMaxConnections; i++) {
    flood.push_back(Connect(server->port(), "127.0.0.2"));
    if (i % 2 == 0) Send(flood.back(), kHalfHead);
    if (i % 64 == 0) {
      EXPECT_THAT(Exchange(server->port(), kProbe), StartsWith("HTTP/1.1 200"));
    }
  }
  EXPECT_THAT(Exchange(server->port(), kProbe), StartsWith("HTTP/1.1 200"));
  // The oldest of the flood had to go; a client that holds one connection keeps it.
  EXPECT_TRUE(IsClosedByServer(flood.front()));
  EXPECT_TRUE(IsOpen(kept));
}

TEST(HealthPort, ClosesHeadsThatDoNotEnd) {
  Server::Options options = HealthOptions(0);
  options.head_limit = std::chrono::milliseconds(200);
  const auto server = StartServer(options, Echo);
  const UniqueFd silent = Connect(server->port());
  const UniqueFd slow = Connect(server->port());
  Send(slow, kHalfHead);
  const std::jthread drip([&slow](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Send(slow, "x");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  EXPECT_TRUE(IsClosedByServer(silent));
  EXPECT_TRUE(IsClosedByServer(slow));
}

TEST(HealthPort, AnswersProbesWhileScrapesTakeLong) {
  std::latch end(1);
  const auto server = StartServer(HealthOptions(0), [&end](const Request& request) {
    if (request.path == "/metrics") end.wait();
    return Response{.body = request.path};
  });
  std::vector<UniqueFd> scrapes;
  for (int i = 0; i < 20; i++) {
    scrapes.push_back(Connect(server->port()));
    Send(scrapes.back(), "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  for (int i = 0; i < 20; i++) {
    EXPECT_THAT(Exchange(server->port(), kProbe), EndsWith("/healthz"));
  }
  end.count_down();
  for (const UniqueFd& scrape : scrapes) EXPECT_TRUE(IsClosedByServer(scrape));
}

TEST(HealthPort, AnswersProbesWhileOthersDoNotReadTheirAnswers) {
  constexpr std::size_t kLarge = kHealthBytes / 3;
  const auto server = StartServer(HealthOptions(0), [](const Request& request) {
    return Response{.body = request.path == "/metrics" ? std::string(kLarge, 'x') : "ok"};
  });
  std::vector<UniqueFd> deaf;
  for (int i = 0; i < 8; i++) {
    deaf.push_back(Connect(server->port(), "127.0.0.2"));
    Send(deaf.back(), "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  EXPECT_THAT(Exchange(server->port(), kProbe), EndsWith("ok"));
  const std::string all =
      Exchange(server->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200"));
  EXPECT_GT(all.size(), kLarge);
}

TEST(Server, StalledBodiesGiveWayToActiveOnes) {
  constexpr std::size_t kBody = 512 * 1024;
  const auto server = StartServer({.max_body_bytes = kBody, .total_bytes = 3 * kBody}, Echo);
  std::vector<UniqueFd> slow;
  for (int i = 0; i < 12; i++) {
    slow.push_back(Connect(server->port(), "127.0.0.2"));
    Send(slow.back(), PostOf(kBody) + "x");
    const std::string answer = Exchange(server->port(), PostOf(kBody) + std::string(kBody, 'b'));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(answer, EndsWith("bbb"));
  }
  EXPECT_TRUE(IsClosedByServer(slow.front()));
  EXPECT_THAT(Exchange(server->port(), PostOf(kBody + 1)), StartsWith("HTTP/1.1 413"));
}

// A body of 'a' to 'z' in turn, which ends early at `fails_at`.
class Alphabet : public BodySource {
 public:
  Alphabet(std::uint64_t bytes, std::uint64_t fails_at, std::atomic<int>& alive)
      : bytes_(bytes), fails_at_(fails_at), alive_(alive) {
    alive_++;
  }
  ~Alphabet() override { alive_--; }
  [[nodiscard]] std::optional<std::uint64_t> bytes() const override { return bytes_; }
  Result<std::size_t> Read(std::span<char> block) override {
    if (at_ >= fails_at_) return Fail(ErrorCode::kIo, "the disk is gone");
    for (char& c : block) c = static_cast<char>('a' + at_++ % 26);
    return block.size();
  }

 private:
  const std::uint64_t bytes_;
  const std::uint64_t fails_at_;
  std::atomic<int>& alive_;
  std::uint64_t at_ = 0;
};

std::string BodyOf(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }

TEST(Server, StreamsABodyThatIsNeverHeldAsAWhole) {
  static constexpr std::uint64_t kLong = 3 * kTotalBytes + 7;
  std::atomic<int> alive = 0;
  const auto server = StartServer({}, [&alive](const Request& request) {
    return Response{.status = 206,
                    .headers = {{"Content-Range", request.Header("range")}},
                    .source = std::make_shared<Alphabet>(kLong, UINT64_MAX, alive)};
  });
  const std::string answer = Exchange(
      server->port(), "GET /a HTTP/1.1\r\nHost: x\r\nRANGE: r\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 206"));
  EXPECT_THAT(answer.substr(0, 300), HasSubstr("Content-Range: r\r\n"));
  EXPECT_THAT(answer.substr(0, 300), HasSubstr("Content-Length: " + std::to_string(kLong)));
  const std::string body = BodyOf(answer);
  EXPECT_EQ(body.size(), kLong);
  bool right = true;
  for (std::size_t i = 0; i < body.size(); i++) right = right && body[i] == char('a' + i % 26);
  EXPECT_TRUE(right);
  EXPECT_EQ(alive, 0);
  const std::string head =
      Exchange(server->port(), "HEAD /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: " + std::to_string(kLong)));
  EXPECT_EQ(BodyOf(head), "");
}

TEST(Server, GoesOnAfterAStreamedBody) {
  std::atomic<int> alive = 0;
  const auto server = StartServer({}, [&alive](const Request& request) {
    return request.path == "/s" ? Response{.source = std::make_shared<Alphabet>(5, 5, alive)}
                                : Response{.body = "whole"};
  });
  const std::string answer =
      Exchange(server->port(),
               "GET /s HTTP/1.1\r\nHost: x\r\n\r\nGET /w HTTP/1.1\r\nHost: x\r\n"
               "Connection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nabcdeHTTP/1.1 200"));
  EXPECT_THAT(answer, EndsWith("whole"));
}

// A body without a length: "first" and "second", which fails if it is to.
class Words : public BodySource {
 public:
  explicit Words(bool fails) : fails_(fails) {}
  [[nodiscard]] std::optional<std::uint64_t> bytes() const override { return std::nullopt; }
  Result<std::size_t> Read(std::span<char> block) override {
    static constexpr std::string_view kWords[] = {"first", "second", ""};
    if (next_ == 1 && fails_) return Fail(ErrorCode::kIo, "the disk is gone");
    return kWords[next_++].copy(block.data(), block.size());
  }

 private:
  const bool fails_;
  std::size_t next_ = 0;
};

TEST(Server, SendsABodyWithoutALengthInChunks) {
  const auto server = StartServer({}, [](const Request& request) {
    return request.path == "/w" ? Response{.body = "whole"}
                                : Response{.source = std::make_shared<Words>(request.path == "/f")};
  });
  const auto ask = [&](const std::string& line) {
    return Exchange(server->port(), line +
                                        "\r\nHost: x\r\n\r\nGET /w HTTP/1.1\r\nHost: x\r\n"
                                        "Connection: close\r\n\r\n");
  };
  const std::string answer = ask("GET /s HTTP/1.1");
  EXPECT_THAT(answer, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length: 0")));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\n5\r\nfirst\r\n6\r\nsecond\r\n0\r\n\r\nHTTP/1.1 200"));
  EXPECT_THAT(answer, EndsWith("whole"));
  EXPECT_THAT(ask("GET /f HTTP/1.1"), EndsWith("5\r\nfirst\r\n")) << "it has no end";
  EXPECT_THAT(ask("HEAD /s HTTP/1.1"), HasSubstr("chunked\r\n\r\nHTTP/1.1 200"));
  EXPECT_THAT(ask("GET /s HTTP/1.0"), StartsWith("HTTP/1.0 505"));
}

TEST(Server, ABodyThatCannotBeReadEndsTheConnection) {
  std::atomic<int> alive = 0;
  const auto server = StartServer({}, [&alive](const Request&) {
    return Response{.source = std::make_shared<Alphabet>(4 * kBlockBytes, kBlockBytes, alive)};
  });
  const std::string answer = Exchange(server->port(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(BodyOf(answer).size(), kBlockBytes);
}

TEST(Server, ReadersThatAreSlowGiveWay) {
  std::atomic<int> alive = 0;
  const auto server =
      StartServer({.total_bytes = 8 * kBlockBytes}, [&alive](const Request& request) {
        if (request.path == "/w") return Response{.body = "whole"};
        return Response{.source = std::make_shared<Alphabet>(UINT32_MAX, UINT64_MAX, alive)};
      });
  std::vector<UniqueFd> deaf;
  for (int i = 0; i < 20; i++) {
    deaf.push_back(Connect(server->port(), "127.0.0.2"));
    Send(deaf.back(), "GET /s HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(Exchange(server->port(), "GET /w HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
                EndsWith("whole"));
  }
  EXPECT_LT(alive, 10);
}

TEST(Server, HandsOnHeadersInLowerCase) {
  const auto server = StartServer({}, [](const Request& request) {
    return Response{.body = request.Header("x-token") + "|" + request.Header("none")};
  });
  EXPECT_THAT(Exchange(server->port(),
                       "GET / HTTP/1.1\r\nHost: x\r\nX-Token: a\r\nx-toKEN: b\r\n"
                       "Connection: close\r\n\r\n"),
              EndsWith("\r\n\r\na, b|"));
}

TEST(Server, ReportsTakenPort) {
  const auto server = StartServer();
  const auto second = Server::Start({.address = "127.0.0.1", .port = server->port()}, Echo);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kIo);
}

TEST(Server, EndsWithOpenConnections) {
  auto server = StartServer();
  const UniqueFd idle = Connect(server->port());
  server.reset();
}

// "": no connection, or a certificate that the client does not trust for localhost.
std::string TlsExchange(std::uint16_t port, const std::string& authority_pem) {
  std::signal(SIGPIPE, SIG_IGN);  // OpenSSL's own writes
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  BIO* pem = BIO_new_mem_buf(authority_pem.data(), static_cast<int>(authority_pem.size()));
  X509* authority = PEM_read_bio_X509(pem, nullptr, nullptr, nullptr);
  X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority);
  X509_free(authority);
  BIO_free(pem);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set1_host(ssl.get(), "localhost");
  const UniqueFd fd = Connect(port);
  SSL_set_fd(ssl.get(), fd.get());
  if (SSL_connect(ssl.get()) != 1) return "";
  const std::string request = "GET /tls HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
  std::string answer;
  std::array<char, 4096> chunk;
  for (int got; (got = SSL_read(ssl.get(), chunk.data(), chunk.size())) > 0;)
    answer.append(chunk.data(), static_cast<std::size_t>(got));
  return answer;
}

TEST(Server, TlsTakesEachNewCertificate) {
  const Validity validity = {.now = std::chrono::system_clock::now(),
                             .lifetime = std::chrono::hours(1)};
  const auto server = StartServer(/*tls=*/true);
  const KeyPair first = *MakeAuthority("first", validity);
  const KeyPair second = *MakeAuthority("second", validity);
  EXPECT_EQ(TlsExchange(server->port(), first.certificate_pem), "");
  for (const KeyPair& authority : {first, second}) {
    const KeyPair made = *MakeServerCertificate(authority, {"localhost"}, validity);
    const Status set = server->SetCertificate({made.certificate_pem, made.key_pem});
    ASSERT_TRUE(set.has_value()) << set.error().message;
    EXPECT_THAT(TlsExchange(server->port(), authority.certificate_pem), HasSubstr("GET /tls"));
  }
  EXPECT_EQ(TlsExchange(server->port(), first.certificate_pem), "");
}

TEST(Server, TellsWhyItRefusesAPeer) {
  std::mutex mutex;
  std::condition_variable came;
  std::vector<std::string> reasons;
  Server::Options options{
      .max_body_bytes = 0, .is_urgent = {}, .on_refused = [&](const RefusedPeer& peer) {
        EXPECT_EQ(peer.address, "127.0.0.1");
        EXPECT_NE(peer.why, "");
        const std::lock_guard lock(mutex);
        reasons.emplace_back(peer.reason);
        came.notify_all();
      }};
  const auto next = [&] {
    std::unique_lock lock(mutex);
    if (!came.wait_for(lock, std::chrono::seconds(30), [&] { return !reasons.empty(); }))
      return std::string("none");
    const std::string reason = reasons.front();
    reasons.erase(reasons.begin());
    return reason;
  };
  const auto plain = StartServer(options, Echo);
  Exchange(plain->port(), "nonsense\r\n\r\n");
  EXPECT_EQ(next(), "protocol");
  Exchange(plain->port(), PostOf(1));
  EXPECT_EQ(next(), "limit");
  // A peer that goes away, and a request that is answered, are no reason for a report.
  shutdown(Connect(plain->port()).get(), SHUT_WR);
  EXPECT_THAT(Exchange(plain->port(), kProbe), StartsWith("HTTP/1.1 200"));
  options.tls = true;
  const auto tls = StartServer(options, Echo);
  Exchange(tls->port(), kProbe);
  EXPECT_EQ(next(), "no_certificate");
  const Validity validity = {.now = std::chrono::system_clock::now(),
                             .lifetime = std::chrono::hours(1)};
  const KeyPair authority = *MakeAuthority("ca", validity);
  const KeyPair made = *MakeServerCertificate(authority, {"localhost"}, validity);
  ASSERT_TRUE(tls->SetCertificate({made.certificate_pem, made.key_pem}));
  Exchange(tls->port(), kProbe);
  EXPECT_EQ(next(), "tls");
  options.head_limit = std::chrono::milliseconds(200);
  const auto impatient = StartServer(options, Echo);
  ASSERT_TRUE(impatient->SetCertificate({made.certificate_pem, made.key_pem}));
  const UniqueFd silent = Connect(impatient->port());
  EXPECT_EQ(next(), "timeout");
}

TEST(Server, ReportsAnIdleConnectionThatGivesWay) {
  std::counting_semaphore<> reports(0);
  const auto count = [&](const RefusedPeer& peer) {
    if (std::string_view(peer.reason) == "limit") reports.release();
  };
  const auto server = StartServer({.is_urgent = {}, .on_refused = count}, Echo);
  const UniqueFd kept = Connect(server->port());
  Send(kept, "GET /kept HTTP/1.1\r\nHost: x\r\n\r\n");
  std::array<char, 4096> answer;
  ASSERT_GT(recv(kept.get(), answer.data(), answer.size(), 0), 0);
  // Two are too many: the first ones, of which `kept` is one.
  std::vector<UniqueFd> flood;
  for (std::size_t i = 0; i < kMaxConnections + 1; i++) flood.push_back(Connect(server->port()));
  EXPECT_TRUE(IsClosedByServer(kept));
  for (int i = 0; i < 2; i++) EXPECT_TRUE(reports.try_acquire_for(std::chrono::seconds(30)));
}

TEST(Server, RefusesCertificateOfAnotherKey) {
  const Validity validity = {.now = std::chrono::system_clock::now(),
                             .lifetime = std::chrono::hours(1)};
  const auto server = StartServer(/*tls=*/true);
  const KeyPair a = *MakeAuthority("a", validity);
  const KeyPair b = *MakeAuthority("b", validity);
  EXPECT_EQ(server->SetCertificate({a.certificate_pem, b.key_pem}).error().code,
            ErrorCode::kInvalid);
  EXPECT_EQ(server->SetCertificate({"", ""}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace weft::http
