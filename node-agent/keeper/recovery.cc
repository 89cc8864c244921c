// SPDX-License-Identifier: Apache-2.0
// See recovery.h. Called from the keeper's loop.
#include "node-agent/keeper/recovery.h"

#include <algorithm>

#include "lib/ipc/limits.h"

namespace weft::keeper {

std::chrono::milliseconds Recovery::Backoff() const {
  if (failures_ <= 1) return std::chrono::milliseconds(0);
  if (given_up()) return kGivenUpRetry;
  return std::min(kMaxBackoff, kFirstBackoff * (1u << (failures_ - 2)));
}

Recovery::Action Recovery::Due(Time now) {
  switch (state_) {
    case State::kWaiting:
      return now >= start_at_ ? Action::kStart : Action::kNone;
    case State::kDying:
      return Action::kKill;
    case State::kStarting:
    case State::kRunning:
      break;
  }
  if (now - last_heartbeat_ >= ipc::kHeartbeatTimeout) {
    reason_ = state_ == State::kStarting ? "no sign of life after its start" : "no heartbeat";
  } else if (pending_ > 0 && now - last_progress_ >= ipc::kProgressTimeout) {
    reason_ = "alive, but its work stands still";
  } else {
    if (state_ == State::kRunning && now - healthy_since_ >= kHealthyTime) failures_ = 0;
    return Action::kNone;
  }
  state_ = State::kDying;
  return Action::kKill;
}

std::optional<Time> Recovery::NextDue() const {
  switch (state_) {
    case State::kWaiting:
      return start_at_;
    case State::kDying:
      return std::nullopt;
    case State::kStarting:
    case State::kRunning:
      break;
  }
  Time next = last_heartbeat_ + ipc::kHeartbeatTimeout;
  if (pending_ > 0) next = std::min(next, last_progress_ + ipc::kProgressTimeout);
  return next;
}

void Recovery::Started(Time now) {
  state_ = State::kStarting;
  last_heartbeat_ = last_progress_ = now;
  done_ = pending_ = 0;
  if (started_once_) ++restarts_;
  started_once_ = true;
  reason_.clear();
}

void Recovery::Heartbeat(Time now, uint64_t done, uint64_t pending) {
  if (state_ == State::kStarting) {
    state_ = State::kRunning;
    healthy_since_ = now;
  }
  last_heartbeat_ = now;
  if (done != done_ || pending_ == 0) last_progress_ = now;
  done_ = done;
  pending_ = pending;
}

void Recovery::Died(Time now, std::string reason) {
  // What the keeper itself ended has its reason already.
  if (state_ != State::kDying) reason_ = std::move(reason);
  if (state_ == State::kRunning && now - healthy_since_ >= kHealthyTime) failures_ = 0;
  state_ = State::kWaiting;
  ++failures_;
  start_at_ = now + Backoff();
}

}  // namespace weft::keeper
