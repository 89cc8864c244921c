// SPDX-License-Identifier: Apache-2.0
// What the kubelet and Prometheus are told.
#include "lib/http/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

namespace weft::http {
namespace {

TEST(Health, SaysWhatIsWrongAndCounts) {
  prometheus::Registry registry;
  prometheus::BuildCounter()
      .Name("weft_test_total")
      .Help("x")
      .Register(registry)
      .Add({{"a", "b"}})
      .Increment(3);
  const Health health = {
      .alive = [] { return ""; }, .ready = [] { return "no certificate"; }, .metrics = &registry};
  const auto get = [&](const std::string& path) {
    return AnswerHealth(health, {.method = "GET", .path = path});
  };
  EXPECT_EQ(get("/healthz").status, 200);
  EXPECT_EQ(get("/readyz").status, 503);
  EXPECT_EQ(get("/readyz").body, "no certificate\n");
  EXPECT_THAT(get("/metrics").body, testing::HasSubstr("weft_test_total{a=\"b\"} 3"));
  EXPECT_EQ(get("/").status, 404);
  EXPECT_EQ(AnswerHealth(health, {.method = "POST", .path = "/healthz"}).status, 405);
}

}  // namespace
}  // namespace weft::http
