// SPDX-License-Identifier: Apache-2.0
// See keeper.h.
#include "node-agent/keeper/keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <csignal>

#include <algorithm>
#include <cstdio>

#include "lib/base/copy_fd.h"
#include "lib/base/log_text.h"
#include "lib/base/signal_fd.h"
#include "lib/ipc/limits.h"
#include "node-agent/keeper/limits.h"

namespace weft::keeper {
namespace {

// How often deadlines are looked at. Children that die are noticed at once, by signal.
constexpr std::chrono::milliseconds kTick{50};
// Messages to the agent that may wait before the vault stops telling.
constexpr int kTellAtOnce = 128;

bool ValidName(const std::string& name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::string NameOf(const std::string& program) { return program.substr(program.rfind('/') + 1); }

std::string DescribeMemory(const ConsumerGroups& groups) {
  return "out of memory: its limit is " + std::to_string(groups.memory() >> 20) + "Mi";
}

}  // namespace

Keeper::Keeper(ipc::Loop& loop, Options options, ipc::Connection owner, Lease& lease,
               ConsumerGroups& groups, Inheritance inheritance)
    : loop_(loop),
      options_(std::move(options)),
      owner_(std::move(owner)),
      lease_(lease),
      groups_(groups),
      vault_(std::move(inheritance.vault)),
      silent_(std::move(inheritance.silent)),
      heirs_(loop, {.asked = [this] { BeginHandover(); },
                    .ended = [this](bool taken) { EndHandover(taken); }}) {
  if (options_.kubelet_dir.empty()) {
    agent_.program = options_.bin_dir + "/weft-agent";
    agent_.arguments = {"--dir", options_.dir};
  } else {
    agent_.program = options_.bin_dir + "/weft-node-agent";
    agent_.arguments = {"--dir", options_.dir, "--kubelet-dir", options_.kubelet_dir};
  }
}

Status Keeper::Start() {
  // Orphans of a crashed agent become ours, not init's.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return FailErrno("prctl");
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  if (!owner_.valid()) sigaddset(&mask, SIGTERM);
  WEFT_ASSIGN(signals_, HoldSignals(mask));
  WEFT_TRY(loop_.Watch(signals_.get(), [this] { OnChildEnd(); }));
  if (owner_.valid())
    WEFT_TRY(loop_.WatchConnection(owner_, [this](auto message) { OnOwner(std::move(message)); }));
  loop_.Every(kTick, [this] { Tick(); });
  if (!options_.kubelet_dir.empty()) WEFT_TRY(heirs_.Listen(options_.dir));
  loop_.AfterEachRound([this] {
    AnswerPaused();
    TellAgent();
    TellHeir();
  });
  Tick();
  return {};
}

// --- starting and restarting -------------------------------------------------------------------

void Keeper::Start(Component& component) {
  auto child = ipc::StartChild(component.program, component.arguments, lease_.fd());
  const Time now = ipc::Loop::Clock::now();
  component.recovery.Started(now);
  if (!child) {
    component.recovery.Died(now, child.error().message);
    return TellOwner("weft-keeper", child.error().message);
  }
  component.child = std::move(*child);
  // Before the consumer is connected: it has nothing to do until then.
  if (&component != &agent_)
    if (const Status entered = groups_.Enter(component.name, component.child.pid); !entered)
      TellOwner("weft-keeper", "a consumer has no memory limit: " + entered.error().message);
  (void)loop_.WatchConnection(component.child.connection, [this, &component](auto message) {
    OnMessage(component, std::move(message));
  });
  if (&component != &agent_) {
    Connect(component);
    return;
  }
  kept_complete_ = false;
  syncs_.clear();
  vault_.ForgetWhatWasTold();
  TellAgent();
}

// Agent and consumer get a new socket pair; each takes it for the end of the old one.
void Keeper::Connect(Component& consumer) {
  if (consumer.child.pid < 0 || agent_.child.pid < 0 || !kept_complete_) return;
  auto ends = ipc::Connection::MakePair();
  if (!ends) return TellOwner("weft-keeper", ends.error().message);
  (void)agent_.child.connection.Send(ipc::Connect{consumer.name, std::move(ends->first)});
  (void)consumer.child.connection.Send(ipc::Connect{"", std::move(ends->second)});
}

void Keeper::TellAgent() {
  if (agent_.child.pid < 0) return;
  for (int i = 0; i < kTellAtOnce && !agent_.child.connection.wants_write(); ++i) {
    auto message = vault_.NextUntold();
    if (!message) break;
    (void)agent_.child.connection.Send(std::move(*message));
  }
  if (vault_.HasUntold()) return;  // the next round goes on
  if (!kept_complete_) {
    kept_complete_ = true;
    (void)agent_.child.connection.Send(ipc::KeptComplete{});
    for (auto& [name, consumer] : consumers_) Connect(*consumer);
    if (owner_gone_) (void)agent_.child.connection.Send(ipc::OwnerGone{});
  }
  if (syncs_.empty() || !SettleSyncs()) return;
  for (const uint64_t number : syncs_) (void)agent_.child.connection.Send(ipc::Synced{number});
  syncs_.clear();
}

bool Keeper::SettleSyncs() {
  const Time now = ipc::Loop::Clock::now();
  const bool hopeless =
      now - still_since_ >= ipc::kSyncStill || now - sync_since_ >= ipc::kSyncTime;
  for (auto& [name, doorbell] : doorbells_) {
    while (doorbell->owes()) {
      if (!hopeless || agent_.child.connection.wants_write()) return false;
      doorbell->Refuse([this](Caller caller) {
        (void)agent_.child.connection.Send(Vault::AsRefused(std::move(caller)));
      });
    }
  }
  return true;
}

void Keeper::AnswerPaused() {
  const Time now = ipc::Loop::Clock::now();
  bool any = false;
  for (auto& [name, doorbell] : doorbells_) {
    doorbell->GoOn();
    any = any || doorbell->paused();
  }
  if (!any || vault_.dropped() != dropped_) still_since_ = now;
  dropped_ = vault_.dropped();
  if (any && now - still_since_ >= kFullTime) SayFull(now);
}

void Keeper::Tick() {
  const Time now = ipc::Loop::Clock::now();
  if (is_handing_over()) {
    if (now >= hand_over_by_) EndHandover(false);
    return;
  }
  const auto look = [&](Component& component) {
    if (!component.wanted) {
      if (component.child.pid > 0 && now >= component.kill_at) kill(component.child.pid, SIGKILL);
      return;
    }
    switch (component.recovery.Due(now)) {
      case Recovery::Action::kNone:
        break;
      case Recovery::Action::kStart:
        Start(component);
        break;
      case Recovery::Action::kKill:
        kill(component.child.pid, SIGKILL);
        break;
    }
  };
  look(agent_);
  for (auto& [name, consumer] : consumers_) look(*consumer);
  TellAgent();
  // No process is left to end the session in order, or it never began.
  const bool hopeless = agent_.recovery.given_up() || !owner_told_;
  if (owner_gone_ && agent_.child.pid < 0 && hopeless) Quit();
  if (now >= quit_by_) Quit();
  if (quitting_) ContinueQuit();
}

// --- ends --------------------------------------------------------------------------------------

void Keeper::OnChildEnd() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == ssize_t{sizeof(info)}) {
    if (info.ssi_signo == SIGTERM) End();
  }
  int status = 0;
  pid_t pid;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == agent_.child.pid) OnEnd(agent_, status);
    for (auto& [name, consumer] : consumers_)
      if (pid == consumer->child.pid) OnEnd(*consumer, status);
  }
  std::erase_if(consumers_, [](const auto& entry) {
    return !entry.second->wanted && entry.second->child.pid < 0;
  });
  ContinueHandover();
  Tick();
}

