// SPDX-License-Identifier: Apache-2.0
// See vault.h.
#include "node-agent/keeper/vault.h"

#include <algorithm>
#include <cstdlib>

#include "lib/base/copy_fd.h"
#include "lib/base/hexadecimal.h"
#include "lib/ipc/limits.h"

namespace weft::keeper {
namespace {

const std::string kCallerKey = "bell/";

}  // namespace

size_t Vault::DescriptorsOf(const Entry& entry) {
  return (entry.fd ? 1 : 0) + (entry.caller && entry.caller->pidfd ? 1 : 0);
}

bool Vault::HasRoomFor(const std::string& doorbell) const {
  const size_t free = limit_ - std::min(limit_, descriptors_);
  const auto found = brought_.find(doorbell);
  const size_t brought = found == brought_.end() ? 0 : found->second;
  return free > 0 && brought < kShareOfFree * free && brought < ipc::kMaxOpenRings;
}

Status Vault::AddCaller(Caller caller) {
  if (!HasRoomFor(caller.doorbell))
    return Fail(ErrorCode::kLimit, "no more descriptors can be kept");
  Entry entry;
  entry.fd = std::move(caller.fd);
  entry.doorbell = caller.doorbell;
  entry.caller = std::move(caller);
  const std::string key = kCallerKey + std::to_string(next_caller_);
  Add(key, std::move(entry));
  untold_[next_untold_++] = key;
  return {};
}

void Vault::Add(const std::string& key, Entry entry) {
  if (key.starts_with(kCallerKey))
    next_caller_ = std::max<uint64_t>(
        next_caller_, std::strtoull(key.c_str() + kCallerKey.size(), nullptr, 10) + 1);
  if (entry.doorbell) ++brought_[*entry.doorbell];
  descriptors_ += DescriptorsOf(entry);
  entries_[key] = std::move(entry);
}

void Vault::Inherit(ipc::Kept kept) {
  Entry entry;
  entry.meta = std::move(kept.meta);
  entry.fd = std::move(kept.fd);
  if (kept.key.starts_with(kCallerKey)) entry.doorbell = std::move(kept.doorbell);
  Add(kept.key, std::move(entry));
}

void Vault::Inherit(ipc::Arrived arrived) {
  Entry entry;
  entry.fd = std::move(arrived.fd);
  entry.doorbell = arrived.doorbell;
  entry.caller = Caller{.doorbell = std::move(arrived.doorbell),
                        .pid = arrived.pid,
                        .uid = arrived.uid,
                        .gid = arrived.gid,
                        .pidfd = std::move(arrived.pidfd),
                        .message = FromHexadecimal(arrived.message),
                        .fd = {}};
  Add(arrived.key, std::move(entry));
}

ipc::Message Vault::AsRefused(Caller caller) {
  return ipc::Arrived{.key = "",
                      .doorbell = std::move(caller.doorbell),
                      .message = ToHexadecimal(caller.message),
                      .pid = caller.pid,
                      .uid = caller.uid,
                      .gid = caller.gid,
                      .fd = std::move(caller.fd),
                      .pidfd = std::move(caller.pidfd)};
}

Status Vault::Keep(ipc::Keep keep) {
  auto it = entries_.find(keep.key);
  if (it == entries_.end()) {
    if (!keep.fd) return Fail(ErrorCode::kInvalid, "nothing to keep: " + keep.key);
    it = entries_.emplace(keep.key, Entry{}).first;
  }
  Entry& entry = it->second;
  descriptors_ -= DescriptorsOf(entry);
  entry.meta = std::move(keep.meta);
  entry.caller.reset();
  if (keep.fd) entry.fd = std::move(keep.fd);
  descriptors_ += DescriptorsOf(entry);
  return {};
}

void Vault::Drop(const std::string& key) {
  auto it = entries_.find(key);
  if (it == entries_.end()) return;
  if (const auto& doorbell = it->second.doorbell; doorbell && --brought_[*doorbell] == 0)
    brought_.erase(*doorbell);
  descriptors_ -= DescriptorsOf(it->second);
  ++dropped_;
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
    if (!entry.caller)
      return ipc::Kept{key, entry.meta, CopyFd(entry.fd), entry.doorbell.value_or("")};
    const Caller& caller = *entry.caller;
    return ipc::Arrived{.key = key,
                        .doorbell = caller.doorbell,
                        .message = ToHexadecimal(caller.message),
                        .pid = caller.pid,
                        .uid = caller.uid,
                        .gid = caller.gid,
                        .fd = CopyFd(entry.fd),
                        .pidfd = CopyFd(caller.pidfd)};
  }
  return std::nullopt;
}

}  // namespace weft::keeper
