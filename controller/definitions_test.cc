// SPDX-License-Identifier: Apache-2.0
// An older definition of weft's resources is found, and the first field that it lacks is named.
#include "controller/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "controller/view_definition.h"
#include "lib/api/crd.h"
#include "lib/api/document.h"
#include "lib/kube/testing_transport.h"

namespace weft::controller {
namespace {

using kube::Json;
using testing::HasSubstr;

Json Definition(const std::string& yaml) {
  return Json::parse(api::WriteJson(api::ReadYaml(yaml)->front(), -1));
}

// The properties of a definition's spec.
Json& SpecOf(Json& definition) {
  return definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
                   ["properties"];
}

class DefinitionsTest : public testing::Test {
 protected:
  DefinitionsTest()
      : client_(
            std::make_unique<kube::testing::TestTransport>([this](
                                                               const kube::HttpRequest& request) {
              for (const Json& definition : cluster_) {
                if (request.target.ends_with("/" + kube::TextAt(definition, {"metadata", "name"})))
                  return kube::testing::Reply(200, definition);
              }
              return kube::testing::Reply(404, {{"message", "not found"}});
            }),
            "weft-controller"),
        definitions_(client_) {
    for (const std::string& yaml : {api::TraceCrdYaml(), api::ClusterTraceCrdYaml(),
                                    api::SessionCrdYaml(), std::string(ViewDefinitionYaml())})
      cluster_.push_back(Definition(yaml));
  }

  std::string Problem() {
    const auto again = definitions_.Reconcile();
    EXPECT_EQ(again ? "" : again.error().message, definitions_.Problem());
    return definitions_.Problem();
  }

  std::vector<Json> cluster_;
  kube::Client client_;
  Definitions definitions_;
};

TEST_F(DefinitionsTest, SaysNothingOfItsOwnAndOfNewerOnes) {
  EXPECT_NE(definitions_.Problem(), "") << "not compared yet";
  EXPECT_EQ(Problem(), "");
  SpecOf(cluster_[0])["newer"] = {{"type", "string"}};
  EXPECT_EQ(Problem(), "");
}

TEST_F(DefinitionsTest, NamesTheFirstFieldThatAnOlderOneLacks) {
  SpecOf(cluster_[0])["user"]["properties"]["events"]["items"]["properties"].erase("exclude");
  EXPECT_THAT(Problem(), HasSubstr("the definition traces.weft.dev is an older one: it has no "
                                   "field spec.user.events.exclude; helm upgrade"));
  SpecOf(cluster_[0]).erase("user");
  EXPECT_THAT(Problem(), HasSubstr("no field spec.user;"));
}

TEST_F(DefinitionsTest, NamesWhatTheDefinitionOfTraceViewLacks) {
  SpecOf(cluster_.back()).erase("expires");
  EXPECT_THAT(Problem(), HasSubstr("the definition traceviews.weft.dev is an older one: it has no "
                                   "field spec.expires;"));
}

TEST_F(DefinitionsTest, NoticesOneThatIsDeletedAndComesBack) {
  for (Json& definition : cluster_) {
    const Json kept = std::exchange(definition, Json::object());
    EXPECT_THAT(Problem(),
                HasSubstr("there is no definition " + kube::TextAt(kept, {"metadata", "name"})));
    definition = kept;
    EXPECT_EQ(Problem(), "");
  }
}

TEST_F(DefinitionsTest, SurvivesADefinitionOfAnotherShape) {
  for (const Json& odd :
       {Json::object(), Json{{"versions", "no"}}, Json{{"versions", Json::array()}}}) {
    cluster_[0]["spec"] = odd;
    EXPECT_THAT(Problem(), HasSubstr("it has no field"));
  }
}

}  // namespace
}  // namespace weft::controller