void Keeper::CloseChannel(Component& component) {
  if (!component.child.connection.valid()) return;
  loop_.Unwatch(component.child.connection.fd());
  component.child.connection.Close();
}

void Keeper::OnEnd(Component& component, int status) {
  CloseChannel(component);
  component.child.pid = -1;
  const bool is_consumer = &component != &agent_;
  const bool is_out_of_memory = is_consumer && groups_.Leave(component.name);
  if (is_handing_over()) return;
  if (!component.wanted && component.again) {
    component.wanted = true;
    component.again = false;
    component.recovery = {};
    return;
  }
  if (!component.wanted) return;
  if (!is_consumer && quit_by_ != Time::max()) return Quit();
  component.recovery.Died(ipc::Loop::Clock::now(),
                          is_out_of_memory ? DescribeMemory(groups_) : ipc::DescribeExit(status));
  const Recovery& recovery = component.recovery;
  std::string text = NameOf(component.program) + " ended (" + recovery.reason() + ")";
  text += recovery.given_up() ? " again and again; tried again in " +
                                    std::to_string(kGivenUpRetry.count() / 1000) + " s"
                              : ", started again";
  TellOwner("weft-keeper", std::move(text));
  if (!is_consumer || agent_.child.pid < 0) return;
  (void)agent_.child.connection.Send(
      ipc::ConsumerGone{.name = component.name,
                        .reason = recovery.reason(),
                        .failures = recovery.failures(),
                        .given_up = recovery.given_up(),
                        .retry_seconds = static_cast<uint32_t>(recovery.Backoff().count() / 1000),
                        .out_of_memory = is_out_of_memory});
}

