// SPDX-License-Identifier: Apache-2.0
// See agent.h.
#include "node-agent/agent/core/agent.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lib/base/empty_input.h"
#include "lib/base/kill_point.h"
#include "lib/ipc/limits.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

constexpr const char* kLifeKey = "life";

}  // namespace

Agent::Agent(ipc::Loop& loop, std::string dir, ipc::Connection keeper, JournalFiles journals)
    : loop_(loop),
      dir_(std::move(dir)),
      journals_(std::move(journals)),
      keeper_(std::move(keeper)) {}

Status Agent::Start(AgentListener& listener, ContainerLookup& lookup) {
  listener_ = &listener;
  parts_ = std::make_unique<AgentParts>(
      loop_, dir_, journals_, [this](ipc::Message message) { ToKeeper(std::move(message)); },
      listener, lookup);
  WEFT_TRY(loop_.WatchConnection(keeper_, [this](auto message) { OnKeeper(std::move(message)); }));
  loop_.AfterEachRound([this] { parts_->consumers.Pump(); });
  loop_.Every(ipc::kHeartbeatInterval,
              [this] { ToKeeper(ipc::Heartbeat{.done = handled_ + parts_->consumers.handled()}); });
  loop_.Every(kTick, [this] { Tick(); });
  loop_.Every(kLookInterval, [this] {
    parts_->channels.Look();
    parts_->SettleMemory();
  });
  ToKeeper(ipc::Heartbeat{});
  return {};
}

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
    parts_->rings.TakeArrived(std::move(*arrived));
  } else if (auto* connect = std::get_if<ipc::Connect>(&*message)) {
    parts_->consumers.Connect(std::move(*connect));
  } else if (const auto* gone = std::get_if<ipc::ConsumerGone>(&*message)) {
    OnConsumerGone(*gone);
  } else if (const auto* synced = std::get_if<ipc::Synced>(&*message)) {
    parts_->channels.OnSynced(synced->number);
  } else if (std::holds_alternative<ipc::OwnerGone>(*message)) {
    listener_->OwnerGone();
  } else if (std::holds_alternative<ipc::Exit>(*message)) {
    End();
  }
}

// --- start ---------------------------------------------------------------------------------------

void Agent::OnKept(ipc::Kept kept) {
  KillPoint("kept");
  if (kept.key == kLifeKey)
    life_ = std::strtoull(kept.meta.c_str(), nullptr, 10);
  else if (!listener_->TakeKept(kept))
    parts_->TakeKept(kept);
}

void Agent::OnKeptComplete() {
  if (complete_) return;
  if (const Status restored = Restore(); !restored) {
    ToKeeper(ipc::Notice{program_invocation_short_name, restored.error().message});
    loop_.Stop();
    return;
  }
  complete_ = true;
  KillPoint("restored");
  parts_->channels.Resume();
  KillPoint("resumed");
  ToKeeper(ipc::Hello{.pid = getpid()});
  listener_->Resumed();
}

// A life's number is the upper half of its processes' numbers; any descriptor keeps it.
Status Agent::Restore() {
  recoveries_ = life_++;
  WEFT_ASSIGN(UniqueFd any, OpenEmptyInput());
  ToKeeper(ipc::Keep{kLifeKey, std::to_string(life_), std::move(any)});
  KillPoint("life_kept");
  parts_->processes.SetLife(life_);
  parts_->processes.Restored();
  WEFT_TRY(listener_->Restore());
  parts_->Restored();
  return {};
}

// This look finds ring sets that an earlier keeper had, and those of drained channels that an
// earlier agent did not come to count.
void Agent::TakeArrivals() {
  if (parts_->rings.has_begun()) return;
  parts_->rings.Begin();
  parts_->finder.LookAtAll();
  parts_->notifier.NoteRingsKnown();
  parts_->channels.OnRingsBegun();
}

// --- clockwork and ends --------------------------------------------------------------------------

void Agent::Tick() {
  if (!complete_) return;
  const int64_t now = MonotonicNow();
  parts_->channels.Tick(now);
  parts_->kernel.ReportProblems();
  parts_->kernel.ReportNews();
  listener_->Tick(now);
  const auto is_read = [](const auto& entry) {
    return std::ranges::none_of(entry.second->channels, [](const SessionChannel& c) {
      return c.of_kernel() && c.phase == ChannelPhase::kStopping;
    });
  };
  if (is_ending() && (now >= quit_by_ns_ || std::ranges::all_of(parts_->sessions.all(), is_read)))
    Quit();
}

// The rings of weft.ko end with the keeper: they are read to their end now, and the next agent
// begins others. Rings of processes live on and wait for the next agent.
void Agent::End() {
  quit_by_ns_ = MonotonicNow() + std::chrono::nanoseconds(kLastDrainWait).count();
  parts_->channels.Stop(
      [](const SessionChannel& c) { return c.of_kernel() && c.phase == ChannelPhase::kOn; });
}

void Agent::OnConsumerGone(const ipc::ConsumerGone& gone) {
  ++recoveries_;
  if (!parts_->consumers.NoteEnd(gone)) return;
  if (gone.out_of_memory) listener_->ConsumerOutOfMemory(gone.name, gone.reason);
  if (!gone.given_up) return;
  parts_->channels.GiveUp([&](const SessionChannel& c) { return c.consumer == gone.name; },
                          "consumer", "failed");
  listener_->ConsumerFailed(gone.name, gone.reason);
}

void Agent::Quit() {
  if (quit_sent_) return;
  quit_sent_ = true;
  ToKeeper(ipc::Quit{});
}

}  // namespace weft::agent
