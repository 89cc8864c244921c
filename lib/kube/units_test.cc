// SPDX-License-Identifier: Apache-2.0
// Paths, events, times, backoff: what needs no server.
#include <gtest/gtest.h>

#include <chrono>

#include "lib/kube/backoff.h"
#include "lib/kube/config.h"
#include "lib/kube/event.h"
#include "lib/kube/resource.h"

namespace weft::kube {
namespace {

TEST(Target, NamesCollectionsObjectsAndSubresources) {
  EXPECT_EQ(Target({.resource = kPods}), "/api/v1/pods");
  EXPECT_EQ(Target({.resource = kPods, .name_space = "a"}), "/api/v1/namespaces/a/pods");
  EXPECT_EQ(Target({.resource = kTraces, .name_space = "a", .name = "t", .subresource = "status"}),
            "/apis/weft.dev/v1alpha1/namespaces/a/traces/t/status");
  EXPECT_EQ(Target({.resource = kNodes}, {{"labelSelector", "a in (b, c)"}, {"limit", "5"}}),
            "/api/v1/nodes?labelSelector=a%20in%20%28b%2C%20c%29&limit=5");
}

TEST(Target, AForeignNameStaysOneSegment) {
  EXPECT_EQ(Target({.resource = kPods, .name_space = "../x", .name = "a/b?c"}),
            "/api/v1/namespaces/..%2Fx/pods/a%2Fb%3Fc");
}

TEST(Event, HasWhatTheApiWants) {
  const WallTime now{std::chrono::microseconds(1'767'323'045'000'006)};
  const Json event = MakeEvent({.regarding = {.api_version = "weft.dev/v1alpha1",
                                              .kind = "Trace",
                                              .name_space = "shop",
                                              .name = "t",
                                              .uid = "u"},
                                .warning = true,
                                .reason = "NotDrained",
                                .action = "Delete",
                                .note = std::string(1023, 'x') + "\u00e4",
                                .controller = "weft.dev/controller",
                                .instance = "p"},
                               now, 255);
  EXPECT_EQ(event["metadata"]["name"], "t.00000000000000ff");
  EXPECT_EQ(event["metadata"]["namespace"], "shop");
  EXPECT_EQ(event["eventTime"], "2026-01-02T03:04:05.000006Z");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["note"], std::string(1023, 'x'));
  EXPECT_EQ(event["regarding"]["namespace"], "shop");
}

TEST(Event, AnEventOfAClusterScopedObjectIsInDefault) {
  EXPECT_EQ(EventNamespace({.regarding = {.kind = "Node", .name = "n"}}), "default");
}

TEST(FormatTime, IsRfc3339) { EXPECT_EQ(FormatTime(WallTime{}), "1970-01-01T00:00:00Z"); }

TEST(ParseTime, ReadsWhatFormatTimeWrites) {
  const WallTime now{std::chrono::seconds(1'767'323'045)};
  EXPECT_EQ(ParseTime(FormatTime(now)), now);
  EXPECT_EQ(ParseTime("2026-01-02T03:04:05.999999Z"), now);
  // "Never", for a program for credentials.
  EXPECT_EQ(ParseTime("9999-12-31T23:59:59Z"), kLatestTime);
  EXPECT_EQ(ParseTime("0001-01-01T00:00:00Z"), kEarliestTime);
  for (const char* text :
       {"", "Z", "2026-01-02", "2026-13-02T03:04:05Z", "2026-02-30T03:04:05Z",
        "2026-01-02T24:04:05Z", "2026-01-02T03:04:05+01:00", "2026-01-02t03:04:05Z"})
    EXPECT_FALSE(ParseTime(text).has_value()) << text;
}

TEST(Backoff, DoublesUpToItsLimitAndBeginsAgain) {
  Backoff backoff;
  EXPECT_EQ(backoff.Next(0), Backoff::kFirst / 2);
  EXPECT_EQ(backoff.Next(0), Backoff::kFirst);
  for (int i = 0; i < 20; ++i) EXPECT_LE(backoff.Next(12345u * i), Backoff::kLongest);
  EXPECT_GE(backoff.Next(0), Backoff::kLongest / 2);
  backoff.Reset();
  EXPECT_EQ(backoff.Next(0), Backoff::kFirst / 2);
}

TEST(FindCluster, PrefersItsFlags) {
  const auto found = FindCluster({.server = "https://a"});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->server, "https://a");
}

TEST(FindCluster, FallsBackToThePodsFiles) {
  unsetenv("KUBERNETES_SERVICE_HOST");
  EXPECT_EQ(FindCluster({}).error().code, ErrorCode::kNotFound);
  setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
  setenv("KUBERNETES_SERVICE_PORT", "443", 1);
  const auto found = FindCluster({});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->server, "https://[fd00::1]:443");
  EXPECT_EQ(found->token_file, "/var/run/secrets/kubernetes.io/serviceaccount/token");
}

}  // namespace
}  // namespace weft::kube