// --- messages ----------------------------------------------------------------------------------

void Keeper::OnOwner(Result<ipc::Message> message) {
  if (message) return;  // it has nothing to say here
  loop_.Unwatch(owner_.fd());
  owner_.Close();
  owner_gone_ = true;
  if (quitting_) return;
  if (kept_complete_ && agent_.child.pid > 0) (void)agent_.child.connection.Send(ipc::OwnerGone{});
}

void Keeper::OnMessage(Component& component, Result<ipc::Message> message) {
  if (!message) {
    // Its end follows, or it broke the rules and is ended.
    CloseChannel(component);
    if (message.error().code != ErrorCode::kClosed && component.child.pid > 0)
      kill(component.child.pid, SIGKILL);
    return;
  }
  if (const auto* beat = std::get_if<ipc::Heartbeat>(&*message)) {
    component.recovery.Heartbeat(ipc::Loop::Clock::now(), beat->done, beat->pending);
    return;
  }
  if (auto* notice = std::get_if<ipc::Notice>(&*message))
    return TellOwner(std::move(notice->component), std::move(notice->message));
  if (&component == &agent_) OnAgentMessage(std::move(*message));
}

void Keeper::OnAgentMessage(ipc::Message message) {
  if (auto* keep = std::get_if<ipc::Keep>(&message)) {
    (void)vault_.Keep(std::move(*keep));
  } else if (auto* drop = std::get_if<ipc::Drop>(&message)) {
    vault_.Drop(drop->key);
  } else if (auto* listen = std::get_if<ipc::ListenDoorbell>(&message)) {
    Listen(std::move(*listen));
  } else if (const auto* close = std::get_if<ipc::CloseDoorbell>(&message)) {
    doorbells_.erase(close->name);
  } else if (const auto* start = std::get_if<ipc::StartConsumer>(&message)) {
    StartConsumer(start->name);
  } else if (const auto* stop = std::get_if<ipc::StopConsumer>(&message)) {
    StopConsumer(stop->name);
  } else if (const auto* sync = std::get_if<ipc::Sync>(&message)) {
    for (auto& [name, doorbell] : doorbells_) doorbell->AnswerAll();
    if (syncs_.empty()) sync_since_ = still_since_ = ipc::Loop::Clock::now();
    syncs_.push_back(sync->number);
    TellAgent();
  } else if (const auto* hello = std::get_if<ipc::Hello>(&message)) {
    OnHello(*hello);
  } else if (std::holds_alternative<ipc::Quit>(message)) {
    Quit();
  }
}

