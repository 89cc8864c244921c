// SPDX-License-Identifier: Apache-2.0
// Events about pods that were left alone, posted on a thread of their own, so that no answer waits
// for them. An Event that was posted within the last kSilence is not posted again: a Deployment's
// controller tries again and again.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_NOTICES_H_
#define WEFT_UST_INJECTOR_WEBHOOK_NOTICES_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "lib/kube/client.h"
#include "lib/kube/event.h"
#include "ust-injector/webhook/mutation.h"

namespace weft::webhook {

// At most this many notices wait; more are dropped, since an Event is a courtesy.
inline constexpr std::size_t kMaxNotices = 256;
// At most this many (object, reason) pairs are remembered, and for this long no second Event is
// posted.
inline constexpr std::size_t kMaxRemembered = 4096;
inline constexpr std::chrono::minutes kSilence{10};

// Returns the object that an Event about a pod regards: the pod's owner, since the pod has no name
// yet or will not be seen.
kube::ObjectReference Regarding(const Json& pod, const std::string& name_space);

class Notices {
 public:
  Notices(kube::Client& client, std::string instance, std::function<void(const Error&)> on_error);
  ~Notices() = default;  // what is waiting is dropped
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;

  // May run in any thread; does not wait.
  void Post(const Json& pod, const std::string& name_space, const LeftAlone& left_alone);

 private:
  void Run(const std::stop_token& stop);

  kube::Client& client_;
  const std::string instance_;
  const std::function<void(const Error&)> on_error_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<kube::EventNote> waiting_;
  std::map<std::string, std::chrono::steady_clock::time_point> said_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_NOTICES_H_
