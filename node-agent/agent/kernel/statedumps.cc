// SPDX-License-Identifier: Apache-2.0
// See statedumps.h.
#include "node-agent/agent/kernel/statedumps.h"

#include <cerrno>
#include <utility>

#include "lib/base/background.h"

namespace weft::agent {

Statedumps::~Statedumps() {
  for (auto& [channel, dump] : dumps_) dump->thread.join();
}

void Statedumps::Begin(uint64_t channel, UniqueFd session, uint64_t cgroup) {
  const auto found = dumps_.find(channel);
  if (found == dumps_.end()) return Start(channel, std::move(session), {cgroup});
  found->second->next_session = std::move(session);
  found->second->next.insert(cgroup);
}

// Signals are for the agent's own thread: one that came to this would end the dump.
void Statedumps::Start(uint64_t channel, UniqueFd session, std::set<uint64_t> cgroups) {
  std::unique_ptr<Dump>& dump = dumps_[channel];
  dump = std::make_unique<Dump>();
  dump->session = std::move(session);
  dump->cgroups = std::move(cgroups);
  dump->thread = ThreadWithoutSignals([this, dump = dump.get()] {
    for (const uint64_t cgroup : dump->cgroups) {
      Status done = dump_state_(dump->session, cgroup);
      // The pod ended meanwhile.
      if (cgroup != 0 && !done && done.error().code == ErrorCode::kNotFound) continue;
      if (!done) dump->result = std::move(done);
    }
    dump->session.reset();
    // Release, with TakeProblems' load: result.
    dump->over.store(true, std::memory_order_release);
  });
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
  std::vector<uint64_t> over;
  // Acquire: Finish reads what the thread left.
  for (const auto& [channel, dump] : dumps_)
    if (dump->over.load(std::memory_order_acquire)) over.push_back(channel);
  for (const uint64_t channel : over) {
    const std::unique_ptr<Dump> dump = std::move(dumps_.at(channel));
    dumps_.erase(channel);
    Finish(*dump);
    if (!dump->next.empty()) Start(channel, std::move(dump->next_session), std::move(dump->next));
  }
  return std::exchange(problems_, {});
}

}  // namespace weft::agent
