// SPDX-License-Identifier: Apache-2.0
// AdmissionReview v1.
#include "ust-injector/webhook/review.h"

#include <utility>

#include "lib/kube/base64.h"
#include "lib/kube/json.h"

namespace weft::webhook {
namespace {

using kube::At;
using kube::TextAt;

constexpr const char* kApiVersion = "admission.k8s.io/v1";

// Not JSON: null.
Json ParseBounded(std::string_view text, bool& too_deep) {
  const auto bound = [&too_deep](int depth, Json::parse_event_t, Json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  Json out = Json::parse(text, bound, /*allow_exceptions=*/false);
  return out.is_discarded() ? Json() : out;
}

}  // namespace

Result<AdmissionRequest> ParseReview(std::string_view body) {
  if (body.size() > kMaxReviewBytes) return Fail(ErrorCode::kLimit, "the review is too large");
  bool too_deep = false;
  Json review = ParseBounded(body, too_deep);
  if (too_deep) return Fail(ErrorCode::kLimit, "the review is nested too deeply");
  if (TextAt(review, {"apiVersion"}) != kApiVersion ||
      TextAt(review, {"kind"}) != "AdmissionReview")
    return Fail(ErrorCode::kCorrupt, "not an AdmissionReview of admission.k8s.io/v1");
  if (TextAt(review, {"request", "kind", "group"}) != "" ||
      TextAt(review, {"request", "kind", "kind"}) != "Pod" ||
      TextAt(review, {"request", "subResource"}) != "")
    return Fail(ErrorCode::kCorrupt, "the review is not about a Pod");

  AdmissionRequest out;
  out.uid = TextAt(review, {"request", "uid"});
  if (out.uid.empty() || out.uid.size() > kMaxUid)
    return Fail(ErrorCode::kCorrupt, "the review has no uid");
  out.operation = TextAt(review, {"request", "operation"});
  out.name_space = TextAt(review, {"request", "namespace"});
  const Json* dry_run = At(review, {"request", "dryRun"});
  out.dry_run = dry_run != nullptr && dry_run->is_boolean() && dry_run->get<bool>();
  if (const Json* object = At(review, {"request", "object"});
      object == nullptr || !object->is_object())
    return Fail(ErrorCode::kCorrupt, "the review has no object");
  out.object = std::move(review["request"]["object"]);
  return out;
}

std::string AllowReview(const std::string& uid, const Json& patch) {
  Json response = {{"uid", uid}, {"allowed", true}};
  if (!patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = EncodeBase64(patch.dump());
  }
  const Json review = {
      {"apiVersion", kApiVersion}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
  return review.dump();
}

}  // namespace weft::webhook
