// SPDX-License-Identifier: Apache-2.0
// Any bytes as an AdmissionReview, and its object as a Trace or a pod: no crash; a refusal of
// bounded length; a patch that applies, and after which there is nothing more to do.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ust-injector/webhook/mutation.h"
#include "ust-injector/webhook/review.h"
#include "ust-injector/webhook/trace_check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft::webhook;
  const auto request = ParseReview({reinterpret_cast<const char*>(data), size});
  if (!request) return 0;
  if (IsTrace(*request)) {
    constexpr std::size_t kLongest = 200'000;
    if (RefuseReview(request->uid, WhyRefused(*request)).size() > kLongest) std::abort();
    return 0;
  }
  const ClusterFacts cluster = {.library = Library{"weft-lib-0", {"amd64"}},
                                .node_architectures = {"amd64"}};
  const Mutation mutation = MutatePod(request->object, cluster);
  (void)AllowReview(request->uid, mutation.patch);
  const Json changed = request->object.patch(mutation.patch);
  if (!MutatePod(changed, cluster).patch.empty()) std::abort();
  return 0;
}
