// SPDX-License-Identifier: Apache-2.0
// Answers one request to the webhook: how to change a pod, or what is wrong with a Trace. A pod is
// always allowed: if the request cannot be read, or the pod not be changed, the pod stays as it is.
// A Trace is never changed. Thread-safety: Answer may run on several threads at once.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_SERVICE_H_
#define WEFT_UST_INJECTOR_WEBHOOK_SERVICE_H_

#include <functional>
#include <set>
#include <string>

#include "lib/base/result.h"
#include "lib/http/server.h"
#include "lib/metrics/registry.h"
#include "ust-injector/webhook/mutation.h"
#include "ust-injector/webhook/review.h"

namespace weft::webhook {

inline constexpr const char* kMutatePath = "/mutate";  // of pods
inline constexpr const char* kCheckPath = "/check";    // of Traces and ClusterTraces

class Service {
 public:
  using FactsOf = std::function<ClusterFacts(const std::string& name_space)>;
  using Notify = std::function<void(const Json& pod, const std::string& name_space,
                                    const LeftAlone& left_alone)>;

  using CountTraces = std::function<Result<std::size_t>(const std::string& name_space)>;

  // The service never touches pods of `own_namespace` and of kube-system.
  // `traces_per_namespace`: the most Traces of a namespace.
  Service(const std::string& own_namespace, FactsOf facts_of, Notify notify,
          metrics::Registry& metrics, CountTraces count_traces, std::size_t traces_per_namespace);

  http::Response Answer(const http::Request& request);

 private:
  std::string AnswerPod(const AdmissionRequest& review);
  std::string AnswerTrace(const AdmissionRequest& review);
  Json Patch(const Json& pod, const std::string& name_space, bool dry_run);
  void Count(const char* result, const std::string& reason);

  const std::set<std::string> untouched_;
  const FactsOf facts_of_;
  const Notify notify_;
  metrics::Registry& metrics_;
  const CountTraces count_traces_;
  const std::size_t traces_per_namespace_;
};

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_SERVICE_H_
