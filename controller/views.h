// SPDX-License-Identifier: Apache-2.0
// Deletes TraceViews that have expired. The relay does not believe them any more by then; this only
// keeps them from piling up. Used by one thread.
#ifndef WEFT_CONTROLLER_VIEWS_H_
#define WEFT_CONTROLLER_VIEWS_H_

#include <chrono>
#include <functional>

#include "lib/base/result.h"
#include "lib/kube/client.h"
#include "lib/kube/time.h"

namespace weft::controller {

class Views {
 public:
  static constexpr std::chrono::minutes kInterval{2};
  // Deleted so long after they expire: clocks differ, and a person may want to see why a download
  // ended.
  static constexpr std::chrono::minutes kMargin{5};

  explicit Views(kube::Client& client) : client_(client) {}

  // Idempotent. Returns when to call it again.
  Result<std::chrono::milliseconds> Reconcile(
      kube::WallTime now = std::chrono::system_clock::now());

 private:
  kube::Client& client_;
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_VIEWS_H_
