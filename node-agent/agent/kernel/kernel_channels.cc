// SPDX-License-Identifier: Apache-2.0
// See kernel_channels.h.
#include "node-agent/agent/kernel/kernel_channels.h"
#include "lib/base/copy_fd.h"

#include <unistd.h>

#include <cstdlib>
#include <optional>

namespace weft::agent {
namespace {

// Keys of the keeper's: these and the channel's id.
constexpr std::string_view kSessionKey = "kernel/session/";
constexpr std::string_view kRingKey = "kernel/ring/";

std::string Key(std::string_view prefix, uint64_t channel) {
  return std::string(prefix) + std::to_string(channel);
}

std::optional<uint64_t> ChannelOf(const std::string& key, std::string_view prefix) {
  if (!key.starts_with(prefix)) return std::nullopt;
  return std::strtoull(key.c_str() + prefix.size(), nullptr, 10);
}

Result<uint64_t> InstanceOf(const UniqueFd& ring) {
  weft_ring_header header{};
  if (pread(ring.get(), &header, sizeof(header), 0) != ssize_t{sizeof(header)})
    return FailErrno("weft.ko: ring");
  return header.instance;
}

// Makes a ring with the node's clock, or with the monotonic one if the kernel gave up the node's
// clock after it was chosen.
Result<UniqueFd> MakeRing(const kernel::Backend& backend, const UniqueFd& session,
                          kernel::Ring ring) {
  auto made = backend.MakeRing(session, ring);
  if (made) return made;
  WEFT_ASSIGN(const kernel::Support support, backend.Probe());
  if (support.Offers(ring.clock)) return made;
  ring.clock = WEFT_CLOCK_MONOTONIC;
  return backend.MakeRing(session, ring);
}

}  // namespace

Status KernelChannels::Start(const kernel::Ring& ring, const std::vector<kernel::Event>& events,
                             const Scope& scope) {
  Entry entry;
  WEFT_ASSIGN(entry.session, backend_.MakeSession(scope.all));
  for (const uint64_t cgroup : scope.cgroups)
    WEFT_TRY(backend_.ChangeScope(entry.session, cgroup, WEFT_KERNEL_SCOPE_ADD));
  WEFT_TRY(backend_.Track(entry.session, scope.trackers));
  WEFT_ASSIGN(entry.ring, MakeRing(backend_, entry.session, ring));
  for (const kernel::Event& event : events) WEFT_TRY(backend_.AddEvent(entry.ring, event));
  WEFT_ASSIGN(entry.instance, InstanceOf(entry.ring));
  const uint64_t id = ring.channel_id;
  keeper_(ipc::Keep{Key(kSessionKey, id), "", CopyFd(entry.session)});
  keeper_(ipc::Keep{Key(kRingKey, id), "", CopyFd(entry.ring)});
  channels_.insert_or_assign(id, std::move(entry));
  return {};
}

Status KernelChannels::AddEvent(uint64_t channel, const kernel::Event& event) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return Fail(ErrorCode::kNotFound, "weft.ko: no such channel");
  Status added = backend_.AddEvent(found->second.ring, event);
  if (!added && added.error().code == ErrorCode::kConflict) return {};
  return added;
}

Status KernelChannels::Switch(uint64_t channel, bool on) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return Fail(ErrorCode::kNotFound, "weft.ko: no such channel");
  WEFT_TRY(backend_.Switch(found->second.session, on));
  if (!on) dumps_.Join(channel);
  return {};
}

void KernelChannels::DumpState(uint64_t channel, uint64_t cgroup) {
  const auto found = channels_.find(channel);
  if (found != channels_.end()) dumps_.Begin(channel, CopyFd(found->second.session), cgroup);
}

Status KernelChannels::ChangeScope(uint64_t channel, uint64_t cgroup,
                                   weft_kernel_scope_change change) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return Fail(ErrorCode::kNotFound, "weft.ko: no such channel");
  return backend_.ChangeScope(found->second.session, cgroup, change);
}

void KernelChannels::KeepOnly(const std::set<uint64_t>& channels) {
  std::vector<uint64_t> others;
  for (const auto& [id, entry] : channels_)
    if (!channels.contains(id)) others.push_back(id);
  for (const uint64_t id : others) Forget(id);
}

std::vector<KernelChannels::News> KernelChannels::TakeNews() {
  std::vector<News> news;
  for (auto& [id, entry] : channels_) {
    if (!entry.session) continue;
    const auto state = backend_.StateOf(entry.session);
    if (!state) continue;
    const bool stopped = !entry.stopped && !state->stopped.empty();
    if (!stopped && state->missed_anywhere == entry.missed_anywhere) continue;
    entry.stopped |= stopped;
    entry.missed_anywhere = state->missed_anywhere;
    news.push_back({.channel = id,
                    .stopped = stopped ? state->stopped : "",
                    .missed_anywhere = state->missed_anywhere});
  }
  return news;
}

void KernelChannels::Forget(uint64_t channel) {
  if (channels_.erase(channel) == 0) return;
  keeper_(ipc::Drop{Key(kSessionKey, channel)});
  keeper_(ipc::Drop{Key(kRingKey, channel)});
}

bool KernelChannels::Restore(ipc::Kept& kept) {
  if (const auto session = ChannelOf(kept.key, kSessionKey)) {
    channels_[*session].session = std::move(kept.fd);
    return true;
  }
  const auto ring = ChannelOf(kept.key, kRingKey);
  if (!ring) return false;
  Entry& entry = channels_[*ring];
  entry.ring = std::move(kept.fd);
  entry.instance = InstanceOf(entry.ring).value_or(0);
  return true;
}

KernelChannels::RingOf KernelChannels::Find(uint64_t channel) const {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || !found->second.ring) return {};
  return {.instance = found->second.instance, .fd = CopyFd(found->second.ring)};
}

}  // namespace weft::agent