void Keeper::Listen(ipc::ListenDoorbell listen) {
  auto& doorbell = doorbells_[listen.name];
  if (doorbell) return;  // a new agent says what its predecessor said
  // The agent is told at the end of the round. There was room, unless a silent connection made way
  // for another one and had its message after all.
  const auto take = [this](Caller caller) {
    if (vault_.HasRoomFor(caller.doorbell) || agent_.child.pid < 0)
      (void)vault_.AddCaller(std::move(caller));
    else
      (void)agent_.child.connection.Send(Vault::AsRefused(std::move(caller)));
  };
  doorbell = std::make_unique<Doorbell>(
      loop_, listen.name, std::move(listen.fd), take,
      [this, name = listen.name] { return vault_.HasRoomFor(name); },
      options_.descriptors.silent_callers);
  const auto silent = silent_.extract(listen.name);
  if (silent.empty()) return;
  for (UniqueFd& caller : silent.mapped()) doorbell->Adopt(std::move(caller));
}

void Keeper::OnHello(const ipc::Hello& hello) {
  if (hello.version != ipc::kProtocolVersion) {
    TellOwner("weft-keeper",
              NameOf(agent_.program) + " speaks another version: is the installation mixed?");
    return;
  }
  if (!owner_told_ && owner_.valid()) (void)owner_.Send(ipc::Hello{.pid = getpid()});
  owner_told_ = true;
}

void Keeper::TellOwner(std::string component, std::string message) {
  if (owner_.valid())
    (void)owner_.Send(ipc::Notice{std::move(component), std::move(message)});
  else if (!owner_gone_)
    std::fprintf(stderr, "%s: %s\n", OneLine(component).c_str(), OneLine(message).c_str());
}

void Keeper::SayFull(Time now) {
  if (now < say_full_at_) return;
  say_full_at_ = now + kFullSaid;
  TellOwner("weft-keeper",
            "no more descriptors can be kept: ring sets of new processes wait until others are "
            "done with (limit of open files: " +
                std::to_string(ipc::DescriptorLimit()) + ")");
}

// The lowest that none of the others has.
uint32_t Keeper::FreeUid() const {
  uint32_t uid = options_.first_consumer_uid;
  const auto taken = [&](const auto& entry) { return entry.second && entry.second->uid == uid; };
  while (std::ranges::any_of(consumers_, taken)) ++uid;
  return uid;
}

void Keeper::StartConsumer(const std::string& name) {
  if (!ValidName(name) || consumers_.size() >= kMaxConsumers) return;
  auto& component = consumers_[name];
  if (component && !component->wanted) component->again = !quitting_;
  if (component) return;  // a new agent asks for what runs already
  component = std::make_unique<Component>();
  component->name = name;
  component->program = options_.bin_dir + "/weft-consumer";
  if (options_.first_consumer_uid != 0) {
    component->uid = FreeUid();
    component->arguments = {"--uid", std::to_string(component->uid)};
  }
  Tick();
}

void Keeper::StopConsumer(const std::string& name) {
  auto it = consumers_.find(name);
  if (it == consumers_.end()) return;
  Component& component = *it->second;
  component.wanted = component.again = false;
  component.kill_at = ipc::Loop::Clock::now() + kExitTime;
  if (component.child.pid < 0)
    consumers_.erase(it);
  else
    (void)component.child.connection.Send(ipc::Exit{});
}

// --- the end -----------------------------------------------------------------------------------

// What weft.ko records goes with the keeper's descriptors: without an heir the agent has it read
// first.
void Keeper::End() {
  is_ending_ = true;
  if (is_handing_over()) return;
  if (heirs_.Choose()) return BeginHandover();
  if (agent_.child.pid < 0 || !kept_complete_) return Quit();
  if (quit_by_ != Time::max()) return;
  quit_by_ = ipc::Loop::Clock::now() + kExitTime;
  (void)agent_.child.connection.Send(ipc::Exit{});
}

