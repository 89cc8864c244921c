// SPDX-License-Identifier: Apache-2.0
// See standby.h.
#include "node-agent/keeper/standby.h"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <csignal>

#include <cstdio>
#include <utility>

#include "lib/base/signal_fd.h"
#include "node-agent/keeper/limits.h"

namespace weft::keeper {

Standby::Standby(ipc::Loop& loop, const Options& options, Lease& lease, bool is_retired,
                 ipc::Connection holder)
    : loop_(loop),
      options_(options),
      lease_(lease),
      is_retired_(is_retired),
      holder_(std::move(holder)),
      inheritance_(options.descriptors.kept) {}

Standby::~Standby() {
  EndProbes();
  loop_.Cancel(look_);
  if (holder_.valid()) loop_.Unwatch(holder_.fd());
  if (signals_) loop_.Unwatch(signals_.get());
}

Status Standby::Start() {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGCHLD);
  sigaddset(&mask, SIGTERM);
  WEFT_ASSIGN(signals_, HoldSignals(mask));
  WEFT_TRY(loop_.Watch(signals_.get(), [this] { OnSignal(); }));
  if (holder_.valid()) WatchHolder();
  StartProbes();
  look_ = loop_.Every(kLookForLease, [this] { Tick(); });
  Tick();
  return {};
}

void Standby::Tick() {
  if (holder_.valid() && !took_over_) return;
  if (const auto held = lease_.TryTake(); held && *held) return loop_.Stop();
  if (holder_.valid()) return;
  // What an earlier connection brought is with its keeper as before.
  inheritance_ = Inheritance(options_.descriptors.kept);
  auto holder = ipc::Connection::ConnectTo(options_.dir + "/" + kHeirsSocket);
  if (!holder) return;  // it does not listen yet, or its version knows no heirs
  holder_ = std::move(*holder);
  WatchHolder();
  (void)holder_.Send(ipc::TakeOver{.now = !is_retired_});
}

void Standby::WatchHolder() {
  (void)loop_.WatchConnection(holder_, [this](auto message) { OnHolder(std::move(message)); });
}

void Standby::OnHolder(Result<ipc::Message> message) {
  if (!message) {
    loop_.Unwatch(holder_.fd());
    holder_.Close();
    took_over_ = false;
    return;
  }
  if (auto* kept = std::get_if<ipc::Kept>(&*message)) {
    inheritance_.vault.Inherit(std::move(*kept));
  } else if (auto* arrived = std::get_if<ipc::Arrived>(&*message)) {
    inheritance_.vault.Inherit(std::move(*arrived));
  } else if (auto* caller = std::get_if<ipc::SilentCaller>(&*message)) {
    inheritance_.silent[caller->doorbell].push_back(std::move(caller->fd));
  } else if (const auto* all = std::get_if<ipc::HandedOver>(&*message)) {
    took_over_ = true;
    has_same_version_ = all->version == ipc::kProtocolVersion;
    (void)holder_.Send(ipc::TakenOver{});
    Tick();
  }
}

ipc::Connection Standby::TakePredecessor() {
  if (holder_.valid()) loop_.Unwatch(holder_.fd());
  ipc::Connection predecessor = std::exchange(holder_, ipc::Connection());
  // One of another version connects again, and says which.
  return has_same_version_ ? std::move(predecessor) : ipc::Connection();
}

// --- the kubelet's probes ------------------------------------------------------------------------

void Standby::StartProbes() {
  const std::string reason =
      is_retired_ ? "" : "another weft-keeper of this node has not handed over yet";
  auto child = ipc::StartChild(
      options_.bin_dir + "/weft-node-agent",
      {"--dir", options_.dir, "--kubelet-dir", options_.kubelet_dir, "--standby", reason});
  if (!child) std::fprintf(stderr, "weft-keeper: %s\n", child.error().message.c_str());
  if (child) probes_ = std::move(*child);
}

void Standby::EndProbes() {
  if (probes_.pid < 0) return;
  kill(probes_.pid, SIGKILL);
  (void)waitpid(probes_.pid, nullptr, 0);
  probes_ = {};
}

void Standby::OnSignal() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == ssize_t{sizeof(info)}) {
    if (info.ssi_signo != SIGTERM) continue;
    has_ended_ = true;
    loop_.Stop();
  }
  // Without it the kubelet starts this container again.
  while (waitpid(-1, nullptr, WNOHANG) > 0) probes_.pid = -1;
}

}  // namespace weft::keeper
