// SPDX-License-Identifier: Apache-2.0
// What is told about wrong Traces before the API server looks at them.
#include "ust-injector/webhook/trace_check.h"

#include <gtest/gtest.h>

namespace weft::webhook {
namespace {

AdmissionRequest Request(const std::string& spec, const std::string& kind = "Trace") {
  AdmissionRequest request;
  request.group = "weft.dev";
  request.kind = kind;
  request.object = Json{{"metadata", {{"name", "orders"}}}, {"spec", Json::parse(spec)}};
  return request;
}

constexpr const char* kRight = R"({"user":{"events":[{"name":"shop:*"}]},"paused":false})";

TEST(TraceCheck, IsForTracesOnly) {
  EXPECT_TRUE(IsTrace(Request("{}")));
  EXPECT_TRUE(IsTrace(Request("{}", "ClusterTrace")));
  EXPECT_FALSE(IsTrace(Request("{}", "TraceSession")));
  AdmissionRequest other = Request("{}");
  other.group = "example.com";
  EXPECT_FALSE(IsTrace(other));
}

TEST(TraceCheck, AllowsARightTrace) {
  EXPECT_TRUE(WhyRefused(Request(kRight)).is_null());
  EXPECT_TRUE(WhyRefused(Request(R"({"kernel":{"tracepoints":[{"name":"*"}]}})", "ClusterTrace"))
                  .is_null());
}

// The API server checks the rest of the metadata, and gives a name after admission.
TEST(TraceCheck, LeavesMetadataToTheApiServer) {
  AdmissionRequest request = Request(kRight);
  request.object["metadata"] = Json::parse(R"({"generateName":"x-","labels":{"a b":"c d"}})");
  EXPECT_TRUE(WhyRefused(request).is_null());
  request.object["metadata"] = {{"name", std::string(64, 'n')}};
  EXPECT_EQ(WhyRefused(request)["details"]["causes"][0]["field"], "metadata.name");
}

// A newer API server's definition may have fields that this program does not know.
TEST(TraceCheck, AllowsUnknownFields) {
  EXPECT_TRUE(
      WhyRefused(Request(R"({"user":{"events":[{"name":"shop:*"}]},"newer":1})")).is_null());
}

TEST(TraceCheck, ReportsAllProblemsAtOnce) {
  const Json status = WhyRefused(
      Request(R"({"user":{"events":[{}]},"paused":"yes","duration":10,"filter":"a >"})"));
  EXPECT_EQ(status["reason"], "Invalid");
  EXPECT_EQ(status["code"], 422);
  EXPECT_EQ(status["details"]["kind"], "Trace");
  EXPECT_EQ(status["details"]["name"], "orders");
  std::string fields;
  for (const Json& cause : status["details"]["causes"])
    fields += cause["field"].get<std::string>() + " ";
  EXPECT_EQ(fields, "spec.duration spec.filter spec.paused spec.user.events[0].name ");
  for (const Json& cause : status["details"]["causes"]) {
    const std::string line =
        cause["field"].get<std::string>() + ": " + cause["message"].get<std::string>();
    EXPECT_TRUE(status["message"].get<std::string>().contains(line)) << line;
  }
}

TEST(TraceCheck, AnswersHostileTextsBrieflyAndPrintably) {
  const std::string evil = std::string(100'000, 'x') + "\x1b[2J\n\xc2\x9b";
  Json spec = Json::parse(kRight);
  spec["filter"] = evil;
  spec["context"] = {evil, evil + "2"};
  spec["pods"]["selector"]["matchLabels"] = {{evil, evil}};
  for (int i = 0; i < 200; ++i) spec["user"]["events"].push_back({{"name", evil}});
  AdmissionRequest request = Request("{}");
  request.object["spec"] = spec;
  EXPECT_EQ(WhyRefused(request)["message"], "spec: is larger than 1048576 bytes");
  while (spec["user"]["events"].size() > 5) spec["user"]["events"].erase(5);
  request.object["metadata"]["name"] = evil;
  request.object["spec"] = spec;
  const std::string answer = RefuseReview("u", WhyRefused(request));
  EXPECT_LT(answer.size(), 20'000U);
  for (const char* part : {"\x1b", "\\u001b", "\\n"}) EXPECT_FALSE(answer.contains(part)) << part;
}

TEST(TraceCheck, ReportsObjectsWithoutASpec) {
  AdmissionRequest request = Request("{}");
  for (const char* object : {"{}", R"({"spec":null})", R"({"spec":"x"})", R"({"metadata":3})"}) {
    request.object = Json::parse(object);
    EXPECT_EQ(WhyRefused(request)["details"]["causes"].size(), 1U) << object;
  }
}

}  // namespace
}  // namespace weft::webhook
