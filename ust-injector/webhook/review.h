// SPDX-License-Identifier: Apache-2.0
// Decodes and encodes AdmissionReview v1. Its bytes are foreign: every process in a cluster can
// reach the webhook. Thread-safety: pure functions.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_REVIEW_H_
#define WEFT_UST_INJECTOR_WEBHOOK_REVIEW_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft::webhook {

using Json = nlohmann::json;

// An API server takes requests of 3 MiB; a review has the object once, of a Trace's update also the
// old one (1.5 MiB in etcd), with a little around it.
inline constexpr std::size_t kMaxReviewBytes = std::size_t{5} << 20;
// A pod is about 12 levels deep, a Trace less; neither schema has a place without a bound.
inline constexpr int kMaxDepth = 64;
inline constexpr std::size_t kMaxUid = 128;

struct AdmissionRequest {
  std::string uid;
  std::string group;       // of the object: "", weft.dev
  std::string kind;        // of the object: Pod, Trace
  std::string operation;   // CREATE, UPDATE
  std::string name_space;  // of the object
  bool dry_run = false;    // the request must have no effect besides the answer
  Json object;
};

// Fails with kCorrupt if the body is not an AdmissionReview about an object, and with kLimit if it
// is too large or too deep.
Result<AdmissionRequest> ParseReview(std::string_view body);

// Makes the answer "allowed", with the patch unless it is empty.
std::string AllowReview(const std::string& uid, const Json& patch);

// Makes the answer "not allowed", with a Status (meta/v1) for the user.
std::string RefuseReview(const std::string& uid, const Json& status);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_REVIEW_H_
