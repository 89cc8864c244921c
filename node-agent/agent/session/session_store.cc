// SPDX-License-Identifier: Apache-2.0
// See session_store.h.
#include "node-agent/agent/session/session_store.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

namespace weft::agent {

std::string SessionStore::PathOf(const std::string& name) const {
  return dir_ + "/" + name + ".json";
}

Session* SessionStore::Find(const std::string& name) {
  const auto found = sessions_.find(name);
  return found == sessions_.end() ? nullptr : found->second.get();
}

Status SessionStore::Load(const std::string& name) {
  WEFT_ASSIGN(Session session, Session::Load(PathOf(name)));
  sessions_[name] = std::make_unique<Session>(std::move(session));
  return {};
}

Status SessionStore::Add(const std::string& name, Session session) {
  WEFT_TRY(session.Save(PathOf(name)));
  sessions_[name] = std::make_unique<Session>(std::move(session));
  return {};
}

void SessionStore::Remove(const std::string& name) {
  unlink(PathOf(name).c_str());
  sessions_.erase(name);
}

Status SessionStore::Save(const Session& session) {
  const auto is = [&](const auto& entry) { return entry.second.get() == &session; };
  const auto found = std::ranges::find_if(sessions_, is);
  return found == sessions_.end() ? Status{} : session.Save(PathOf(found->first));
}

void SessionStore::SaveOrNote(const Session& session) {
  if (const Status saved = Save(session); !saved) note_(saved.error().message);
}

SessionStore::Place SessionStore::FindChannel(uint64_t channel_id) {
  for (auto& [name, session] : sessions_)
    if (SessionChannel* channel = session->Find(channel_id)) return {session.get(), channel};
  return {};
}

SessionStore::Place SessionStore::FindChannelOf(const std::string& consumer, uint64_t channel_id) {
  const Place place = FindChannel(channel_id);
  return place.channel != nullptr && place.channel->consumer == consumer ? place : Place{};
}

void SessionStore::ForEachChannel(const std::function<void(Session&, SessionChannel&)>& visit) {
  for (auto& [name, session] : sessions_)
    for (SessionChannel& channel : session->channels) visit(*session, channel);
}

std::vector<control::ChannelSpec> SessionStore::InForce(const std::string& container) const {
  std::vector<control::ChannelSpec> specs;
  for (const auto& [name, session] : sessions_)
    std::ranges::move(session->Published(container), std::back_inserter(specs));
  // The consumer is of this agent's version, which reads large records.
  for (control::ChannelSpec& spec : specs) spec.flags |= WEFT_CHANNEL_LARGE_RECORDS;
  return specs;
}

// A connection that is made again may name a channel that has ended meanwhile.
Session* SessionStore::SessionOf(const std::string& consumer, uint64_t channel_id) const {
  for (const auto& [name, session] : sessions_) {
    const bool ended = session->order && session->order->metadata.name_space == consumer &&
                       session->retired_ids.contains(channel_id);
    const SessionChannel* channel = session->Find(channel_id);
    if (ended || (channel != nullptr && channel->consumer == consumer)) return session.get();
  }
  return nullptr;
}

void SessionStore::RenewWithoutJournal(
    const std::function<bool(const std::string& consumer)>& has_journal) {
  ForEachChannel([&](Session& session, SessionChannel& channel) {
    if (channel.phase == ChannelPhase::kDrained || has_journal(channel.consumer)) return;
    channel.reported.recorded -= channel.reported.in_flight;
    channel.reported.in_flight = 0;
    weft::agent::Add(channel.own, channel.reported);
    channel.reported = {};
    channel.definition.trace_uuid = RandomUuid();
    SaveOrNote(session);
  });
}

}  // namespace weft::agent
