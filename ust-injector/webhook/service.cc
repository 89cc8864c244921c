// SPDX-License-Identifier: Apache-2.0
// From a review to its answer.
#include "ust-injector/webhook/service.h"

#include <utility>

#include "ust-injector/webhook/review.h"

namespace weft::webhook {

Service::Service(const std::string& own_namespace, FactsOf facts_of, Notify notify,
                 metrics::Registry& metrics)
    : untouched_({own_namespace, "kube-system"}),
      facts_of_(std::move(facts_of)),
      notify_(std::move(notify)),
      metrics_(metrics) {}

void Service::Count(const char* result, const std::string& reason) {
  metrics_.Add(metrics::Id::kWebhookPods, {result, reason});
}

Json Service::Patch(const Json& pod, const std::string& name_space, bool dry_run) {
  if (untouched_.contains(name_space)) return Json::array();
  Mutation mutation = MutatePod(pod, facts_of_(name_space));
  if (mutation.containers > 0) Count("injected", "");
  for (const LeftAlone& left_alone : mutation.left_alone) {
    Count("skipped", left_alone.reason);
    if (!left_alone.quiet && !dry_run) notify_(pod, name_space, left_alone);
  }
  return std::move(mutation.patch);
}

http::Response Service::Answer(const http::Request& request) {
  if (request.path != kMutatePath) return {.status = 404, .body = "not found\n"};
  if (request.method != "POST") return {.status = 405, .body = "POST only\n"};
  auto review = ParseReview(request.body);
  if (!review) {
    Count("refused", "BadReview");
    return {.status = 400, .body = review.error().message + "\n"};
  }
  const bool creates = review->operation == "CREATE";
  const Json patch =
      creates ? Patch(review->object, review->name_space, review->dry_run) : Json::array();
  return {.content_type = "application/json", .body = AllowReview(review->uid, patch)};
}

}  // namespace weft::webhook
