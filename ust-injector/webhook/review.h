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

// An API server takes requests of 3 MiB; a review has the object once (twice for updates, which are
// not asked for) with a little around it.
inline constexpr std::size_t kMaxReviewBytes = std::size_t{8} << 20;
// A pod is about 12 levels deep; its schema has no place without a bound.
inline constexpr int kMaxDepth = 64;
inline constexpr std::size_t kMaxUid = 128;

struct AdmissionRequest {
  std::string uid;
  std::string operation;   // CREATE
  std::string name_space;  // of the object
  bool dry_run = false;    // the request must have no effect besides the answer
  Json object;             // a Pod
};

// Fails with kCorrupt if the body is not an AdmissionReview about a Pod, and with kLimit if it is
// too large or too deep.
Result<AdmissionRequest> ParseReview(std::string_view body);

// Makes the answer "allowed", with the patch unless it is empty.
std::string AllowReview(const std::string& uid, const Json& patch);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_REVIEW_H_
