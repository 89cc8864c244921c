// SPDX-License-Identifier: Apache-2.0
// The work queue: hands out each piece of work once its time has come, and once however often it
// was added. Any thread may fill it; one thread empties it.
#ifndef WEFT_CONTROLLER_WORK_H_
#define WEFT_CONTROLLER_WORK_H_

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>

#include "controller/reconcile/facts.h"

namespace weft::controller {

enum class WorkKind {
  kTrace,         // key: the Trace
  kNamespace,     // key.name: deliver the library there
  kCertificates,  // no key
  kDefinitions,   // no key
  kViews,         // no key
};

struct Work {
  WorkKind kind = WorkKind::kTrace;
  ObjectKey key;
  auto operator<=>(const Work&) const = default;
};

class WorkQueue {
 public:
  using Clock = std::chrono::steady_clock;

  // At `delay` from now, or earlier if it was asked for earlier.
  void Add(const Work& work, std::chrono::milliseconds delay = {});

  // The next work that is due, at the latest after `patience`; nothing: none came, or the stop did.
  std::optional<Work> Take(const std::stop_token& stop, std::chrono::milliseconds patience);

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<Work, Clock::time_point> due_;
  std::uint64_t version_ = 0;  // of due_
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_WORK_H_
