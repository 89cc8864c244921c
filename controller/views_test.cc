// SPDX-License-Identifier: Apache-2.0
#include "controller/views.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/kube/testing_transport.h"

namespace weft::controller {
namespace {

using kube::Json;

class ViewsTest : public testing::Test {
 protected:
  void Put(const std::string& name, std::chrono::seconds left) {
    items_.push_back({{"metadata", {{"namespace", "shop"}, {"name", name}, {"uid", "u-" + name}}},
                      {"spec", {{"expires", kube::FormatTime(now_ + left)}}}});
  }
  kube::HttpReply Serve(const kube::HttpRequest& request) {
    if (request.method == "GET") {
      return kube::testing::Reply(list_status_, {{"metadata", Json::object()}, {"items", items_}});
    }
    EXPECT_EQ(request.method, "DELETE");
    const std::string name = request.target.substr(request.target.rfind('/') + 1);
    EXPECT_EQ(Json::parse(request.body)["preconditions"]["uid"], "u-" + name);
    deleted_.push_back(name);
    return kube::testing::Reply(delete_status_, Json::object());
  }

  const kube::WallTime now_ = std::chrono::system_clock::now();
  Json items_ = Json::array();
  int list_status_ = 200;
  int delete_status_ = 200;
  std::vector<std::string> deleted_;
  kube::Client client_{std::make_unique<kube::testing::TestTransport>(
                           [this](const kube::HttpRequest& request) { return Serve(request); }),
                       "weft-test"};
  Views views_{client_};
};

TEST_F(ViewsTest, DeletesThoseThatHaveExpired) {
  using namespace std::chrono_literals;
  Put("fresh", 10min);
  Put("just-over", -1min);
  Put("old", -10min);
  Put("gone", -1h);
  EXPECT_EQ(*views_.Reconcile(now_), Views::kInterval);
  EXPECT_EQ(deleted_, (std::vector<std::string>{"old", "gone"}));
}

TEST_F(ViewsTest, AViewThatIsGoneAlreadyIsNoError) {
  Put("old", -std::chrono::hours(1));
  delete_status_ = 404;
  EXPECT_TRUE(views_.Reconcile(now_));
  delete_status_ = 409;
  EXPECT_TRUE(views_.Reconcile(now_));
  delete_status_ = 500;
  EXPECT_FALSE(views_.Reconcile(now_));
}

TEST_F(ViewsTest, AClusterWithoutTheDefinitionHasNone) {
  list_status_ = 404;
  EXPECT_EQ(*views_.Reconcile(now_), Views::kInterval);
  list_status_ = 403;
  EXPECT_FALSE(views_.Reconcile(now_));
}

}  // namespace
}  // namespace weft::controller
