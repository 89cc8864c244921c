// SPDX-License-Identifier: Apache-2.0
// Any bytes of a network, to a server or to a client, before or after the handshake: they may give
// an error, but never bytes that the peer's program did not send. The first byte of the input
// chooses the receiver, and how the bytes are cut.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "lib/http/certificates.h"
#include "lib/tls/engine.h"

namespace {

using namespace weft;

struct Contexts {
  Contexts() {
    const http::Validity today{.now = std::chrono::system_clock::now(),
                               .lifetime = std::chrono::hours(24)};
    const auto authority = http::MakeAuthority("ca", today);
    const auto pair = http::MakeServerCertificate(*authority, {"relay.svc"}, today);
    client.emplace(*tls::ClientContext::Make(authority->certificate_pem));
    server.emplace(*tls::ServerContext::Make(pair->certificate_pem, pair->key_pem));
  }
  std::optional<tls::ClientContext> client;
  std::optional<tls::ServerContext> server;
};

void Shake(tls::Engine& a, tls::Engine& b) {
  while (!a.out().empty() || !b.out().empty()) {
    for (auto [from, to] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
      const std::vector<uint8_t> bytes(from->out().begin(), from->out().end());
      from->Sent(bytes.size());
      if (!to->Receive(bytes)) std::abort();
    }
  }
  if (!a.established() || !b.established()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Contexts contexts;
  if (size == 0) return 0;
  auto client = tls::Engine::Connect(*contexts.client, "relay.svc");
  auto server = tls::Engine::Accept(*contexts.server);
  if (!client || !server) std::abort();
  if ((data[0] & 1) != 0) Shake(*client, *server);
  tls::Engine& to = (data[0] & 2) != 0 ? *client : *server;
  const size_t step = 1 + (data[0] >> 2);
  for (Bytes rest(data + 1, size - 1); !rest.empty();) {
    const Bytes part = rest.first(std::min(step, rest.size()));
    rest = rest.subspan(part.size());
    const Status status = to.Receive(part);
    std::vector<uint8_t> room(1000);
    const auto n = to.Read(room);
    if (n && *n > 0) std::abort();
    to.Sent(to.out().size());
    if (!status || !n) break;
  }
  return 0;
}
