// SPDX-License-Identifier: Apache-2.0
// See vault.h.
#include "node-agent/keeper/vault.h"

#include <fcntl.h>

#include <algorithm>

namespace weft::keeper {
namespace {

UniqueFd Duplicate(const UniqueFd& fd) {
  return fd ? UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3)) : UniqueFd();
}

std::string Hexadecimal(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<uint8_t>(c);
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace

Status Vault::AddCaller(Caller caller) {
  const size_t free = limit_ - std::min(limit_, entries_.size());
  const auto brought = brought_.find(caller.doorbell);
  if (free == 0 || (brought != brought_.end() && brought->second >= kShareOfFree * free))
    return Fail(ErrorCode::kLimit, "no more descriptors can be kept");
  const std::string key = "bell/" + std::to_string(next_caller_++);
  Entry& entry = entries_[key];
  entry.fd = std::move(caller.fd);
  entry.doorbell = caller.doorbell;
  ++brought_[caller.doorbell];
  entry.caller = std::move(caller);
  untold_[next_untold_++] = key;
  return {};
}

Status Vault::Keep(ipc::Keep keep) {
  auto it = entries_.find(keep.key);
  if (it == entries_.end()) {
    if (!keep.fd) return Fail(ErrorCode::kInvalid, "nothing to keep: " + keep.key);
    it = entries_.emplace(keep.key, Entry{}).first;
  }
  it->second.meta = std::move(keep.meta);
  it->second.caller.reset();
  if (keep.fd) it->second.fd = std::move(keep.fd);
  return {};
}

void Vault::Drop(const std::string& key) {
  auto it = entries_.find(key);
  if (it == entries_.end()) return;
  if (const auto& doorbell = it->second.doorbell; doorbell && --brought_[*doorbell] == 0)
    brought_.erase(*doorbell);
  entries_.erase(it);
}

void Vault::ForgetWhatWasTold() {
  untold_.clear();
  for (const auto& [key, entry] : entries_) untold_[next_untold_++] = key;
}

std::optional<ipc::Message> Vault::NextUntold() {
  while (!untold_.empty()) {
    const std::string key = std::move(untold_.begin()->second);
    untold_.erase(untold_.begin());
    auto it = entries_.find(key);
    if (it == entries_.end()) continue;
    const Entry& entry = it->second;
    if (!entry.caller) return ipc::Kept{key, entry.meta, Duplicate(entry.fd)};
    const Caller& caller = *entry.caller;
    return ipc::Arrived{.key = key,
                        .doorbell = caller.doorbell,
                        .message = Hexadecimal(caller.message),
                        .pid = caller.pid,
                        .uid = caller.uid,
                        .gid = caller.gid,
                        .fd = Duplicate(entry.fd),
                        .pidfd = Duplicate(caller.pidfd)};
  }
  return std::nullopt;
}

}  // namespace weft::keeper
