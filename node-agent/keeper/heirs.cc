// SPDX-License-Identifier: Apache-2.0
// See heirs.h.
#include "node-agent/keeper/heirs.h"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "lib/ipc/local_socket.h"
#include "node-agent/keeper/limits.h"

namespace weft::keeper {

Heirs::~Heirs() {
  if (listening_) loop_.Unwatch(listening_.get());
  for (const Heir& heir : heirs_) loop_.Unwatch(heir.connection.fd());
}

Status Heirs::Listen(const std::string& dir) {
  WEFT_ASSIGN(listening_, ipc::ListenAt(dir, kHeirsSocket, 0600));
  return loop_.Watch(listening_.get(), [this] { Accept(); });
}

void Heirs::Add(ipc::Connection connection) {
  if (!connection.valid()) return;
  heirs_.push_back({.connection = std::move(connection), .understands = true});
  Watch(heirs_.back());
}

void Heirs::Accept() {
  UniqueFd fd(accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd || heirs_.size() >= kMaxHeirs) return;
  heirs_.push_back({.connection = ipc::Connection(std::move(fd)), .understands = false});
  Watch(heirs_.back());
}

void Heirs::Watch(Heir& heir) {
  (void)loop_.WatchConnection(heir.connection,
                              [this, &heir](auto message) { OnMessage(heir, std::move(message)); });
}

void Heirs::OnMessage(Heir& heir, Result<ipc::Message> message) {
  const bool is_chosen = chosen_ == &heir;
  if (!message) {
    loop_.Unwatch(heir.connection.fd());
    if (is_chosen) chosen_ = nullptr;
    heirs_.remove_if([&](const Heir& other) { return &other == &heir; });
    if (is_chosen) handlers_.ended(false);
    return;
  }
  if (const auto* take = std::get_if<ipc::TakeOver>(&*message)) {
    heir.understands = take->version == ipc::kProtocolVersion;
    if (!take->now || chosen_ != nullptr) return;
    chosen_ = &heir;
    handlers_.asked();
  } else if (std::holds_alternative<ipc::TakenOver>(*message) && is_chosen) {
    handlers_.ended(true);
  }
}

bool Heirs::Choose() {
  if (chosen_ == nullptr && !heirs_.empty()) chosen_ = &heirs_.back();
  return chosen_ != nullptr;
}

ipc::Connection Heirs::TakeChosen() {
  const auto found = std::ranges::find_if(heirs_, [&](const Heir& h) { return &h == chosen_; });
  if (found == heirs_.end()) return {};
  loop_.Unwatch(found->connection.fd());
  ipc::Connection connection = std::move(found->connection);
  heirs_.erase(found);
  chosen_ = nullptr;
  return connection;
}

}  // namespace weft::keeper
