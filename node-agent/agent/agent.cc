// SPDX-License-Identifier: Apache-2.0
// The agent's start, its keeper, its clockwork. See agent.h.
#include "node-agent/agent/agent.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "lib/abi/control.h"
#include "lib/ipc/limits.h"
#include "node-agent/agent/clock_choice.h"
#include "node-agent/agent/limits.h"

namespace weft::agent {

Agent::Agent(ipc::Loop& loop, std::string dir, ipc::Channel keeper)
    : loop_(loop),
      dir_(std::move(dir)),
      keeper_(std::move(keeper)),
      processes_(
          loop, [this](ipc::Message message) { ToKeeper(std::move(message)); },
          [this](const ProcessEntry& process) {
            ToConsumer([number = process.number] { return ipc::ProcessGone{number}; });
          }),
      finder_([this](FoundMemory found) { return OnFound(std::move(found)); }),
      dialer_(loop) {}

Status Agent::Start() {
  WEFT_TRY(loop_.WatchChannel(keeper_, [this](auto message) { OnKeeper(std::move(message)); }));
  loop_.AfterEachRound([this] { PumpConsumer(); });
  loop_.Every(ipc::kHeartbeatInterval, [this] { ToKeeper(ipc::Heartbeat{.done = handled_}); });
  loop_.Every(kTick, [this] { Tick(); });
  loop_.Every(kLookInterval, [this] { Look(); });
  ToKeeper(ipc::Heartbeat{});
  return {};
}

// The keeper reads at once or is gone; then OnKeeper ends the agent.
void Agent::ToKeeper(ipc::Message message) { (void)keeper_.Send(std::move(message)); }

void Agent::OnKeeper(Result<ipc::Message> message) {
  if (!message) {
    loop_.Stop();
    return;
  }
  ++handled_;
  if (auto* kept = std::get_if<ipc::Kept>(&*message)) {
    OnKept(std::move(*kept));
  } else if (std::holds_alternative<ipc::KeptComplete>(*message)) {
    OnKeptComplete();
  } else if (auto* arrived = std::get_if<ipc::Arrived>(&*message)) {
    if (complete_)
      OnArrived(std::move(*arrived));
    else
      early_.push_back(std::move(*arrived));
  } else if (auto* connect = std::get_if<ipc::Connect>(&*message)) {
    OnConnect(std::move(*connect));
  } else if (const auto* gone = std::get_if<ipc::ConsumerGone>(&*message)) {
    OnConsumerGone(*gone);
  } else if (const auto* synced = std::get_if<ipc::Synced>(&*message)) {
    OnSynced(synced->number);
  } else if (std::holds_alternative<ipc::OwnerGone>(*message)) {
    OnOwnerGone();
  }
}

// --- start ---------------------------------------------------------------------------------------

void Agent::OnKept(ipc::Kept kept) {
  if (kept.key == "journal")
    journal_ = std::move(kept.fd);
  else if (kept.key == "doorbell")
    doorbell_ = std::move(kept.fd);
  else if (kept.key == "clients")
    clients_socket_ = std::move(kept.fd);
  else if (!RestoreFound(kept))
    (void)processes_.Restore(kept);
}

void Agent::OnKeptComplete() {
  if (complete_) return;
  if (const Status ready = MakeReady(); !ready) {
    ToKeeper(ipc::Notice{"weft-agent", ready.error().message});
    loop_.Stop();
    return;
  }
  complete_ = true;
  Resume();
  ToKeeper(ipc::Hello{.pid = getpid()});
  for (ipc::Arrived& arrived : early_) OnArrived(std::move(arrived));
  early_.clear();
}

Status Agent::MakeReady() {
  auto loaded = Session::Load(dir_ + "/session.json");
  if (loaded) {
    session_ = std::move(*loaded);
    ++session_.lives;
    recoveries_ = session_.lives - 1;
    WEFT_TRY(Save());
    if (!session_.output.empty()) {
      WEFT_ASSIGN(output_, OutputFolder::Open(session_.output));
    }
  } else if (loaded.error().code != ErrorCode::kNotFound) {
    return std::unexpected(loaded.error());
  }
  processes_.SetLife(session_.lives);
  processes_.Restored();
  WEFT_TRY(OpenControl());
  RestoredFound();
  if (!journal_) {
    journal_.reset(memfd_create("weft-journal", MFD_CLOEXEC));
    if (!journal_) return FailErrno("memfd_create");
    ToKeeper(ipc::Keep{"journal", "", UniqueFd(fcntl(journal_.get(), F_DUPFD_CLOEXEC, 3))});
  }
  return OpenSockets();
}

Status Agent::OpenControl() {
  const std::string path = dir_ + "/local.ctl";
  auto area = access(path.c_str(), F_OK) == 0
                  ? control::ControlArea::Open(path)
                  : control::ControlArea::Create(
                        path, {.slot_count = PossibleCpus("/sys"), .clock = ChooseClock("/sys")});
  if (!area) return std::unexpected(area.error());
  control_ = std::make_unique<control::ControlArea>(std::move(*area));
  finder_.SetControlFile(control_->fd());
  return {};
}

// Bound under another name and renamed: whoever finds the name finds somebody listening.
Result<UniqueFd> Agent::Listen(const std::string& name, unsigned mode) {
  const std::string path = dir_ + "/" + name;
  const std::string unfinished = path + ".new";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unfinished.size() >= sizeof(address.sun_path))
    return Fail(ErrorCode::kInvalid, dir_ + ": name too long for a folder with sockets");
  std::memcpy(address.sun_path, unfinished.c_str(), unfinished.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return FailErrno("socket");
  unlink(unfinished.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(unfinished.c_str(), mode) != 0 || listen(fd.get(), kListenBacklog) != 0 ||
      rename(unfinished.c_str(), path.c_str()) != 0)
    return FailErrno(path);
  return fd;
}

// The keeper keeps both, so that nobody who calls while the agent is away is turned down.
Status Agent::OpenSockets() {
  const auto make = [&](UniqueFd& fd, const char* key, const char* name, unsigned mode) -> Status {
    if (fd) return {};
    WEFT_ASSIGN(fd, Listen(name, mode));
    ToKeeper(ipc::Keep{key, "", UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 3))});
    return {};
  };
  WEFT_TRY(make(doorbell_, "doorbell", WEFT_DOORBELL_NAME, 0666));
  WEFT_TRY(make(clients_socket_, "clients", kClientsSocket, 0600));
  ToKeeper(ipc::ListenDoorbell{UniqueFd(fcntl(doorbell_.get(), F_DUPFD_CLOEXEC, 3))});
  return loop_.Watch(clients_socket_.get(), [this] { OnClientConnects(); });
}

