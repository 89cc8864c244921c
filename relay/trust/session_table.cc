// SPDX-License-Identifier: Apache-2.0
// See session_table.h.
#include "relay/trust/session_table.h"

#include "lib/api/quantity.h"

namespace weft::relay_trust {
namespace {

using kube::TextAt;
constexpr auto kNoEnd = SessionTable::Clock::time_point::max();

std::string Join(const std::string& node, const std::string& kubernetes_namespace,
                 const std::string& trace, const std::string& uid) {
  return node + "/" + kubernetes_namespace + "/" + trace + "/" + uid;
}

std::string KeyOfHello(const stream::Hello& hello) {
  return Join(hello.node, hello.kubernetes_namespace, hello.trace, hello.trace_uid);
}

// The API server has checked both texts.
TraceStorage StorageIn(const kube::Json& session) {
  TraceStorage storage;
  const auto size = api::ParseQuantity(TextAt(session, {"spec", "record", "storage", "maxSize"}));
  const auto age = api::ParseDuration(TextAt(session, {"spec", "record", "storage", "maxAge"}));
  if (size) storage.bytes = *size;
  if (age) storage.age = std::chrono::ceil<std::chrono::seconds>(*age);
  return storage;
}

}  // namespace

SessionTable::Key SessionTable::KeyOf(const kube::Json& session) {
  return Join(TextAt(session, {"spec", "nodeName"}), TextAt(session, {"metadata", "namespace"}),
              TextAt(session, {"spec", "traceName"}), TextAt(session, {"spec", "traceUid"}));
}

void SessionTable::Replace(const std::vector<kube::Json>& sessions) {
  std::map<Key, TraceStorage> present;
  for (const kube::Json& session : sessions) present[KeyOf(session)] = StorageIn(session);
  const std::lock_guard lock(mutex_);
  is_known_ = true;
  const auto now = now_();
  std::erase_if(sessions_, [now](const auto& entry) { return entry.second.end <= now; });
  for (auto& [key, known] : sessions_) {
    if (known.end == kNoEnd && !present.contains(key)) known.end = now + kLastDelivery;
  }
  for (const auto& [key, storage] : present) sessions_[key] = {kNoEnd, storage};
}

void SessionTable::See(const kube::WatchEvent& event) {
  const Key key = KeyOf(event.object);
  const std::lock_guard lock(mutex_);
  const auto now = now_();
  std::erase_if(sessions_, [now](const auto& entry) { return entry.second.end <= now; });
  const bool is_deleted = event.type == kube::WatchType::kDeleted;
  sessions_[key] = {is_deleted ? now + kLastDelivery : kNoEnd, StorageIn(event.object)};
}

SessionTable::State SessionTable::Find(const stream::Hello& hello) const {
  const std::lock_guard lock(mutex_);
  if (!is_known_) return State::kUnknown;
  const auto found = sessions_.find(KeyOfHello(hello));
  return found != sessions_.end() && now_() < found->second.end ? State::kPresent : State::kAbsent;
}

TraceStorage SessionTable::StorageOf(const stream::Hello& hello) const {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(KeyOfHello(hello));
  return found == sessions_.end() ? TraceStorage() : found->second.storage;
}

}  // namespace weft::relay_trust
