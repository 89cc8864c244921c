// SPDX-License-Identifier: Apache-2.0
// AttemptRecovery of one component, as a state machine without clock or processes: the keeper tells
// it what happened and asks what to do.
//
//            Started            first Heartbeat
//   waiting --------> starting ------------------> running
//      ^                 |  no heartbeat, no          |
//      |   Died          v  progress: kKill           |
//      +-------------- dying <------------------------+
//
// It is started at once after the first failure, then after kFirstBackoff, twice that, and so on up
// to kMaxBackoff; kFailuresToGiveUp failures in a row without kHealthyTime of good health between
// them are said to the user, and then it is tried again every kGivenUpRetry.
// Thread-safety: plain value.
#ifndef WEFT_NODE_AGENT_KEEPER_RECOVERY_H_
#define WEFT_NODE_AGENT_KEEPER_RECOVERY_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace weft::keeper {

using Time = std::chrono::steady_clock::time_point;

inline constexpr std::chrono::milliseconds kFirstBackoff{100};
inline constexpr std::chrono::milliseconds kMaxBackoff{5'000};
inline constexpr std::chrono::milliseconds kHealthyTime{30'000};
inline constexpr std::chrono::milliseconds kGivenUpRetry{30'000};
inline constexpr uint32_t kFailuresToGiveUp = 6;

class Recovery {
 public:
  enum class Action : uint8_t { kNone, kStart, kKill };

  // What is due at `now`. kStart is repeated until Started, kKill until Died.
  Action Due(Time now);
  // When to ask again at the latest; none: only after something happened.
  [[nodiscard]] std::optional<Time> NextDue() const;

  void Started(Time now);
  void Heartbeat(Time now, uint64_t done, uint64_t pending);
  // `reason` says how it ended. An end that was asked for is no failure: Forget the component then.
  void Died(Time now, std::string reason);

  [[nodiscard]] bool running() const { return state_ == State::kRunning; }
  [[nodiscard]] uint32_t failures() const { return failures_; }  // in a row
  [[nodiscard]] uint64_t restarts() const { return restarts_; }  // ever
  [[nodiscard]] bool given_up() const { return failures_ >= kFailuresToGiveUp; }
  [[nodiscard]] const std::string& reason() const { return reason_; }  // of the last failure
  [[nodiscard]] std::chrono::milliseconds Backoff() const;

 private:
  enum class State : uint8_t { kWaiting, kStarting, kRunning, kDying };

  State state_ = State::kWaiting;
  Time start_at_{};       // kWaiting
  Time healthy_since_{};  // kRunning
  Time last_heartbeat_{};
  Time last_progress_{};
  uint64_t done_ = 0;
  uint64_t pending_ = 0;
  uint32_t failures_ = 0;
  uint64_t restarts_ = 0;
  bool started_once_ = false;
  std::string reason_;
};

}  // namespace weft::keeper

#endif  // WEFT_NODE_AGENT_KEEPER_RECOVERY_H_