// Does again what a predecessor may have left half done.
void Agent::Resume() {
  if (session_.channels.empty()) return;
  if (const Status published = Publish(); !published) Note(published.error().message);
  ToKeeper(ipc::StartConsumer{kConsumerName});
  StopChannels([](const SessionChannel& c) { return c.phase == ChannelPhase::kStopping; });
}

// --- clockwork and ends --------------------------------------------------------------------------

void Agent::Tick() {
  if (!complete_) return;
  const int64_t now = MonotonicNow();
  StopChannels([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && c.stop_at_ns != 0 && now >= c.stop_at_ns;
  });
  if (owner_gone_ && owner_gone_ns_ == 0) owner_gone_ns_ = now;
  if (owner_gone_ && !session_.relay.host.empty() &&
      std::chrono::nanoseconds(now - owner_gone_ns_) >= kLastRelayWait) {
    FinishWithoutConsumer("relay", "unreachable");
  }
  if (owner_gone_ && !quit_sent_) {
    const ipc::Phase phase = session_.phase();
    if (phase == ipc::Phase::kNone || phase == ipc::Phase::kCreated ||
        phase == ipc::Phase::kStopped)
      Quit();
  }
}

void Agent::OnConsumerGone(const ipc::ConsumerGone& gone) {
  ++recoveries_;
  consumer_given_up_ = gone.given_up;
  consumer_reason_ = gone.reason;
  Note("weft-consumer ended (" + gone.reason + ")" +
       (gone.given_up ? " again and again" : " and was started again"));
  if (gone.given_up) FinishWithoutConsumer("consumer", "failed");
}

void Agent::OnOwnerGone() {
  owner_gone_ = true;
  StopSession();
}

void Agent::Quit() {
  if (quit_sent_) return;
  quit_sent_ = true;
  ToKeeper(ipc::Quit{});
}

void Agent::Note(std::string text) {
  if (session_.notices.size() >= kMaxNotices) session_.notices.erase(session_.notices.begin());
  session_.notices.push_back(std::move(text));
}

Status Agent::Save() { return session_.Save(dir_ + "/session.json"); }

}  // namespace weft::agent
