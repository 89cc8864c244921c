// SPDX-License-Identifier: Apache-2.0
// The controller: informers fill the queue, one thread works it off. Of several replicas one leads
// and works; the others stand by, with their queues filled, and look at the definitions only. Two
// that work at once for a moment do the work twice, which changes nothing.
#ifndef WEFT_CONTROLLER_CONTROLLER_H_
#define WEFT_CONTROLLER_CONTROLLER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <vector>

#include "controller/certificates.h"
#include "controller/definitions.h"
#include "controller/delivery/delivery.h"
#include "controller/object_cache.h"
#include "controller/reconcile/reconciler.h"
#include "controller/views.h"
#include "controller/work.h"
#include "lib/kube/backoff.h"
#include "lib/metrics/registry.h"

namespace weft::controller {

// The loop turns at least so often; a request takes kAnswerIdleLimit at most, and some follow
// another.
inline constexpr std::chrono::seconds kTurn{5};
inline constexpr std::chrono::seconds kStuck{180};

struct Options {
  std::string name_space;  // weft's own
  std::string instance;    // this pod
  api::RelayEndpoints relay;
  Library library;
  api::LabelSelector served_namespaces;               // others get no library
  std::size_t traces_per_namespace = SIZE_MAX;        // at most
  bool uninstalling = false;                          // only ends what there is: uninstall.h
  std::function<bool()> leads = [] { return true; };  // any thread
};

class Controller {
 public:
  Controller(kube::Client& client, const Options& options, metrics::Registry& metrics,
             std::function<void(const Error&)> on_error);

  // Stands by until it leads, then works until it is stopped or does not lead any more.
  void Run(const std::stop_token& stop);

  // For /healthz and /readyz, from any thread: "" or what is wrong.
  [[nodiscard]] std::string Stuck() const;
  [[nodiscard]] std::string NotReady() const;
  // The Traces with weft's finalizer; no value: the first lists are not complete yet.
  [[nodiscard]] std::optional<std::vector<std::string>> Held() const;

 private:
  void StandBy(const std::stop_token& stop);
  // When to do it again, if at all.
  Result<std::optional<std::chrono::milliseconds>> Do(const Work& work);
  void DoAndCount(const Work& work);
  void CountTraces();

  kube::Client& client_;
  WorkQueue queue_;
  ObjectCache cache_;
  Reconciler reconciler_;
  Delivery delivery_;
  Certificates certificates_;
  Definitions definitions_;
  Views views_;
  const bool uninstalling_;
  const std::function<bool()> leads_;
  const std::function<void(const Error&)> on_error_;
  metrics::Registry& metrics_;
  std::map<Work, kube::Backoff> failing_;
  std::minstd_rand random_;
  std::atomic<std::chrono::steady_clock::time_point> turned_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_CONTROLLER_H_
