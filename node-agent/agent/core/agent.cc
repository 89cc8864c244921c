// SPDX-License-Identifier: Apache-2.0
// The agent's start, its keeper, its clockwork. See agent.h.
#include "node-agent/agent/core/agent.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "lib/abi/control.h"
#include "lib/base/empty_input.h"
#include "lib/base/kill_point.h"
#include "lib/ipc/descriptor_budget.h"
#include "lib/ipc/limits.h"
#include "node-agent/agent/base/clock_choice.h"
#include "node-agent/agent/base/copy_fd.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

const std::string kDoorbellKey = "doorbell/";
constexpr const char* kLifeKey = "life";

// Whether the kernel leaves this process's descriptors on their way (SCM_RIGHTS) uncounted: it asks
// for a capability in the first user namespace, which has this number always.
bool IsPrivileged() {
  constexpr ino_t kFirstUserNamespace = 0xEFFFFFFD;
  struct stat st{};
  if (stat("/proc/self/ns/user", &st) != 0 || st.st_ino != kFirstUserNamespace) return false;
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (syscall(SYS_capget, &header, data.data()) != 0) return false;
  return (data[0].effective & (1u << CAP_SYS_ADMIN | 1u << CAP_SYS_RESOURCE)) != 0;
}

// Each caller in the backlog has a descriptor on its way. Without a privilege the kernel lets a
// user have as many on their way as the limit of open files says; a quarter of them is for what
// weft's processes send each other.
int Backlog() {
  constexpr int kMost = ipc::kListenBacklog;
  if (IsPrivileged()) return kMost;
  return static_cast<int>(std::min<size_t>(kMost, ipc::DescriptorLimit() / 4 * 3));
}

}  // namespace

Agent::Agent(ipc::Loop& loop, std::string dir, ipc::Channel keeper)
    : loop_(loop),
      dir_(std::move(dir)),
      keeper_(std::move(keeper)),
      processes_(
          loop, [this](ipc::Message message) { ToKeeper(std::move(message)); },
          [this](const ProcessEntry& process) { TellProcessGone(process); }),
      finder_([this](FoundMemory found) { return OnFound(std::move(found)); }),
      kernel_([this](ipc::Message message) { ToKeeper(std::move(message)); }),
      dialer_(loop),
      containers_({.slot_count = PossibleCpus("/sys"), .clock = ChooseClock("/sys")}) {}

Status Agent::Start(Orders& orders) {
  orders_ = &orders;
  WEFT_TRY(loop_.WatchChannel(keeper_, [this](auto message) { OnKeeper(std::move(message)); }));
  loop_.AfterEachRound([this] {
    for (auto& [name, consumer] : consumers_) consumer->Pump();
  });
  loop_.Every(ipc::kHeartbeatInterval, [this] { ToKeeper(ipc::Heartbeat{.done = handled_}); });
  loop_.Every(kTick, [this] { Tick(); });
  loop_.Every(kLookInterval, [this] { Look(); });
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
    if (takes_arrivals_)
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
    orders_->OwnerGone();
  } else if (std::holds_alternative<ipc::Exit>(*message)) {
    End();
  }
}

// --- start ---------------------------------------------------------------------------------------

void Agent::OnKept(ipc::Kept kept) {
  KillPoint("kept");
  if (kept.key == kLifeKey) {
    life_ = std::strtoull(kept.meta.c_str(), nullptr, 10);
  } else if (kept.key.starts_with(kJournalKey)) {
    const std::string name = kept.key.substr(std::strlen(kJournalKey));
    auto link = ConsumerLink::Restore(name, kept.meta, std::move(kept.fd));
    if (link) consumers_[name] = std::make_unique<ConsumerLink>(std::move(*link));
  } else if (kept.key.starts_with(kDoorbellKey)) {
    doorbells_[kept.key.substr(kDoorbellKey.size())] = std::move(kept.fd);
  } else if (!orders_->TakeKept(kept) && !RestoreFound(kept) && !kernel_.Restore(kept)) {
    (void)processes_.Restore(kept);
  }
}

void Agent::OnKeptComplete() {
  if (complete_) return;
  if (const Status ready = MakeReady(); !ready) {
    ToKeeper(ipc::Notice{"weft-agent", ready.error().message});
    loop_.Stop();
    return;
  }
  complete_ = true;
  KillPoint("restored");
  Resume();
  KillPoint("resumed");
  ToKeeper(ipc::Hello{.pid = getpid()});
  orders_->Resumed();
}

void Agent::TakeArrivals() {
  if (takes_arrivals_) return;
  takes_arrivals_ = true;
  for (ipc::Arrived& arrived : early_) OnArrived(std::move(arrived));
  early_.clear();
  OnSynced(synced_);
  // What a predecessor did not come to count, of channels that it had drained.
  finder_.LookAtAll();
}

// A life's number is the upper half of its processes' numbers; any descriptor keeps it.
Status Agent::MakeReady() {
  recoveries_ = life_++;
  WEFT_ASSIGN(UniqueFd any, OpenEmptyInput());
  ToKeeper(ipc::Keep{kLifeKey, std::to_string(life_), std::move(any)});
  KillPoint("life_kept");
  processes_.SetLife(life_);
  processes_.Restored();
  WEFT_TRY(orders_->Open());
  RestoredKernelChannels();
  RestoredFound();
  return {};
}

