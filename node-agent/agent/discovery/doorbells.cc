// SPDX-License-Identifier: Apache-2.0
// See doorbells.h.
#include "node-agent/agent/discovery/doorbells.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "lib/base/copy_fd.h"
#include "lib/ipc/local_socket.h"
#include "node-agent/agent/base/fifo.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

const std::string kSocketKey = "doorbell/";
const std::string kNamesKey = "names/";
}  // namespace

Status Doorbells::Open(const std::string& name, const std::string& folder) {
  Doorbell& doorbell = doorbells_[name];
  if (!doorbell.names) {
    WEFT_ASSIGN(doorbell.names, OpenFifo(folder + "/" WEFT_NAMES_NAME));
    (void)fcntl(doorbell.names.get(), F_SETPIPE_SZ, kNamesBytes);
    keeper_(ipc::Keep{kNamesKey + name, "", CopyFd(doorbell.names)});
  }
  if (!doorbell.socket) {
    WEFT_ASSIGN(doorbell.socket, ipc::ListenAt(folder, WEFT_DOORBELL_NAME, 0666));
    keeper_(ipc::Keep{kSocketKey + name, "", CopyFd(doorbell.socket)});
  }
  keeper_(ipc::ListenDoorbell{name, CopyFd(doorbell.socket)});
  return {};
}

void Doorbells::Close(const std::string& name) {
  if (doorbells_.erase(name) == 0) return;
  keeper_(ipc::CloseDoorbell{name});
  keeper_(ipc::Drop{kSocketKey + name});
  keeper_(ipc::Drop{kNamesKey + name});
}

std::vector<std::string> Doorbells::Names() const {
  std::vector<std::string> names;
  names.reserve(doorbells_.size());
  for (const auto& [name, doorbell] : doorbells_) names.push_back(name);
  return names;
}

size_t Doorbells::LookInto(const std::string& name, const UniqueFd& fifo, const TakeName& take) {
  const ssize_t copied = tee(fifo.get(), copy_in_.get(), kNamesBytesAtOnce, SPLICE_F_NONBLOCK);
  if (copied <= 0) return 0;
  std::vector<char> bytes(static_cast<size_t>(copied));
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n = read(copy_out_.get(), bytes.data() + got, bytes.size() - got);
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  // Each name is one write, and whole. A rest is no name.
  for (size_t at = 0; at + sizeof(weft_doorbell) <= got; at += sizeof(weft_doorbell)) {
    weft_doorbell bell{};
    std::memcpy(&bell, bytes.data() + at, sizeof(bell));
    if (bell.magic == WEFT_DOORBELL_MAGIC && bell.kind == WEFT_DOORBELL_MISSING) take(name, bell);
  }
  return got;
}

bool Doorbells::ReadNames(const TakeName& take, const std::function<void()>& save) {
  std::vector<pollfd> fifos;
  fifos.reserve(doorbells_.size());
  for (const auto& [name, doorbell] : doorbells_)
    fifos.push_back({.fd = doorbell.names.get(), .events = POLLIN, .revents = 0});
  if (poll(fifos.data(), fifos.size(), 0) <= 0) return false;
  std::array<int, 2> pipe{};
  if (!copy_in_ && pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
    copy_out_.reset(pipe[0]);
    copy_in_.reset(pipe[1]);
  }
  std::vector<std::pair<const UniqueFd*, size_t>> looked_at;
  size_t at = 0;
  for (const auto& [name, doorbell] : doorbells_) {
    if ((fifos[at++].revents & POLLIN) == 0) continue;
    const size_t bytes = LookInto(name, doorbell.names, take);
    if (bytes > 0) looked_at.emplace_back(&doorbell.names, bytes);
  }
  if (looked_at.empty()) return false;
  save();
  for (const auto& [fifo, bytes] : looked_at) TakeOut(*fifo, bytes);
  return true;
}

bool Doorbells::TakeKept(ipc::Kept& kept) {
  if (kept.key.starts_with(kSocketKey))
    doorbells_[kept.key.substr(kSocketKey.size())].socket = std::move(kept.fd);
  else if (kept.key.starts_with(kNamesKey))
    doorbells_[kept.key.substr(kNamesKey.size())].names = std::move(kept.fd);
  else
    return false;
  return true;
}

}  // namespace weft::agent
