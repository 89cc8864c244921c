// SPDX-License-Identifier: Apache-2.0
// See consumer_pool.h.
#include "node-agent/agent/consumers/consumer_pool.h"

#include <cstring>
#include <utility>

#include "lib/base/kill_point.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {

ConsumerPool::ConsumerPool(ipc::Loop& loop, Send keeper, Note note, Handler handler,
                           JournalFiles journals)
    : loop_(loop),
      keeper_(std::move(keeper)),
      note_(std::move(note)),
      handler_(std::move(handler)),
      journals_(std::move(journals)) {}

void ConsumerPool::Start(const std::string& name) {
  if (!links_.contains(name)) {
    auto journal = journals_.Make(name);
    if (!journal) {
      note_(journal.error().message + ": recording begins anew if weft-keeper ends");
      journal = JournalFiles::MakeInMemory();
    }
    if (!journal) return note_(journal.error().message);
    const auto& link = links_[name] = std::make_unique<ConsumerLink>(name, std::move(*journal));
    keeper_(link->ToKeep());
    KillPoint("journal_kept");
  }
  keeper_(ipc::StartConsumer{name});
}

void ConsumerPool::Stop(const std::string& name) {
  const auto found = links_.find(name);
  if (found == links_.end()) return;
  if (found->second->connection().valid()) loop_.Unwatch(found->second->connection().fd());
  links_.erase(found);
  keeper_(ipc::StopConsumer{name});
  keeper_(ipc::Drop{kJournalKey + name});
  journals_.Remove(name);
}

const ConsumerLink* ConsumerPool::Find(const std::string& name) const {
  const auto found = links_.find(name);
  return found == links_.end() ? nullptr : found->second.get();
}

void ConsumerPool::Tell(const std::string& name, ConsumerLink::Make make) {
  const auto found = links_.find(name);
  if (found != links_.end()) found->second->Tell(std::move(make));
}

void ConsumerPool::TellAll(const ConsumerLink::Make& make) {
  for (const auto& [name, link] : links_) link->Tell(make);
}

bool ConsumerPool::TakeKept(ipc::Kept& kept) {
  if (!kept.key.starts_with(kJournalKey)) return false;
  const std::string name = kept.key.substr(std::strlen(kJournalKey));
  const auto note = JournalNote::Parse(kept.meta);
  if (note) {
    links_[name] = std::make_unique<ConsumerLink>(name, JournalFile{std::move(kept.fd), *note});
  } else {
    note_(name + ": " + note.error().message);
    keeper_(ipc::Drop{kept.key});  // its lock is in the way of the next one
  }
  return true;
}

Status ConsumerPool::TakeFromDisk(const std::set<std::string>& names) {
  const auto until = JournalFiles::Deadline::clock::now() + kJournalPatience;
  journals_.KeepOnly(names);
  for (const std::string& name : names) {
    if (links_.contains(name)) continue;
    auto journal = journals_.Open(name, until);
    if (!journal && journal.error().code == ErrorCode::kTimeout)
      return std::unexpected(journal.error());
    if (!journal) {
      if (journal.error().code != ErrorCode::kNotFound)
        note_(name + ": " + journal.error().message);
      continue;
    }
    const auto& link = links_[name] = std::make_unique<ConsumerLink>(name, std::move(*journal));
    keeper_(link->ToKeep());
  }
  return {};
}

void ConsumerPool::StartAll() {
  for (const auto& [name, link] : links_) keeper_(ipc::StartConsumer{name});
}

void ConsumerPool::Connect(ipc::Connect connect) {
  const auto found = links_.find(connect.name);
  if (found == links_.end()) return;
  ConsumerLink& link = *found->second;
  if (link.connection().valid()) loop_.Unwatch(link.connection().fd());
  link.Connect(std::move(connect.fd), ++connections_);
  (void)loop_.WatchConnection(link.connection(),
                              [this, &link](auto message) { OnMessage(link, std::move(message)); });
}

bool ConsumerPool::NoteEnd(const ipc::ConsumerGone& gone) {
  const auto found = links_.find(gone.name);
  if (found == links_.end()) return false;
  found->second->given_up = gone.given_up;
  found->second->reason = gone.reason;
  note_("weft-consumer ended (" + gone.reason + ")" +
        (gone.given_up ? " again and again" : " and was started again"));
  return true;
}

void ConsumerPool::Pump() {
  for (auto& [name, link] : links_) link->Pump();
}

void ConsumerPool::OnMessage(ConsumerLink& link, Result<ipc::Message> message) {
  if (!message) {
    loop_.Unwatch(link.connection().fd());
    link.Close();
    if (message.error().code == ErrorCode::kClosed) return;
    // Another connection comes with another consumer only.
    note_("weft-consumer: " + message.error().message);
    keeper_(ipc::StopConsumer{link.name()});
    keeper_(ipc::StartConsumer{link.name()});
    return;
  }
  ++handled_;
  if (const auto* hello = std::get_if<ipc::Hello>(&*message)) {
    if (hello->version != ipc::kProtocolVersion)
      return note_("weft-consumer is of another version");
    KillPoint("greeted");
    link.Greeted();
  }
  handler_(link, std::move(*message));
}

}  // namespace weft::agent