// Does again what a predecessor may have left half done.
void Agent::Resume() {
  std::set<std::string> containers;
  ForEachChannel([&](Session&, SessionChannel& channel) {
    containers.insert(channel.container);
    if (channel.phase == ChannelPhase::kDrained) processes_.DropChannel(channel.definition.id);
  });
  PublishOrNote(containers);
  for (const auto& [name, consumer] : consumers_) ToKeeper(ipc::StartConsumer{name});
  StopChannels([](const SessionChannel& c) { return c.phase == ChannelPhase::kStopping; });
}

// --- sockets -------------------------------------------------------------------------------------

// Bound under another name and renamed: whoever finds the name finds somebody listening.
Result<UniqueFd> Agent::Listen(const std::string& folder, const std::string& name, unsigned mode) {
  const std::string path = folder + "/" + name;
  const std::string unfinished = path + ".new";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (unfinished.size() >= sizeof(address.sun_path))
    return Fail(ErrorCode::kInvalid, folder + ": name too long for a folder with sockets");
  std::memcpy(address.sun_path, unfinished.c_str(), unfinished.size() + 1);
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return FailErrno("socket");
  unlink(unfinished.c_str());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(unfinished.c_str(), mode) != 0 || listen(fd.get(), Backlog()) != 0 ||
      rename(unfinished.c_str(), path.c_str()) != 0)
    return FailErrno(path);
  return fd;
}

// The keeper keeps it, so that nobody who calls while the agent is away is turned down.
Status Agent::OpenDoorbell(const std::string& name, const std::string& folder) {
  UniqueFd& fd = doorbells_[name];
  if (!fd) {
    WEFT_ASSIGN(fd, Listen(folder, WEFT_DOORBELL_NAME, 0666));
    ToKeeper(ipc::Keep{kDoorbellKey + name, "", CopyFd(fd)});
  }
  ToKeeper(ipc::ListenDoorbell{name, CopyFd(fd)});
  return {};
}

std::vector<std::string> Agent::Doorbells() const {
  std::vector<std::string> names;
  names.reserve(doorbells_.size());
  for (const auto& [name, fd] : doorbells_) names.push_back(name);
  return names;
}

void Agent::CloseDoorbell(const std::string& name) {
  if (doorbells_.erase(name) == 0) return;
  ToKeeper(ipc::CloseDoorbell{name});
  ToKeeper(ipc::Drop{kDoorbellKey + name});
}

// --- clockwork and ends --------------------------------------------------------------------------

void Agent::Tick() {
  if (!complete_) return;
  const int64_t now = MonotonicNow();
  StopChannels([&](const SessionChannel& c) {
    return c.phase == ChannelPhase::kOn && c.stop_at_ns != 0 && now >= c.stop_at_ns;
  });
  if (!stop_after_sync_.empty() &&
      now - sync_asked_ns_ >= std::chrono::nanoseconds(kSyncPatience).count())
    StopBeforeSync();
  for (std::string& problem : kernel_.TakeProblems()) orders_->Note(std::move(problem));
  ReportKernel();
  orders_->Tick(now);
  const auto is_read = [](const auto& entry) {
    return std::ranges::none_of(entry.second->channels, [](const SessionChannel& c) {
      return c.of_kernel() && c.phase == ChannelPhase::kStopping;
    });
  };
  if (is_ending() && (now >= quit_by_ns_ || std::ranges::all_of(sessions_, is_read))) Quit();
}

// The rings of weft.ko's go with the keeper: they are read to their end now, and the next agent
// begins others. Those of processes live on, and wait for it.
void Agent::End() {
  quit_by_ns_ = MonotonicNow() + std::chrono::nanoseconds(kLastDrainWait).count();
  StopChannels(
      [](const SessionChannel& c) { return c.of_kernel() && c.phase == ChannelPhase::kOn; });
}

void Agent::ReportKernel() {
  for (const KernelChannels::News& news : kernel_.TakeNews()) {
    const Found found = Find(news.channel);
    if (found.channel == nullptr) continue;
    ipc::ChannelCounts& own = found.channel->own;
    const bool misses_first = own.missed_anywhere == 0 && news.missed_anywhere != 0;
    own.missed_anywhere = news.missed_anywhere;
    if (!news.stopped.empty()) {
      found.channel->stopped = news.stopped;
      own.tail_unknown = 1;  // what it would have recorded from here on
      orders_->Note("Trace \"" + found.channel->definition.trace + "\": " + news.stopped);
    }
    if (misses_first || !news.stopped.empty()) orders_->Changed(*found.session);
  }
}

void Agent::OnConsumerGone(const ipc::ConsumerGone& gone) {
  ++recoveries_;
  const auto found = consumers_.find(gone.name);
  if (found == consumers_.end()) return;
  found->second->given_up = gone.given_up;
  found->second->reason = gone.reason;
  orders_->Note("weft-consumer ended (" + gone.reason + ")" +
                (gone.given_up ? " again and again" : " and was started again"));
  if (!gone.given_up) return;
  GiveUp([&](const SessionChannel& c) { return c.consumer == gone.name; }, "consumer", "failed");
  orders_->ConsumerFailed(gone.name, gone.reason);
}

void Agent::Quit() {
  if (quit_sent_) return;
  quit_sent_ = true;
  ToKeeper(ipc::Quit{});
}

}  // namespace weft::agent
