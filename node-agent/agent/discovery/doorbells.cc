// SPDX-License-Identifier: Apache-2.0
// See doorbells.h.
#include "node-agent/agent/discovery/doorbells.h"

#include "lib/abi/control.h"
#include "node-agent/agent/base/copy_fd.h"
#include "node-agent/agent/base/local_socket.h"

namespace weft::agent {
namespace {

const std::string kKey = "doorbell/";

}  // namespace

Status Doorbells::Open(const std::string& name, const std::string& folder) {
  UniqueFd& fd = sockets_[name];
  if (!fd) {
    WEFT_ASSIGN(fd, ListenAt(folder, WEFT_DOORBELL_NAME, 0666));
    keeper_(ipc::Keep{kKey + name, "", CopyFd(fd)});
  }
  keeper_(ipc::ListenDoorbell{name, CopyFd(fd)});
  return {};
}

void Doorbells::Close(const std::string& name) {
  if (sockets_.erase(name) == 0) return;
  keeper_(ipc::CloseDoorbell{name});
  keeper_(ipc::Drop{kKey + name});
}

std::vector<std::string> Doorbells::Names() const {
  std::vector<std::string> names;
  names.reserve(sockets_.size());
  for (const auto& [name, fd] : sockets_) names.push_back(name);
  return names;
}

bool Doorbells::TakeKept(ipc::Kept& kept) {
  if (!kept.key.starts_with(kKey)) return false;
  sockets_[kept.key.substr(kKey.size())] = std::move(kept.fd);
  return true;
}

}  // namespace weft::agent
