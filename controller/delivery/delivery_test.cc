// SPDX-License-Identifier: Apache-2.0
// The library's ConfigMap, and who gets it.
#include "controller/delivery/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::controller {
namespace {

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
}

TEST(PlanDelivery, DeliversWantedLibrariesAndAgesOthers) {
  const NamespaceFacts wants{.wants_library = true};
  EXPECT_TRUE(PlanDelivery("new", wants, {}, {}).apply);
  EXPECT_FALSE(PlanDelivery("new", wants, {}, {{"new", true}}).apply);
  EXPECT_TRUE(PlanDelivery("new", wants, {}, {{"new", false}}).apply);
  EXPECT_EQ(PlanDelivery("new", wants, {}, {{"old", true}, {"older", false}}).age,
            std::vector<std::string>{"old"});
}

TEST(PlanDelivery, DeliversNothingWithoutTheLabel) {
  EXPECT_FALSE(PlanDelivery("new", {}, {}, {}).apply);
  EXPECT_TRUE(PlanDelivery("new", {}, {{.name = "p", .wants_library = true}}, {}).apply);
  EXPECT_FALSE(PlanDelivery("new", {.wants_library = true, .is_ending = true}, {}, {}).apply);
}

}  // namespace
}  // namespace weft::controller
