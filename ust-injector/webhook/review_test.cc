// SPDX-License-Identifier: Apache-2.0
// AdmissionReviews: what an API server sends, and what another client might.
#include "ust-injector/webhook/review.h"

#include <gtest/gtest.h>

namespace weft::webhook {
namespace {

Json Review() {
  return Json::parse(R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{
    "uid":"705ab4f5-6393-11e8-b7cc-42010a800002","kind":{"group":"","version":"v1","kind":"Pod"},
    "namespace":"shop","operation":"CREATE","dryRun":true,
    "object":{"kind":"Pod","metadata":{"generateName":"p-"}}}})");
}

TEST(Review, IsRead) {
  const auto request = ParseReview(Review().dump());
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_EQ(request->uid, "705ab4f5-6393-11e8-b7cc-42010a800002");
  EXPECT_EQ(request->name_space, "shop");
  EXPECT_EQ(request->group + "/" + request->kind, "/Pod");
  EXPECT_EQ(request->operation, "CREATE");
  EXPECT_TRUE(request->dry_run);
  EXPECT_EQ(request->object["kind"], "Pod");
}

TEST(Review, RefusesOtherJson) {
  for (const char* text : {"", "x", "null", "[]", "{}", "\xff"})
    EXPECT_EQ(ParseReview(text).error().code, ErrorCode::kCorrupt) << text;
  const auto refused = [](const Json::json_pointer& at, const Json& value) {
    Json review = Review();
    review[at] = value;
    return !ParseReview(review.dump()).has_value();
  };
  EXPECT_TRUE(refused("/apiVersion"_json_pointer, "admission.k8s.io/v1beta1"));
  EXPECT_TRUE(refused("/request/uid"_json_pointer, ""));
  EXPECT_TRUE(refused("/request/uid"_json_pointer, 1));
  EXPECT_TRUE(refused("/request/uid"_json_pointer, std::string(129, 'u')));
  EXPECT_TRUE(refused("/request/subResource"_json_pointer, "ephemeralcontainers"));
  EXPECT_TRUE(refused("/request/object"_json_pointer, nullptr));
  EXPECT_TRUE(refused("/request"_json_pointer, 3));
}

TEST(Review, SizeAndDepthAreBounded) {
  EXPECT_EQ(ParseReview(std::string(kMaxReviewBytes + 1, ' ')).error().code, ErrorCode::kLimit);
  EXPECT_EQ(ParseReview(std::string(1'000'000, '[')).error().code, ErrorCode::kLimit);
  const auto with_name = [](const std::string& name) {
    Json review = Review();
    review["request"]["object"]["metadata"]["name"] = name;
    return ParseReview(review.dump()).has_value();
  };
  EXPECT_TRUE(with_name(R"(\"")" + std::string(100, '[')));
  Json deep = Json::array();
  for (int i = 0; i < kMaxDepth; ++i) deep = Json::array({"]\\", deep});
  EXPECT_EQ(ParseReview(deep.dump()).error().code, ErrorCode::kLimit);
}

// As a tenant may write it: its elements are refused only after admission.
TEST(Review, ReadsALongListOfObjects) {
  Json review = Review();
  for (int i = 0; i < 1'000'000; ++i) review["request"]["object"]["spec"].push_back(Json::object());
  EXPECT_TRUE(ParseReview(review.dump()).has_value());
}

TEST(Review, TheAnswerAllows) {
  EXPECT_EQ(Json::parse(AllowReview("u", Json::array())),
            Json::parse(R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",
                            "response":{"uid":"u","allowed":true}})"));
  const Json patch = Json::parse(R"([{"op":"add","path":"/a","value":1}])");
  EXPECT_EQ(Json::parse(AllowReview("u", patch))["response"], Json::parse(R"({"uid":"u",
      "allowed":true,"patchType":"JSONPatch",
      "patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d"})"));
}

TEST(Review, ARefusalHasItsStatus) {
  const Json answer = Json::parse(RefuseReview("u", {{"message", "cut off: \xc3"}}))["response"];
  EXPECT_EQ(answer, Json::parse(R"({"uid":"u","allowed":false,
                                    "status":{"message":"cut off: \ufffd"}})"));
}

}  // namespace
}  // namespace weft::webhook
