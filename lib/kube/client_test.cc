// SPDX-License-Identifier: Apache-2.0
// The client against a server on loopback: requests as sent, answers as they come, what goes wrong.
// What an API server does with them is proved by tests/cluster.
#include "lib/kube/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "lib/kube/informer.h"
#include "lib/kube/testing.h"

namespace weft::kube {
namespace {

using testing::Answer;
using testing::Chunk;
using ::testing::HasSubstr;
using testing::kChunkedHead;
using testing::kLastChunk;
using testing::LoopbackServer;
using ::testing::Not;
using testing::SeenRequest;
using ::testing::StartsWith;
using Write = LoopbackServer::Write;

const Address kTrace{.resource = kTraces, .name_space = "shop", .name = "t"};
const Address kAllTraces{.resource = kTraces, .name_space = "shop"};

Client MakeClient(const LoopbackServer& server, const std::string& token_file = "") {
  return {MakeTransport({.server = server.url(), .token_file = token_file}), "weft-test"};
}

TEST(Client, SendsItsTokenWithEachRequest) {
  const auto token =
      std::filesystem::temp_directory_path() / ("weft-token-" + std::to_string(getpid()));
  LoopbackServer server(
      [](const SeenRequest&, const Write& write) { write(Answer(200, R"({"kind":"Trace"})")); });
  Client client = MakeClient(server, token);
  std::ofstream(token) << "first\n";
  const Result<Json> object = client.Get(kTrace);
  ASSERT_TRUE(object.has_value()) << object.error().message;
  EXPECT_EQ((*object)["kind"], "Trace");
  std::ofstream(token) << "second";
  ASSERT_TRUE(client.Get(kTrace).has_value());
  std::filesystem::remove(token);
  const auto seen = server.seen();
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_THAT(seen[0].head, StartsWith("GET /apis/weft.dev/v1alpha1/namespaces/shop/traces/t "));
  EXPECT_THAT(seen[0].head, HasSubstr("Authorization:Bearer first\r\n"));
  EXPECT_THAT(seen[1].head, HasSubstr("Authorization:Bearer second\r\n"));
}

TEST(Client, WritesNameTheirManager) {
  LoopbackServer server([](const SeenRequest&, const Write& write) { write(Answer(200, "{}")); });
  Client client = MakeClient(server);
  ASSERT_TRUE(client.Apply(kTrace, {{"a", 1}}).has_value());
  Address status = kTrace;
  status.subresource = "status";
  ASSERT_TRUE(client.MergePatch(status, {{"b", 2}}).has_value());
  ASSERT_TRUE(client.Create(kAllTraces, {{"c", 3}}).has_value());
  ASSERT_TRUE(client.Delete(kTrace, "uid").has_value());
  const auto seen = server.seen();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_THAT(seen[0].head, StartsWith("PATCH /apis/weft.dev/v1alpha1/namespaces/shop/traces/t"
                                       "?fieldManager=weft-test&force=true "));
  EXPECT_THAT(seen[0].head, HasSubstr("Content-Type:application/apply-patch+yaml"));
  EXPECT_EQ(seen[0].body, R"({"a":1})");
  EXPECT_THAT(seen[1].head, StartsWith("PATCH /apis/weft.dev/v1alpha1/namespaces/shop/traces/t/"
                                       "status?fieldManager=weft-test "));
  EXPECT_THAT(seen[1].head, HasSubstr("Content-Type:application/merge-patch+json"));
  EXPECT_THAT(seen[2].head, StartsWith("POST "));
  EXPECT_THAT(seen[3].head, StartsWith("DELETE "));
  EXPECT_EQ(Json::parse(seen[3].body)["preconditions"]["uid"], "uid");
}

TEST(Client, ARefusalHasItsCodeAndTheServersWords) {
  struct Case {
    int status;
    ErrorCode code;
  };
  std::atomic<int> status;
  LoopbackServer server([&](const SeenRequest&, const Write& write) {
    write(Answer(status, R"({"kind":"Status","message":"because"})"));
  });
  Client client = MakeClient(server);
  for (const Case& c : {Case{404, ErrorCode::kNotFound}, Case{409, ErrorCode::kConflict},
                        Case{403, ErrorCode::kPermission}, Case{422, ErrorCode::kInvalid},
                        Case{429, ErrorCode::kLimit}, Case{500, ErrorCode::kIo}}) {
    status = c.status;
    const Result<Json> object = client.Get(kTrace);
    ASSERT_FALSE(object.has_value());
    EXPECT_EQ(object.error().code, c.code) << c.status;
    EXPECT_THAT(object.error().message, HasSubstr("because"));
  }
}

TEST(Client, KnowsTheServersTime) {
  std::string date;
  LoopbackServer server([&](const SeenRequest&, const Write& write) {
    write("HTTP/1.1 200 OK\r\n" + date + "Content-Length: 2\r\nConnection: close\r\n\r\n{}");
  });
  Client client = MakeClient(server);
  const auto is_about = [&](WallTime time) {
    const auto ahead = client.ServerTime() - time;
    return ahead >= std::chrono::seconds(0) && ahead < std::chrono::hours(1);
  };
  const WallTime begin = std::chrono::system_clock::now();
  for (const char* none : {"", "Date: tomorrow\r\n"}) {
    date = none;
    ASSERT_TRUE(client.Get(kTrace).has_value());
    EXPECT_TRUE(is_about(begin)) << none;
  }
  date = "Date: Fri, 02 Jan 2015 03:04:05 GMT\r\n";
  ASSERT_TRUE(client.Get(kTrace).has_value());
  EXPECT_TRUE(is_about(ParseTime("2015-01-02T03:04:05Z").value()));
}

TEST(Client, BadAnswersAreErrorsAndNoExceptions) {
  std::string answer;
  LoopbackServer server([&](const SeenRequest&, const Write& write) { write(answer); });
  Client client = MakeClient(server);
  for (const std::string& bad :
       {Answer(200, "[]"), Answer(200, "x"), std::string("nonsense\r\n\r\n"), std::string(),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{")}) {
    answer = bad;
    EXPECT_FALSE(client.Get(kTrace).has_value()) << bad;
  }
}

TEST(Client, ReportsUnreachableServer) {
  Client client(MakeTransport({.server = "http://127.0.0.1:1"}), "weft-test");
  const Result<Json> object = client.Get(kTrace);
  ASSERT_FALSE(object.has_value());
  EXPECT_EQ(object.error().code, ErrorCode::kIo);
}

TEST(Client, AListIsReadPageByPageAndBegunAgainWhenItExpired) {
  std::atomic<int> calls = 0;
  LoopbackServer server([&](const SeenRequest& request, const Write& write) {
    const bool more = request.head.find("continue=next") != std::string::npos;
    if (more && calls++ == 0) {
      write(Answer(410, "{}"));
    } else if (more) {
      write(Answer(200, R"({"metadata":{"resourceVersion":"9"},"items":[{"n":3}]})"));
    } else {
      write(Answer(200, R"({"metadata":{"resourceVersion":"9","continue":"next"},)"
                        R"("items":[{"n":1},{"n":2}]})"));
    }
  });
  Client client = MakeClient(server);
  const auto list = client.List(kAllTraces, {.fields = "a=b", .labels = "c"});
  ASSERT_TRUE(list.has_value()) << list.error().message;
  EXPECT_EQ(list->resource_version, "9");
  EXPECT_EQ(list->items.size(), 3u);
  EXPECT_THAT(server.seen()[0].head, HasSubstr("?fieldSelector=a%3Db&labelSelector=c&limit=500"));
}

TEST(Client, CountsACollectionByOnePage) {
  std::string page = R"({"metadata":{"continue":"next","remainingItemCount":41},"items":[{}]})";
  LoopbackServer server([&](const SeenRequest&, const Write& write) { write(Answer(200, page)); });
  Client client = MakeClient(server);
  EXPECT_EQ(client.Count(kAllTraces).value_or(0), 42U);
  EXPECT_THAT(server.seen()[0].head, HasSubstr("?limit=1 "));
  page = R"({"metadata":{},"items":[]})";
  EXPECT_EQ(client.Count(kAllTraces).value_or(7), 0U);
  page = R"({"metadata":{"continue":"next"},"items":[{}]})";
  EXPECT_FALSE(client.Count(kAllTraces));
}

// One line of a watch, with its newline.
std::string Line(const std::string& type, const std::string& version) {
  return R"({"type":")" + type + R"(","object":{"metadata":{"resourceVersion":")" + version +
         "\"}}}\n";
}

TEST(Client, AWatchGivesEventsAndMovesItsVersion) {
  LoopbackServer server([](const SeenRequest&, const Write& write) {
    write(kChunkedHead);
    const std::string lines = Line("ADDED", "5") + Line("BOOKMARK", "8") + Line("DELETED", "9");
    write(Chunk(lines.substr(0, 30)));
    write(Chunk(lines.substr(30)));
    write(kLastChunk);
  });
  Client client = MakeClient(server);
  std::string version = "4";
  std::vector<WatchType> types;
  const auto end = client.Watch(kAllTraces, {}, version, {},
                                [&](const WatchEvent& event) { types.push_back(event.type); });
  ASSERT_TRUE(end.has_value()) << end.error().message;
  EXPECT_EQ(*end, WatchEnd::kOver);
  EXPECT_EQ(version, "9");
  EXPECT_EQ(types, (std::vector{WatchType::kAdded, WatchType::kDeleted}));
  EXPECT_THAT(server.seen()[0].head,
              HasSubstr("watch=true&allowWatchBookmarks=true&timeoutSeconds=50&resourceVersion=4"));
}

TEST(Client, AnExpiredWatchIsToldFromAnError) {
  std::string object = R"({"code":410})";
  LoopbackServer server([&](const SeenRequest&, const Write& write) {
    write(kChunkedHead);
    write(Chunk(R"({"type":"ERROR","object":)" + object + "}\n"));
    write(kLastChunk);
  });
  Client client = MakeClient(server);
  std::string version = "4";
  const auto nothing = [](const WatchEvent&) {};
  const auto expired = client.Watch(kAllTraces, {}, version, {}, nothing);
  ASSERT_TRUE(expired.has_value());
  EXPECT_EQ(*expired, WatchEnd::kExpired);
  object = R"({"code":500,"message":"etcd"})";
  const auto broken = client.Watch(kAllTraces, {}, version, {}, nothing);
  ASSERT_FALSE(broken.has_value());
  EXPECT_THAT(broken.error().message, HasSubstr("etcd"));
}

TEST(Client, AStopEndsAWatchThatIsSilent) {
  std::mutex mutex;
  std::condition_variable_any released;
  bool over = false;
  std::atomic<bool> open = false;
  LoopbackServer server([&](const SeenRequest&, const Write& write) {
    write(kChunkedHead);
    write(Chunk(Line("ADDED", "5")));
    std::unique_lock lock(mutex);
    released.wait(lock, [&] { return over; });
  });
  Client client = MakeClient(server);
  Result<WatchEnd> end = WatchEnd::kOver;
  {
    std::jthread watcher([&](const std::stop_token& stop) {
      std::string version = "4";
      end = client.Watch(kAllTraces, {}, version, stop, [&](const WatchEvent&) { open = true; });
    });
    while (!open) std::this_thread::yield();
    watcher.request_stop();
  }
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(end.error().code, ErrorCode::kClosed);
  const std::lock_guard lock(mutex);
  over = true;
  released.notify_all();
}

TEST(Informer, ListsWatchesAndListsAgainWhenTheWatchExpired) {
  std::atomic<int> lists = 0;
  std::atomic<int> watches = 0;
  LoopbackServer server([&](const SeenRequest& request, const Write& write) {
    if (request.head.find("watch=true") == std::string::npos) {
      write(Answer(200, R"({"metadata":{"resourceVersion":")" + std::to_string(++lists * 10) +
                            R"("},"items":[{}]})"));
      return;
    }
    const int n = ++watches;
    if (n > 3) return;  // no answer at all
    write(kChunkedHead);
    if (n == 2)
      write(Chunk("{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n"));
    else
      write(Chunk(Line("MODIFIED", std::to_string(10 + n))));
    write(kLastChunk);
  });
  Client client = MakeClient(server);
  std::atomic<int> on_list = 0;
  std::atomic<int> on_event = 0;
  std::atomic<int> on_error = 0;
  {
    const Informer informer(client, kAllTraces, {},
                            {.on_list = [&](const std::vector<Json>&) { ++on_list; },
                             .on_event = [&](const WatchEvent&) { ++on_event; },
                             .on_error = [&](const Error&) { ++on_error; }});
    while (on_error == 0) std::this_thread::yield();
  }
  EXPECT_EQ(on_list, 2);
  EXPECT_EQ(on_event, 2);
  const auto seen = server.seen();
  ASSERT_GE(seen.size(), 6u);
  EXPECT_THAT(seen[1].head, HasSubstr("resourceVersion=10"));  // from the list
  EXPECT_THAT(seen[2].head, HasSubstr("resourceVersion=11"));  // from the event
  EXPECT_THAT(seen[3].head, Not(HasSubstr("watch=true")));     // expired
  EXPECT_THAT(seen[4].head, HasSubstr("resourceVersion=20"));
  EXPECT_THAT(seen[5].head, HasSubstr("resourceVersion=13"));
}

}  // namespace
}  // namespace weft::kube
