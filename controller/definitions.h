// SPDX-License-Identifier: Apache-2.0
// Compares the definitions of weft's resources in the cluster with those that this program was
// built for. An older definition lets the API server drop the fields that it does not know.
// Thread-safety: Reconcile is for one thread, Problem for all.
#ifndef WEFT_CONTROLLER_DEFINITIONS_H_
#define WEFT_CONTROLLER_DEFINITIONS_H_

#include <chrono>
#include <mutex>
#include <string>

#include "lib/base/result.h"
#include "lib/kube/client.h"

namespace weft::controller {

// The path of the first field of `ours` that `theirs` does not have, such as
// "spec.kernel.syscalls"; "": there is none. Both: CustomResourceDefinitions.
std::string MissingField(const kube::Json& ours, const kube::Json& theirs);

class Definitions {
 public:
  static constexpr std::chrono::seconds kInterval{30};

  explicit Definitions(kube::Client& client) : client_(client) {}

  // Looks at all definitions; when to do that again. An error: the problem, too.
  Result<std::chrono::milliseconds> Reconcile();
  // Empty: no difference was found.
  [[nodiscard]] std::string Problem() const;

 private:
  kube::Client& client_;
  mutable std::mutex mutex_;
  std::string problem_ = "the definitions of weft's resources were not compared yet";
};

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_DEFINITIONS_H_
