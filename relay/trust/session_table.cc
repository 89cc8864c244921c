// SPDX-License-Identifier: Apache-2.0
// See session_table.h.
#include "relay/trust/session_table.h"

#include <set>

namespace weft::relay_trust {
namespace {

using kube::TextAt;
constexpr auto kNoEnd = SessionTable::Clock::time_point::max();

std::string Join(const std::string& node, const std::string& kubernetes_namespace,
                 const std::string& trace, const std::string& uid) {
  return node + "/" + kubernetes_namespace + "/" + trace + "/" + uid;
}

}  // namespace

SessionTable::Key SessionTable::KeyOf(const kube::Json& session) {
  return Join(TextAt(session, {"spec", "nodeName"}), TextAt(session, {"metadata", "namespace"}),
              TextAt(session, {"spec", "traceName"}), TextAt(session, {"spec", "traceUid"}));
}

void SessionTable::Replace(const std::vector<kube::Json>& sessions) {
  std::set<Key> present;
  for (const kube::Json& session : sessions) present.insert(KeyOf(session));
  const std::lock_guard lock(mutex_);
  is_known_ = true;
  const auto now = now_();
  std::erase_if(sessions_, [now](const auto& entry) { return entry.second <= now; });
  for (auto& [key, end] : sessions_) {
    if (end == kNoEnd && !present.contains(key)) end = now + kLastDelivery;
  }
  for (const Key& key : present) sessions_[key] = kNoEnd;
}

void SessionTable::See(const kube::WatchEvent& event) {
  const Key key = KeyOf(event.object);
  const std::lock_guard lock(mutex_);
  const auto now = now_();
  std::erase_if(sessions_, [now](const auto& entry) { return entry.second <= now; });
  sessions_[key] = event.type == kube::WatchType::kDeleted ? now + kLastDelivery : kNoEnd;
}

SessionTable::State SessionTable::Find(const stream::Hello& hello) const {
  const std::lock_guard lock(mutex_);
  if (!is_known_) return State::kUnknown;
  const auto found =
      sessions_.find(Join(hello.node, hello.kubernetes_namespace, hello.trace, hello.trace_uid));
  return found != sessions_.end() && now_() < found->second ? State::kPresent : State::kAbsent;
}

}  // namespace weft::relay_trust
