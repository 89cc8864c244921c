// SPDX-License-Identifier: Apache-2.0
// See agent_double.h.
#include "tests/hostile/agent_double.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

namespace weft::hostile {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

AgentDouble::AgentDouble(UniqueFd folder) : maker_(std::move(folder)) {
  auto to_keeper = ipc::Connection::MakePair();
  auto to_agent = ipc::Connection::MakePair();
  if (!to_keeper || !to_agent) std::abort();
  const int end = to_keeper->second.get();
  pid_ = ::fork();
  if (pid_ == 0) {
    const std::string program = std::string(WEFT_BINARY_DIR) + "/bin/weft-consumer";
    const int moved = ::fcntl(end, F_DUPFD, 10);
    ::dup2(moved, ipc::kKeeperFd);
    ::close(moved);
    ::execl(program.c_str(), program.c_str(), nullptr);
    ::_exit(127);
  }
  keeper_ = ipc::Connection(std::move(to_keeper->first));
  agent_ = ipc::Connection(std::move(to_agent->first));
  (void)keeper_.Send(ipc::Connect{"", std::move(to_agent->second)});
  ipc::Configure configure;
  configure.journal = UniqueFd(memfd_create("journal", MFD_CLOEXEC));
  configure.clock = WEFT_CLOCK_TSC;
  configure.slot_count = 8;
  Send(std::move(configure));
}

AgentDouble::~AgentDouble() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void AgentDouble::Send(ipc::Message message) {
  // Rings have descriptors: few at a time, so that none is refused.
  while (agent_.wants_write() && alive()) Pump();
  (void)agent_.Send(std::move(message));
}

void AgentDouble::Handle(ipc::Message message) {
  if (auto* request = std::get_if<ipc::FileRequest>(&message)) {
    auto file = maker_.OpenFile(request->name);
    ipc::FileAnswer answer{.request = request->request, .error = file ? 0 : EACCES};
    if (file) answer.fd = std::move(*file);
    (void)agent_.Send(std::move(answer));
  } else if (auto* ready = std::get_if<ipc::ChannelReady>(&message)) {
    ready_[ready->channel_id] = ready->error.empty();
  } else if (auto* stats = std::get_if<ipc::Stats>(&message)) {
    counts_[stats->channel_id] = stats->counts;
  } else if (auto* drained = std::get_if<ipc::Drained>(&message)) {
    counts_[drained->channel_id] = drained->counts;
    drained_[drained->channel_id] = true;
  } else if (auto* done = std::get_if<ipc::RingDone>(&message)) {
    rings_corrupt_ += done->corrupt ? 1 : 0;
    (void)agent_.Send(ipc::ForgetRing{done->channel_id, done->instance});
    done_[{done->channel_id, done->instance}] = *done;
  }
}

void AgentDouble::Pump() {
  (void)agent_.Flush();
  auto message = agent_.Wait(std::chrono::milliseconds(2));
  if (message) Handle(std::move(*message));
  // Takes heartbeats, so that the socket never fills.
  while (auto beat = keeper_.Receive()) {
    if (!*beat) break;
  }
}

bool AgentDouble::WaitUntil(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!done()) {
    if (!alive() || std::chrono::steady_clock::now() > deadline) return false;
    Pump();
  }
  return true;
}

bool AgentDouble::AddChannel(const ipc::ChannelDefinition& definition) {
  Send(definition);
  return WaitUntil([&] { return ready_.contains(definition.id); }) && ready_[definition.id];
}

void AgentDouble::AddRing(uint64_t channel, uint64_t instance, uint64_t process, UniqueFd fd) {
  ipc::Ring ring;
  ring.channel_id = channel;
  ring.instance = instance;
  ring.process = process;
  ring.fd = std::move(fd);
  Send(std::move(ring));
}

void AgentDouble::ProcessGone(uint64_t process) { Send(ipc::ProcessGone{process}); }

bool AgentDouble::StopAndDrain(uint64_t channel) {
  Send(ipc::StopChannel{channel});
  return WaitUntil([&] { return drained_.contains(channel); });
}

const ipc::RingDone* AgentDouble::done(uint64_t channel, uint64_t instance) const {
  const auto found = done_.find({channel, instance});
  return found == done_.end() ? nullptr : &found->second;
}

bool AgentDouble::alive() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

uint64_t AgentDouble::resident() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::strtoull(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

size_t AgentDouble::descriptors() const {
  size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
    (void)entry;
    count++;
  }
  return count;
}

int AgentDouble::End() {
  (void)keeper_.Send(ipc::Exit{});
  int status = -1;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  return status;
}

}  // namespace weft::hostile
