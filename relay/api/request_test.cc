// SPDX-License-Identifier: Apache-2.0
#include "relay/api/request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/base/token_bucket.h"
#include "relay/api/limits.h"

namespace weft::relay_api {
namespace {

using namespace std::chrono_literals;

const std::string kUid = "6f1c0b0e-5b1f-4c44-9a61-0d6f4ad6ac52";
const std::string kSecret(43, 'S');

TEST(Route, NamesWhatTheDocumentNames) {
  auto list = ParseRoute("/v1/namespaces/shop/traces");
  ASSERT_TRUE(list);
  EXPECT_EQ(list->verb, Verb::kListTraces);
  EXPECT_EQ(list->kubernetes_namespace, "shop");
  auto files = ParseRoute("/v1/namespaces/shop/traces/a.b/" + kUid + "/files");
  ASSERT_TRUE(files);
  EXPECT_EQ(files->verb, Verb::kListFiles);
  EXPECT_EQ(files->trace, "a.b");
  EXPECT_EQ(files->uid, kUid);
  EXPECT_EQ(ParseRoute("/v1/namespaces/shop/traces/a/" + kUid + "/archive.tar")->verb,
            Verb::kGetArchive);
  auto file = ParseRoute("/v1/namespaces/shop/traces/a/" + kUid + "/files/pod/main/x_0");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->verb, Verb::kGetFile);
  EXPECT_EQ(file->path, "pod/main/x_0");
}

TEST(Route, RefusesNamesThatTheArchiveDoesNotGive) {
  const std::string trace = "/v1/namespaces/shop/traces/a/" + kUid + "/files/";
  for (const std::string& path :
       std::vector<std::string>{"",
                                "/",
                                "/v1",
                                "/v1/namespaces/",
                                "/v1/namespaces/shop",
                                "/v1/namespaces/shop/",
                                "/v1/namespaces//traces",
                                "/v1/namespaces/../traces",
                                "/v1/namespaces/Shop/traces",
                                "/v1/namespaces/shop/traces/",
                                "/v1/namespaces/shop/traces/a",
                                "/v1/namespaces/shop/traces/../" + kUid + "/files",
                                "/v1/namespaces/shop/traces/a/../files",
                                "/v1/namespaces/shop/traces/a/b/files",
                                "/v1/namespaces/shop/pods/a/" + kUid + "/files",
                                trace,
                                trace + "..",
                                trace + "a/../b",
                                trace + "a//b",
                                trace + "a/",
                                trace + ".hidden",
                                trace + "a%2fb",
                                trace + std::string("a\0b", 3),
                                trace + "a b",
                                trace + "\xc3\xa4",
                                trace + std::string(kMaxPathBytes + 1, 'a')}) {
    const auto route = ParseRoute(path);
    ASSERT_FALSE(route) << path;
    EXPECT_EQ(route.error().code, ErrorCode::kNotFound);
  }
}

TEST(TokenText, TellsViewsFromTokensOfKubernetes) {
  const auto view = ParseToken("shop.my.view." + kSecret, "");
  ASSERT_TRUE(view);
  EXPECT_TRUE(view->is_view());
  EXPECT_EQ(view->view_namespace, "shop");
  EXPECT_EQ(view->view_name, "my.view");
  EXPECT_EQ(view->secret, kSecret);
  const auto user = ParseToken("", "Bearer eyJh.eyJi.sig-_");
  ASSERT_TRUE(user);
  EXPECT_FALSE(user->is_view());
  EXPECT_EQ(user->secret, "eyJh.eyJi.sig-_");
  EXPECT_TRUE(ParseToken("shop.v." + kSecret, "Bearer x")->is_view()) << "the first one counts";
}

TEST(TokenText, RefusesWhatIsNoToken) {
  for (const std::string& text : std::vector<std::string>{
           "", "shop.view.short", "shop..view." + kSecret, "shop..." + kSecret,
           "shop.view." + std::string(kMaxSecretBytes + 1, 's'), "shop.view." + kSecret + "=",
           "shop.view." + kSecret + ", shop.view." + kSecret, "a b",
           std::string(kMaxTokenBytes + 1, 'a'), std::string("a\0b", 3)}) {
    const auto token = ParseToken(text, "");
    ASSERT_FALSE(token) << text;
    EXPECT_EQ(token.error().code, ErrorCode::kPermission);
    EXPECT_EQ(token.error().message.find(kSecret), std::string::npos);
  }
  EXPECT_FALSE(ParseToken("", "Basic eyJh"));
}

TEST(RangeText, TakesOneRangeFromTheStart) {
  EXPECT_EQ(ParseRange("bytes=7-")->first, 7U);
  EXPECT_FALSE(ParseRange("bytes=7-")->last);
  EXPECT_EQ(ParseRange("bytes=7-9")->last, 9U);
  EXPECT_EQ(ParseRange("bytes=0-18446744073709551615")->last, UINT64_MAX);
  for (const char* text :
       {"", "bytes", "bytes=", "bytes=-", "bytes=-5", "bytes=9-7", "bytes=a-", "bytes=1-2,4-5",
        "bytes=1-x", "bytes= 1-", "bytes=+1-", "lines=1-", "bytes=18446744073709551616-"}) {
    EXPECT_FALSE(ParseRange(text)) << text;
  }
}

TEST(QueryText, HasNumbers) {
  EXPECT_EQ(*NumberIn("since=5&until=18446744073709551615", "until"), UINT64_MAX);
  EXPECT_EQ(*NumberIn("a=b&since=5", "since"), 5U);
  EXPECT_EQ(*NumberIn("", "since"), std::nullopt);
  EXPECT_EQ(*NumberIn("sincerely=1&&=", "since"), std::nullopt);
  for (const char* text : {"since", "since=", "since=-1", "since=x", "since=1x", "since= 1",
                           "since=18446744073709551616", "a&since=%31"}) {
    EXPECT_EQ(NumberIn(text, "since").error().code, ErrorCode::kInvalid) << text;
  }
}

TEST(QueryText, HasPods) {
  EXPECT_EQ(*PodsIn("pod=a&since=1&pod=b-1.c"), (std::vector<std::string>{"a", "b-1.c"}));
  EXPECT_TRUE(PodsIn("")->empty());
  EXPECT_TRUE(PodsIn("pods=a&=&&")->empty());
  for (const char* text : {"pod=", "pod=.", "pod=../x", "pod=a/b", "pod=a%2f", "pod=a&pod=*"}) {
    EXPECT_EQ(PodsIn(text).error().code, ErrorCode::kInvalid) << text;
  }
}

TEST(Rates, AnEmptyBucketFillsAgain) {
  TokenBucket bucket(2, 3);
  TokenBucket::Clock::time_point now{1h};
  for (int i = 0; i < 3; i++) EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
  now += 500ms;
  EXPECT_TRUE(bucket.Take(now));
  EXPECT_FALSE(bucket.Take(now));
}

TEST(Rates, ManyKeysAreBounded) {
  TokenBuckets buckets(1, 1, 2);
  TokenBucket::Clock::time_point now{1h};
  EXPECT_TRUE(buckets.Take("a", now));
  EXPECT_TRUE(buckets.Take("b", now));
  EXPECT_FALSE(buckets.Take("c", now));
  EXPECT_FALSE(buckets.Take("a", now));
  now += 1s;
  EXPECT_TRUE(buckets.Take("c", now)) << "the buckets of the others are full again";
}

}  // namespace
}  // namespace weft::relay_api
