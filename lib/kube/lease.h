// SPDX-License-Identifier: Apache-2.0
// Leader election among the replicas of a program: a Lease object (coordination.k8s.io/v1), which
// one holder at a time renews. Clocks of different nodes are not compared: a Lease has expired when
// it did not change for its duration, measured here.
#ifndef WEFT_LIB_KUBE_LEASE_H_
#define WEFT_LIB_KUBE_LEASE_H_

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "lib/base/result.h"
#include "lib/kube/client.h"

namespace weft::kube {

// Those of Kubernetes' own components. A holder acts for kLeaseUse after its last renewal began, so
// that it has stopped before another one begins.
inline constexpr std::chrono::seconds kLeaseDuration{15};
inline constexpr std::chrono::seconds kLeaseUse{10};
inline constexpr std::chrono::seconds kLeaseRetry{2};

// Used by one thread.
class Lease {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Names {
    std::string name_space;
    std::string name;
    std::string holder;  // this replica
  };

  Lease(Client& client, Names names) : client_(client), names_(std::move(names)) {}

  // Takes or renews the lease. False: another replica has it.
  Result<bool> Take(Time now);
  // Lets another replica take it at once.
  Status Release();

 private:
  [[nodiscard]] Address address() const;
  // Changes the spec of the Lease that was read. kConflict: it was changed meanwhile.
  Result<Json> Patch(const Json& lease, const Json& spec);
  // Makes this replica the holder of a Lease that `previous` had.
  Result<bool> Write(const Json& lease, const std::string& previous);

  Client& client_;
  const Names names_;
  std::string seen_version_;  // resourceVersion of the Lease, as it was last seen
  Time seen_since_;
};

// Holds a Lease with a thread of its own, until it is destroyed; then the lease is released.
// Thread-safety: leads().
class Leadership {
 public:
  Leadership(Client& client, Lease::Names names, std::function<void(const Error&)> on_error);
  ~Leadership();
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

  // May this replica act now?
  [[nodiscard]] bool leads() const;

 private:
  void Run(const std::stop_token& stop);

  Lease lease_;
  const std::function<void(const Error&)> on_error_;
  std::atomic<Lease::Time> until_{Lease::Time::min()};
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_LEASE_H_
