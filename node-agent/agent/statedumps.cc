// SPDX-License-Identifier: Apache-2.0
#include "node-agent/agent/statedumps.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include "node-agent/kernel/module.h"

namespace weft::agent {

Statedumps::~Statedumps() {
  for (auto& [channel, dump] : dumps_) dump->thread.join();
}

// Signals are for the agent's own thread: one that came to this would end the dump.
void Statedumps::Begin(uint64_t channel, UniqueFd session) {
  std::unique_ptr<Dump>& dump = dumps_[channel];
  if (dump && !dump->over.load(std::memory_order_acquire)) return;
  if (dump) Finish(*dump);
  dump = std::make_unique<Dump>();
  dump->session = std::move(session);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  dump->thread = std::thread([dump = dump.get()] {
    dump->result = kernel::DumpState(dump->session);
    dump->session.reset();
    dump->over.store(true,
                     std::memory_order_release);  // with Begin's and TakeProblems' loads: result
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Statedumps::Finish(Dump& dump) {
  dump.thread.join();
  if (!dump.result && dump.result.error().sys_errno != ESHUTDOWN)
    problems_.push_back(dump.result.error().message + ": the trace lacks what was there before");
}

void Statedumps::Join(uint64_t channel) {
  const auto found = dumps_.find(channel);
  if (found == dumps_.end()) return;
  Finish(*found->second);
  dumps_.erase(found);
}

std::vector<std::string> Statedumps::TakeProblems() {
  for (auto it = dumps_.begin(); it != dumps_.end();) {
    // Acquire: Finish reads what the thread left.
    if (!it->second->over.load(std::memory_order_acquire)) {
      ++it;
      continue;
    }
    Finish(*it->second);
    it = dumps_.erase(it);
  }
  return std::exchange(problems_, {});
}

}  // namespace weft::agent
