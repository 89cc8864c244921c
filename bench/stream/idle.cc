// SPDX-License-Identifier: Apache-2.0
// Nodes with idle streams, for bench/stream: `bench_idle_streams CONTROL_PORT DATA_PORT SESSIONS
// STREAMS_OF_EACH`. Each session is a node's with one Trace; its containers have four streams, each
// with one packet. Prints "ready" when the relay has stored all of it, then sends beacons as a
// consumer does, until its standard input ends. It speaks with the node's side of lib/stream.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/base/uuid.h"
#include "lib/ctf/packet_writer.h"
#include "lib/stream/sender.h"

namespace {

using namespace weft;

constexpr uint32_t kStreamsOfContainer = 4;
// As often as a consumer without events looks at its rings: kPollAsleep of its limits.h.
constexpr std::chrono::milliseconds kBeaconInterval{50};
constexpr const char* kMetadata = "/* CTF 1.8 */\n\n";

uint64_t Now() {
  return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

Result<UniqueFd> Connect(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0)
    return FailErrno("connect");
  return fd;
}

Status SendAll(int fd, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) return FailErrno("send");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

class Node {
 public:
  static Result<std::unique_ptr<Node>> Make(uint16_t control, uint16_t data, uint32_t number,
                                            uint32_t streams) {
    std::unique_ptr<Node> node(new Node(number, data));
    for (uint32_t i = 0; i < streams; i++) {
      if (i % kStreamsOfContainer == 0) node->AddContainer(i);
      node->AddStream(i);
    }
    WEFT_ASSIGN(node->control_, Connect(control));
    node->sender_.Connected();
    return node;
  }

  [[nodiscard]] int descriptor() const { return control_.get(); }

  Status Receive() {
    std::vector<uint8_t> buffer(256 * 1024);
    const ssize_t n = ::recv(control_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (n < 0) return FailErrno("recv");
    if (n == 0) return Fail(ErrorCode::kClosed, "the relay closed the connection");
    return sender_.ReceiveControl(Bytes(buffer).first(static_cast<size_t>(n)));
  }

  Status Send() {
    if (sender_.wants_data() && !data_) {
      WEFT_ASSIGN(data_, Connect(data_port_));
      sender_.DataConnected();
    }
    std::string& out = sender_.control_out();
    WEFT_TRY(SendAll(control_.get(), {reinterpret_cast<const uint8_t*>(out.data()), out.size()}));
    out.clear();
    for (;;) {
      const auto next = sender_.NextData();
      if (next.front.empty() && next.packet.empty()) return {};
      WEFT_TRY(SendAll(data_.get(), next.front));
      WEFT_TRY(SendAll(data_.get(), next.packet));
      sender_.DataSent(next.front.size() + next.packet.size());
    }
  }

  void Beacons() {
    if (!IsStored()) return;
    for (const uint32_t trace : traces_) sender_.Promise(trace, Now());
    sender_.SendBeacons();
  }

  [[nodiscard]] bool IsStored() const {
    for (const uint32_t trace : traces_) {
      if (!sender_.all_stored(trace)) return false;
    }
    return true;
  }

 private:
  Node(uint32_t number, uint16_t data_port)
      : number_(number),
        data_port_(data_port),
        sender_({.node = "node-" + std::to_string(number),
                 .kubernetes_namespace = "idle",
                 .trace = "trace-" + std::to_string(number),
                 .trace_uid = "",
                 .ticket = ""}) {}

  void AddContainer(uint32_t first_stream) {
    uuid_ = Uuid{static_cast<uint8_t>(number_), static_cast<uint8_t>(first_stream >> 8),
                 static_cast<uint8_t>(first_stream)};
    traces_.push_back(sender_.AddTrace({.pod = "pod-" + std::to_string(first_stream),
                                        .pod_uid = "",
                                        .container = "main",
                                        .uuid = FormatUuid(uuid_),
                                        .path = "ust/uid/1000/64-bit"},
                                       0));
    sender_.WriteMetadata(traces_.back(), 0, kMetadata);
  }

  void AddStream(uint32_t number) {
    ctf::PacketWriter writer({.trace_uuid = uuid_, .first_sequence = 0});
    const auto packet = writer.Finish(0, Now());
    packets_.emplace_back(packet.begin(), packet.end());
    streams_.push_back(
        sender_.AddStream(traces_.back(), "user", number % kStreamsOfContainer, 0, 0));
    sender_.Put(streams_.back(), 0, packets_.back());
  }

  const uint32_t number_;
  const uint16_t data_port_;
  Uuid uuid_{};
  std::deque<std::vector<uint8_t>> packets_;
  stream::Sender sender_;
  std::vector<uint32_t> traces_;
  std::vector<uint32_t> streams_;
  UniqueFd control_;
  UniqueFd data_;
};

Status Run(uint16_t control, uint16_t data, uint32_t sessions, uint32_t streams) {
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<pollfd> polls = {{STDIN_FILENO, POLLIN, 0}};
  for (uint32_t i = 0; i < sessions; i++) {
    WEFT_ASSIGN(auto node, Node::Make(control, data, i, streams));
    polls.push_back({node->descriptor(), POLLIN, 0});
    nodes.push_back(std::move(node));
  }
  bool is_ready = false;
  auto last = std::chrono::steady_clock::now();
  for (;;) {
    for (const auto& node : nodes) {
      WEFT_TRY(node->Receive());
      WEFT_TRY(node->Send());
    }
    const auto now = std::chrono::steady_clock::now();
    if (now - last >= kBeaconInterval) {
      for (const auto& node : nodes) node->Beacons();
      last = now;
      continue;
    }
    if (!is_ready) {
      is_ready = true;
      for (const auto& node : nodes) is_ready = is_ready && node->IsStored();
      if (is_ready) {
        std::puts("ready");
        std::fflush(stdout);
      }
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(last + kBeaconInterval - now);
    if (::poll(polls.data(), polls.size(), static_cast<int>(left.count())) < 0 && errno != EINTR)
      return FailErrno("poll");
    if (polls[0].revents != 0) return {};
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s CONTROL_PORT DATA_PORT SESSIONS STREAMS_OF_EACH\n", argv[0]);
    return 2;
  }
  const auto number = [argv](int i) {
    return static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10));
  };
  const Status done =
      Run(static_cast<uint16_t>(number(1)), static_cast<uint16_t>(number(2)), number(3), number(4));
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().message.c_str());
  return 1;
}
