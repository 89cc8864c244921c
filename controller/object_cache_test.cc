// SPDX-License-Identifier: Apache-2.0
// What is remembered, and which work a change makes.
#include "controller/object_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "lib/kube/library.h"

namespace weft::controller {
namespace {

using std::chrono::milliseconds;

Json Object(const std::string& name_space, const std::string& name) {
  return {{"metadata", {{"name", name}, {"namespace", name_space}}}};
}

// All work that is due soon.
std::set<Work> Drain(WorkQueue& queue) {
  std::set<Work> out;
  while (const auto work = queue.Take({}, milliseconds(50))) out.insert(*work);
  return out;
}

TEST(WorkQueue, EachWorkIsDoneOnceAndInItsTime) {
  WorkQueue queue;
  const Work now{.key = {"", "now"}};
  const Work later{.key = {"", "later"}};
  queue.Add(now, std::chrono::hours(1));
  queue.Add(now);
  queue.Add(now, std::chrono::hours(1));
  queue.Add(later, milliseconds(30));
  EXPECT_EQ(queue.Take({}, milliseconds(5'000)), now);
  EXPECT_EQ(queue.Take({}, milliseconds(5'000)), later);
  EXPECT_EQ(queue.Take({}, milliseconds(0)), std::nullopt);
}

TEST(WorkQueue, WakesItsWorkerForNewWorkAndForTheEnd) {
  WorkQueue queue;
  std::atomic<bool> got = false;
  std::jthread worker([&](const std::stop_token& stop) {
    got = queue.Take(stop, std::chrono::hours(1)).has_value();
    (void)queue.Take(stop, std::chrono::hours(1));  // until the end
  });
  queue.Add({.key = {"", "x"}});
  while (!got) std::this_thread::yield();
}

TEST(ObjectCache, IsCompleteWhenEachKindWasListed) {
  WorkQueue queue;
  ObjectCache cache(queue);
  for (int kind = 0; kind < ObjectCache::kKinds; ++kind) {
    EXPECT_FALSE(cache.is_complete());
    cache.Replace(static_cast<ObjectCache::Kind>(kind), {});
  }
  EXPECT_TRUE(cache.is_complete());
}

TEST(ObjectCache, PodChangeQueuesTracesOfItsNamespace) {
  WorkQueue queue;
  ObjectCache cache(queue);
  cache.Replace(ObjectCache::kTraces, {Object("a", "t"), Object("b", "t")});
  Drain(queue);
  cache.Change(ObjectCache::kPods, {kube::WatchType::kAdded, Object("a", "p")});
  EXPECT_EQ(Drain(queue), (std::set<Work>{{WorkKind::kTrace, {"a", "t"}}}));
  EXPECT_EQ(cache.Pods("a").size(), 1u);
  cache.Change(ObjectCache::kPods, {kube::WatchType::kDeleted, Object("a", "p")});
  EXPECT_EQ(Drain(queue), (std::set<Work>{{WorkKind::kTrace, {"a", "t"}}}));
  EXPECT_TRUE(cache.Pods("a").empty());
}

TEST(ObjectCache, IgnoresNodeHeartbeats) {
  WorkQueue queue;
  ObjectCache cache(queue);
  cache.Replace(ObjectCache::kTraces, {Object("a", "t")});
  Drain(queue);
  cache.Change(ObjectCache::kNodes, {kube::WatchType::kAdded, Object("", "n")});
  EXPECT_EQ(Drain(queue).size(), 1u);
  cache.Change(ObjectCache::kNodes, {kube::WatchType::kModified, Object("", "n")});
  EXPECT_TRUE(Drain(queue).empty());
  Json labelled = Object("", "n");
  labelled["metadata"]["labels"]["zone"] = "a";
  cache.Change(ObjectCache::kNodes, {kube::WatchType::kModified, labelled});
  EXPECT_EQ(Drain(queue).size(), 1u);
  EXPECT_EQ(cache.Nodes().at("n").labels.at("zone"), "a");
}

TEST(ObjectCache, SessionChangeQueuesItsTrace) {
  WorkQueue queue;
  ObjectCache cache(queue);
  Json session = Object("a", "t-0");
  session["spec"] = {{"traceName", "t"}};
  cache.Change(ObjectCache::kSessions, {kube::WatchType::kModified, session});
  EXPECT_EQ(Drain(queue), (std::set<Work>{{WorkKind::kTrace, {"a", "t"}}}));
  EXPECT_TRUE(cache.Sessions({"a", "t"}).empty()) << "it cannot be read, and is none";
}

TEST(ObjectCache, ClusterWideSessionQueuesItsClusterTrace) {
  WorkQueue queue;
  ObjectCache cache(queue);
  cache.Replace(ObjectCache::kTraces, {Object("weft", "t")});
  cache.Replace(ObjectCache::kClusterTraces, {Object("", "t")});
  Drain(queue);
  Json session = Object("weft", "t-0");
  session["spec"] = {{"traceName", "t"}, {"clusterWide", true}};
  cache.Change(ObjectCache::kSessions, {kube::WatchType::kModified, session});
  EXPECT_EQ(Drain(queue), (std::set<Work>{{WorkKind::kTrace, {"", "t"}}}));
  cache.Replace(ObjectCache::kClusterTraces, {});
  EXPECT_FALSE(cache.Trace({"", "t"}).has_value());
  EXPECT_TRUE(cache.Trace({"weft", "t"}).has_value());
}

TEST(ObjectCache, CountsOlderTracesOfANamespace) {
  WorkQueue queue;
  ObjectCache cache(queue);
  const auto made = [](const std::string& name_space, const std::string& name, int second,
                       const char* uid) {
    Json trace = Object(name_space, name);
    trace["metadata"]["creationTimestamp"] = "2026-11-29T10:00:0" + std::to_string(second) + "Z";
    trace["metadata"]["uid"] = uid;
    return trace;
  };
  cache.Replace(ObjectCache::kTraces,
                {made("a", "x", 3, "1"), made("b", "a", 3, "2"), made("b", "b", 2, "4"),
                 made("b", "c", 2, "3"), made("c", "x", 1, "5")});
  EXPECT_EQ(cache.CountOlder({"b", "a"}, 9), 2U);
  EXPECT_EQ(cache.CountOlder({"b", "a"}, 1), 1U) << "counted no further";
  EXPECT_EQ(cache.CountOlder({"b", "b"}, 9), 1U) << "of one second, by uid";
  EXPECT_EQ(cache.CountOlder({"b", "c"}, 9), 0U);
  EXPECT_EQ(cache.CountOlder({"b", "none"}, 9), 0U);
}

TEST(ObjectCache, DeliversToLabelledNamespace) {
  WorkQueue queue;
  ObjectCache cache(queue);
  Json name_space = Object("", "shop");
  name_space["metadata"]["labels"]["weft.dev/inject"] = "enabled";
  cache.Change(ObjectCache::kNamespaces, {kube::WatchType::kAdded, name_space});
  EXPECT_EQ(Drain(queue), (std::set<Work>{{WorkKind::kNamespace, {"", "shop"}}}));
  EXPECT_TRUE(cache.Namespace("shop").wants_library);
  Json library = Object("shop", "weft-lib-0");
  library["metadata"]["labels"]["weft.dev/library"] = "current";
  cache.Change(ObjectCache::kLibraries, {kube::WatchType::kAdded, library});
  EXPECT_EQ(cache.Libraries("shop"), (LibraryMaps{{"weft-lib-0", {true, false}}}));
}

TEST(ObjectCache, TellsALibraryFromAConfigMapOfItsName) {
  WorkQueue queue;
  ObjectCache cache(queue);
  const std::string name = kube::LibraryName(*kube::LibraryDigest({{"amd64", "x"}}));
  Json library = Object("shop", name);
  library["immutable"] = true;
  library["binaryData"]["libweft.so.amd64"] = "eA==";
  cache.Change(ObjectCache::kLibraries, {kube::WatchType::kAdded, library});
  EXPECT_EQ(cache.Libraries("shop"), (LibraryMaps{{name, {false, true}}}));
  library["binaryData"]["libweft.so.amd64"] = "eQ==";
  cache.Change(ObjectCache::kLibraries, {kube::WatchType::kModified, library});
  EXPECT_EQ(cache.Libraries("shop"), (LibraryMaps{{name, {false, false}}}));
}

}  // namespace
}  // namespace weft::controller
