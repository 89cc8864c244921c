// SPDX-License-Identifier: Apache-2.0
// From a review to its answer.
#include "ust-injector/webhook/service.h"

#include <utility>

#include "ust-injector/webhook/trace_check.h"

namespace weft::webhook {
namespace {

bool IsPod(const AdmissionRequest& review) { return review.group.empty() && review.kind == "Pod"; }

}  // namespace

Service::Service(const std::string& own_namespace, FactsOf facts_of, Notify notify,
                 metrics::Registry& metrics, CountTraces count_traces,
                 std::size_t traces_per_namespace)
    : untouched_({own_namespace, "kube-system"}),
      facts_of_(std::move(facts_of)),
      notify_(std::move(notify)),
      metrics_(metrics),
      count_traces_(std::move(count_traces)),
      traces_per_namespace_(traces_per_namespace) {}

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

std::string Service::AnswerPod(const AdmissionRequest& review) {
  const bool creates = review.operation == "CREATE";
  return AllowReview(review.uid, creates ? Patch(review.object, review.name_space, review.dry_run)
                                         : Json::array());
}

// Allows a Trace if the API server does not give the number, or if several are made at once: the
// controller does not record those beyond the limit (Accepted, TooManyTraces).
std::string Service::AnswerTrace(const AdmissionRequest& review) {
  Json refusal = WhyRefused(review);
  if (refusal.is_null() && review.operation == "CREATE" && !review.name_space.empty()) {
    if (const auto others = count_traces_(review.name_space))
      refusal = WhyOneTooMany(*others, traces_per_namespace_);
  }
  return refusal.is_null() ? AllowReview(review.uid, Json::array())
                           : RefuseReview(review.uid, refusal);
}

http::Response Service::Answer(const http::Request& request) {
  const bool is_check = request.path == kCheckPath;
  if (!is_check && request.path != kMutatePath) return {.status = 404, .body = "not found\n"};
  if (request.method != "POST") return {.status = 405, .body = "POST only\n"};
  auto review = ParseReview(request.body);
  if (review && !(is_check ? IsTrace(*review) : IsPod(*review)))
    review = Fail(ErrorCode::kCorrupt, "the review is about another kind of object");
  if (!review) {
    Count("refused", "BadReview");
    return {.status = 400, .body = review.error().message + "\n"};
  }
  return {.content_type = "application/json",
          .body = is_check ? AnswerTrace(*review) : AnswerPod(*review)};
}

}  // namespace weft::webhook
