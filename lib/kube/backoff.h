// SPDX-License-Identifier: Apache-2.0
// Computes how long to wait before the next try. Thread-safety: one thread.
#ifndef WEFT_LIB_KUBE_BACKOFF_H_
#define WEFT_LIB_KUBE_BACKOFF_H_

#include <algorithm>
#include <chrono>

namespace weft::kube {

class Backoff {
 public:
  using Duration = std::chrono::milliseconds;
  // The first retry is quick, since most failures are one lost connection; the longest keeps a
  // broken cluster's API server free of us.
  static constexpr Duration kFirst{200};
  static constexpr Duration kLongest{30'000};

  // `random` is any number: with it the programs of a cluster do not all come at the same moment.
  // Between half and all of what doubles with each call.
  Duration Next(unsigned random) {
    const Duration all = next_;
    next_ = std::min(next_ * 2, kLongest);
    return all / 2 + Duration(random % (all.count() / 2 + 1));
  }
  void Reset() { next_ = kFirst; }

 private:
  Duration next_ = kFirst;
};

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_BACKOFF_H_
