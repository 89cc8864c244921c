// SPDX-License-Identifier: Apache-2.0
// The relay's listeners against clients that are late. The server is a process of its own, which is
// stopped and continued: what happened meanwhile (bytes came, a limit passed) it sees at once.
#include "relay/ingest/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "lib/base/unique_fd.h"
#include "lib/stream/packet.h"
#include "relay/ingest/archive.h"

namespace weft::ingest {
namespace {

constexpr std::chrono::milliseconds kHelloLimit{100};

UniqueFd Connect(std::uint16_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

std::uint16_t PortOf(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoul(address.substr(address.rfind(':') + 1)));
}

// Blocks until the server closes the connection.
bool IsClosedByServer(const UniqueFd& fd) {
  std::array<char, 64> chunk;
  ssize_t got = 0;
  while ((got = recv(fd.get(), chunk.data(), chunk.size(), 0)) > 0) continue;
  return got == 0 || errno == ECONNRESET;
}

class ServerProcess : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "weft-ingest-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd from(ends[0]);
    const UniqueFd to(ends[1]);
    pid_ = fork();
    if (pid_ == 0) _exit(Serve(to.get()));
    ASSERT_EQ(read(from.get(), ports_.data(), sizeof(ports_)), ssize_t{sizeof(ports_)});
  }

  void TearDown() override {
    kill(pid_, SIGCONT);
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
    // A sanitizer that finds an error ends the server with another status.
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    std::filesystem::remove_all(folder_);
  }

  int Serve(int to) {
    store::DirectoryFileMaker maker(UniqueFd(open(folder_.c_str(), O_RDONLY | O_DIRECTORY)));
    metrics::Registry metrics(metrics::Part::kRelay);
    store::SafeReads safe;
    relay_rates::TraceRates rates;
    Retention retention(maker, metrics, {});
    DiskArchive archive(maker, safe, metrics, rates, retention);
    auto server =
        Server::Make(archive, metrics,
                     {.control = "127.0.0.1:0", .data = "127.0.0.1:0", .hello_limit = kHelloLimit});
    if (!server) return 2;
    ports_ = {PortOf((*server)->control_address()), PortOf((*server)->data_address())};
    if (write(to, ports_.data(), sizeof(ports_)) != ssize_t{sizeof(ports_)}) return 3;
    return (*server)->Run() ? 0 : 4;
  }

  // Waits until the server has accepted all earlier connections to its data port.
  void ExchangeOnDataPort() {
    const UniqueFd other = Connect(ports_[1]);
    SayHello(other);
    EXPECT_TRUE(IsClosedByServer(other));
  }

  // Sends bytes that name no session.
  static void SayHello(const UniqueFd& fd) {
    const stream::HelloBytes hello{};
    EXPECT_EQ(send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL), ssize_t{sizeof(hello)});
  }

  void StopServer() const {
    kill(pid_, SIGSTOP);
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
    ASSERT_TRUE(WIFSTOPPED(status));
  }

  std::string folder_;
  pid_t pid_ = -1;
  std::array<std::uint16_t, 2> ports_{};  // control, data
};

TEST_F(ServerProcess, TakesAHelloThatCameAsItsLimitPassed) {
  for (int i = 0; i < 4; i++) {
    const UniqueFd late = Connect(ports_[1]);
    ExchangeOnDataPort();
    StopServer();
    SayHello(late);
    std::this_thread::sleep_for(2 * kHelloLimit);
    kill(pid_, SIGCONT);
    EXPECT_TRUE(IsClosedByServer(late));
  }
  ExchangeOnDataPort();
}

TEST_F(ServerProcess, ClosesConnectionsThatSayNothing) {
  EXPECT_TRUE(IsClosedByServer(Connect(ports_[1])));
  EXPECT_TRUE(IsClosedByServer(Connect(ports_[0])));
}

}  // namespace
}  // namespace weft::ingest
