// SPDX-License-Identifier: Apache-2.0
// The library's ConfigMap, which namespaces get it, and what happens to one that is not weft's.
#include "controller/delivery/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/kube/testing_transport.h"

namespace weft::controller {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kElf = "\177ELF...";

TEST(Library, NameIsAHashOfTheContent) {
  const auto one = MakeLibrary({{"amd64", kElf}});
  const auto two = MakeLibrary({{"amd64", kElf}, {"arm64", kElf}});
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_THAT(one->name, StartsWith("weft-lib-"));
  EXPECT_EQ(one->name.size(), 9u + 16u);
  EXPECT_NE(one->name, two->name);
  EXPECT_EQ(one->name, MakeLibrary({{"amd64", kElf}})->name);
  EXPECT_NE(one->name, MakeLibrary({{"amd64", kElf + "x"}})->name);
}

TEST(Library, RefusesLibrariesThatCannotBeDelivered) {
  EXPECT_EQ(MakeLibrary({}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(MakeLibrary({{"amd64", "text"}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(MakeLibrary({{"", kElf}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(MakeLibrary({{"amd64", kElf + std::string(kMaxLibraryBytes, 'x')}}).error().code,
            ErrorCode::kLimit);
  EXPECT_EQ(LoadLibrary({"amd64"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(LoadLibrary({"amd64=/nowhere"}).error().code, ErrorCode::kNotFound);
}

TEST(Library, TheConfigMapIsImmutableAndTheCurrentOne) {
  const Json map = LibraryConfigMap(*MakeLibrary({{"amd64", "\177ELF"}}), "shop");
  EXPECT_EQ(map["immutable"], true);
  EXPECT_EQ(map["metadata"]["namespace"], "shop");
  EXPECT_EQ(map["metadata"]["labels"]["weft.dev/library"], "current");
  EXPECT_EQ(map["binaryData"]["libweft.so.amd64"], "f0VMRg==");
  EXPECT_EQ(map["data"], Json::parse(R"({"LD_PRELOAD": "/weft/libweft.so"})"));
}

TEST(Library, TheDigestOfItsConfigMapIsItsOwn) {
  const Library library = *MakeLibrary({{"amd64", kElf}, {"arm64", kElf + "x"}});
  const Json map = LibraryConfigMap(library, "shop");
  EXPECT_EQ(kube::DigestOf(map), library.digest);
  EXPECT_EQ(kube::LibraryName(library.digest), library.name);
  EXPECT_EQ(library.digest.size(), 64u);
  Json other = map;
  other["binaryData"]["libweft.so.amd64"] = "f0VMRg==";
  EXPECT_NE(kube::DigestOf(other), library.digest);
  other["binaryData"]["libweft.so.amd64"] = "no base64";
  EXPECT_EQ(kube::DigestOf(other), "");
  other = map;
  other["data"]["LD_PRELOAD"] = "/evil.so";
  EXPECT_EQ(kube::DigestOf(other), "");
  other.erase("data");
  EXPECT_EQ(kube::DigestOf(other), library.digest) << "as older versions made it";
  other = map;
  other["immutable"] = false;
  EXPECT_EQ(kube::DigestOf(other), "");
  EXPECT_EQ(kube::DigestOf(Json::object()), "");
}

TEST(Library, TheReferenceHasTheDigestAndNoLibrary) {
  const Library library = *MakeLibrary({{"amd64", kElf}});
  const Json reference = LibraryReference(library, "weft");
  EXPECT_EQ(reference["metadata"]["name"], library.name);
  EXPECT_EQ(reference["metadata"]["namespace"], "weft");
  EXPECT_EQ(reference["metadata"]["labels"]["weft.dev/library"], "reference");
  EXPECT_EQ(reference["data"]["sha256"], library.digest);
  EXPECT_FALSE(reference.contains("binaryData"));
}

TEST(PlanDelivery, DeliversWantedLibrariesAndAgesOthers) {
  const NamespaceFacts wants{.wants_library = true};
  EXPECT_TRUE(PlanDelivery("new", wants, {}, {}).apply);
  EXPECT_FALSE(PlanDelivery("new", wants, {}, {{"new", {true, true}}}).apply);
  EXPECT_TRUE(PlanDelivery("new", wants, {}, {{"new", {false, true}}}).apply);
  EXPECT_TRUE(PlanDelivery("new", wants, {}, {{"new", {true, false}}}).apply);
  EXPECT_EQ(PlanDelivery("new", wants, {}, {{"old", {true, true}}, {"older", {false, true}}}).age,
            std::vector<std::string>{"old"});
}

TEST(PlanDelivery, DeliversNothingWithoutTheLabel) {
  EXPECT_FALSE(PlanDelivery("new", {}, {}, {}).apply);
  EXPECT_TRUE(PlanDelivery("new", {}, {{.name = "p", .wants_library = true}}, {}).apply);
  EXPECT_FALSE(PlanDelivery("new", {.wants_library = true, .is_ending = true}, {}, {}).apply);
}

// An API server with ConfigMaps: an immutable one with other content refuses to be applied.
class Delivering : public testing::Test {
 protected:
  Delivering() : cache_(queue_), client_(MakeTransport(), "weft-controller") {
    Json name_space = {
        {"metadata", {{"name", "shop"}, {"labels", {{kube::kInjectLabel, "enabled"}}}}}};
    cache_.Replace(ObjectCache::kNamespaces, {name_space});
  }

  std::unique_ptr<kube::Transport> MakeTransport() {
    auto transport = std::make_unique<kube::testing::TestTransport>(
        [this](const kube::HttpRequest& request) { return Answer(request); });
    api_ = transport.get();
    return transport;
  }

  kube::HttpReply Answer(const kube::HttpRequest& request) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (request.method == "POST") return kube::testing::Reply(201, Json::object());
    const auto found = objects_.find(path);
    if (request.method == "DELETE") {
      const Json options = Json::parse(request.body);
      EXPECT_EQ(options["preconditions"]["uid"], found->second["metadata"]["uid"]);
      objects_.erase(found);
      return kube::testing::Reply(200, Json::object());
    }
    if (request.method == "GET") return kube::testing::Reply(200, found->second);
    Json wanted = Json::parse(request.body);
    if (found == objects_.end()) {
      wanted["metadata"]["uid"] = "made";
      return kube::testing::Reply(201, objects_[path] = wanted);
    }
    const bool changes = wanted["binaryData"] != found->second["binaryData"];
    if (changes && found->second["immutable"] == true)
      return kube::testing::Reply(422, {{"message", "field is immutable"}});
    found->second.merge_patch(wanted);
    return kube::testing::Reply(200, found->second);
  }

  // Runs Reconcile once more and returns its requests as "METHOD path".
  std::vector<std::string> Requests(const std::string& name_space = "shop") {
    const size_t before = api_->requests().size();
    EXPECT_TRUE(delivery_.Reconcile(name_space));
    std::vector<std::string> out;
    const auto all = api_->requests();
    for (size_t i = before; i < all.size(); ++i) {
      std::string path = all[i].target.substr(0, all[i].target.find('?'));
      constexpr std::string_view kCore = "/api/v1/namespaces/";
      if (path.starts_with(kCore)) path = path.substr(kCore.size());
      out.push_back(all[i].method + " " + path);
    }
    return out;
  }

  // What was made before weft came, and the watch of it.
  Json MakeForeign(const Json& more) {
    Json foreign = LibraryConfigMap(library_, "shop");
    foreign["metadata"]["uid"] = "foreign";
    foreign.merge_patch(more);
    objects_[kMapPath] = foreign;
    cache_.Replace(ObjectCache::kLibraries, {foreign});
    return foreign;
  }

  const Library library_ = *MakeLibrary({{"amd64", kElf}});
  const std::string kMapPath = "/api/v1/namespaces/shop/configmaps/" + library_.name;
  const std::string kMap = "shop/configmaps/" + library_.name;
  const std::string kReference = "PATCH weft/configmaps/" + library_.name;
  const std::string kEvent = "POST /apis/events.k8s.io/v1/namespaces/shop/events";
  std::map<std::string, Json> objects_;
  WorkQueue queue_;
  ObjectCache cache_;
  kube::testing::TestTransport* api_ = nullptr;
  kube::Client client_;
  Delivery delivery_{client_, cache_, library_, "weft", "pod"};
};

TEST_F(Delivering, WritesTheReferenceBeforeAnyLibrary) {
  EXPECT_THAT(Requests(), ElementsAre(kReference, "PATCH " + kMap));
  cache_.Replace(ObjectCache::kLibraries, {objects_[kMapPath]});
  EXPECT_THAT(Requests(), IsEmpty());
}

TEST_F(Delivering, WritesADeletedReferenceAnew) {
  Requests();
  EXPECT_THAT(Requests("weft"), ElementsAre(kReference));
  cache_.Replace(ObjectCache::kLibraries, {LibraryReference(library_, "weft")});
  EXPECT_THAT(Requests("weft"), IsEmpty());
}

TEST_F(Delivering, ReplacesAConfigMapWithOtherContent) {
  MakeForeign({{"binaryData", {{"libweft.so.amd64", "f0VMRg=="}}}});
  EXPECT_THAT(Requests(), ElementsAre(kReference, "PATCH " + kMap, "GET " + kMap, "DELETE " + kMap,
                                      "PATCH " + kMap, kEvent));
  EXPECT_EQ(kube::DigestOf(objects_[kMapPath]), library_.digest);
  const Json event = Json::parse(api_->requests().back().body);
  EXPECT_EQ(event["reason"], "LibraryReplaced");
  EXPECT_EQ(event["regarding"]["name"], library_.name);
}

TEST_F(Delivering, ReplacesAConfigMapThatKeepsMoreContent) {
  MakeForeign({{"immutable", false}, {"data", {{"other", "x"}}}});
  EXPECT_THAT(Requests(), ElementsAre(kReference, "PATCH " + kMap, "GET " + kMap, "DELETE " + kMap,
                                      "PATCH " + kMap, kEvent));
}

TEST_F(Delivering, MakesAConfigMapOfTheSameContentImmutable) {
  MakeForeign({{"immutable", false}});
  EXPECT_THAT(Requests(), ElementsAre(kReference, "PATCH " + kMap));
  EXPECT_EQ(objects_[kMapPath]["immutable"], true);
}

}  // namespace
}  // namespace weft::controller
