// SPDX-License-Identifier: Apache-2.0
// AdmissionReview v1.
#include "ust-injector/webhook/review.h"

#include <utility>

#include "lib/base/json_depth.h"
#include "lib/kube/base64.h"
#include "lib/kube/json.h"

namespace weft::webhook {
namespace {

using kube::At;
using kube::TextAt;

constexpr const char* kApiVersion = "admission.k8s.io/v1";

std::string Encode(Json response) {
  const Json review = {
      {"apiVersion", kApiVersion}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
  // A text may have been cut off within a character.
  return review.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<AdmissionRequest> ParseReview(std::string_view body) {
  if (body.size() > kMaxReviewBytes) return Fail(ErrorCode::kLimit, "the review is too large");
  if (NestsDeeperThan(body, kMaxDepth))
    return Fail(ErrorCode::kLimit, "the review is nested too deeply");
  Json review = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (TextAt(review, {"apiVersion"}) != kApiVersion ||
      TextAt(review, {"kind"}) != "AdmissionReview")
    return Fail(ErrorCode::kCorrupt, "not an AdmissionReview of admission.k8s.io/v1");
  if (TextAt(review, {"request", "subResource"}) != "")
    return Fail(ErrorCode::kCorrupt, "the review is about a part of an object");

  AdmissionRequest out;
  out.uid = TextAt(review, {"request", "uid"});
  if (out.uid.empty() || out.uid.size() > kMaxUid)
    return Fail(ErrorCode::kCorrupt, "the review has no uid");
  out.group = TextAt(review, {"request", "kind", "group"});
  out.kind = TextAt(review, {"request", "kind", "kind"});
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
  return Encode(std::move(response));
}

std::string RefuseReview(const std::string& uid, const Json& status) {
  return Encode({{"uid", uid}, {"allowed", false}, {"status", status}});
}

}  // namespace weft::webhook