void Keeper::Quit() {
  if (quitting_) return;
  quitting_ = true;
  doorbells_.clear();
  std::vector<std::string> names;
  for (const auto& [name, consumer] : consumers_)
    if (consumer->wanted) names.push_back(name);
  for (const std::string& name : names) StopConsumer(name);
  agent_.wanted = false;
  agent_.kill_at = Time::max();
  ContinueQuit();
}

void Keeper::ContinueQuit() {
  if (!consumers_.empty()) return;
  if (agent_.child.pid > 0) {
    if (agent_.kill_at == Time::max()) {
      agent_.kill_at = ipc::Loop::Clock::now() + kExitTime;
      CloseChannel(agent_);
    }
    return;
  }
  if (options_.remove_dir) RemoveDir();
  loop_.Stop();
}

// --- handing over --------------------------------------------------------------------------------

bool Keeper::has_children() const {
  return agent_.child.pid > 0 ||
         std::ranges::any_of(consumers_, [](const auto& c) { return c.second->child.pid > 0; });
}

// Callers in a doorbell's backlog wait for the next keeper.
void Keeper::BeginHandover() {
  if (quitting_ || quit_by_ != Time::max()) return;
  hand_over_by_ = ipc::Loop::Clock::now() + kHandoverTime;
  for (auto& [name, doorbell] : doorbells_) {
    doorbell->AnswerAll();
    for (UniqueFd& caller : doorbell->GiveAway()) silent_[name].push_back(std::move(caller));
  }
  doorbells_.clear();
  const auto end = [](const Component& component) {
    if (component.child.pid > 0) kill(component.child.pid, SIGKILL);
  };
  end(agent_);
  for (const auto& [name, consumer] : consumers_) end(*consumer);
  ContinueHandover();
}

void Keeper::ContinueHandover() {
  if (!is_handing_over() || telling_heir_ || has_children()) return;
  telling_heir_ = true;
  heir_knows_all_ = false;
  vault_.ForgetWhatWasTold();
  TellHeir();
}

void Keeper::TellHeir() {
  ipc::Connection* heir = heirs_.chosen();
  if (!telling_heir_ || heir_knows_all_ || heir == nullptr) return;
  if (heirs_.understands()) {
    for (int i = 0; i < kTellAtOnce && !heir->wants_write(); ++i) {
      auto message = vault_.NextUntold();
      if (!message) break;
      (void)heir->Send(std::move(*message));
    }
    if (vault_.HasUntold() || heir->wants_write()) return;  // the next round goes on
    for (const auto& [name, callers] : silent_)
      for (const UniqueFd& caller : callers)
        (void)heir->Send(ipc::SilentCaller{name, CopyFd(caller)});
  }
  heir_knows_all_ = heir->Send(ipc::HandedOver{}).has_value();
}

void Keeper::EndHandover(bool taken) {
  telling_heir_ = false;
  if (taken) {
    lease_.GiveUp();
    is_retired_ = !is_ending_;
    return loop_.Stop();
  }
  hand_over_by_ = Time::max();
  (void)heirs_.TakeChosen();  // its connection closes, if it is there
  TellOwner("weft-keeper", "another keeper of this node asked for all, and did not take it");
  if (is_ending_) return Quit();
  agent_.recovery = {};
  for (auto& [name, consumer] : consumers_) consumer->recovery = {};
  Tick();
}

void Keeper::RemoveDir() const {
  DIR* dir = opendir(options_.dir.c_str());
  if (dir == nullptr) return;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] != '.') unlinkat(dirfd(dir), entry->d_name, 0);
  }
  closedir(dir);
  rmdir(options_.dir.c_str());
}

}  // namespace weft::keeper
