// SPDX-License-Identifier: Apache-2.0
// A Lease, at an API server that keeps one object: who has it, and from when on.
#include "lib/kube/lease.h"

#include <gtest/gtest.h>

#include "lib/kube/testing_transport.h"

namespace weft::kube {
namespace {

using testing::Reply;

class LeaseTest : public ::testing::Test {
 protected:
  Lease Of(const std::string& holder) {
    return {client_, {.name_space = "weft", .name = "weft-controller", .holder = holder}};
  }
  [[nodiscard]] Lease::Time At(int seconds) const { return start_ + std::chrono::seconds(seconds); }
  [[nodiscard]] const Json& spec() const { return lease_["spec"]; }
  static bool Took(const Result<bool>& taken) {
    EXPECT_TRUE(taken) << taken.error().message;
    return taken && *taken;
  }

  Client& client() { return client_; }

  Json lease_;
  bool is_away_ = false;

 private:
  HttpReply Serve(const HttpRequest& request) {
    if (is_away_) return Reply(500, {});
    if (request.method == "POST") {
      EXPECT_EQ(request.target.substr(0, request.target.find('?')),
                "/apis/coordination.k8s.io/v1/namespaces/weft/leases");
      if (!lease_.is_null()) return Reply(409, {});
      lease_ = Json::parse(request.body);
    } else if (lease_.is_null()) {
      return Reply(404, {});
    } else if (request.method == "PATCH") {
      const Json patch = Json::parse(request.body);
      if (patch["metadata"]["resourceVersion"] != lease_["metadata"]["resourceVersion"])
        return Reply(409, {});
      lease_.merge_patch(patch);
    }
    if (request.method != "GET") lease_["metadata"]["resourceVersion"] = std::to_string(++version_);
    return Reply(200, lease_);
  }

  Lease::Time start_ = std::chrono::steady_clock::now();
  int version_ = 0;
  Client client_{std::make_unique<testing::TestTransport>(
                     [this](const HttpRequest& request) { return Serve(request); }),
                 "weft-test"};
};

TEST_F(LeaseTest, TheFirstHasItAndTheOthersDoNot) {
  Lease one = Of("one");
  Lease two = Of("two");
  EXPECT_TRUE(Took(one.Take(At(0))));
  EXPECT_EQ(spec()["holderIdentity"], "one");
  EXPECT_EQ(spec()["leaseDurationSeconds"], 15);
  EXPECT_EQ(spec()["leaseTransitions"], 0);
  EXPECT_FALSE(Took(two.Take(At(0))));
  EXPECT_TRUE(Took(one.Take(At(2))));
}

TEST_F(LeaseTest, AnotherTakesItWhenItWasNotRenewed) {
  Lease one = Of("one");
  Lease two = Of("two");
  EXPECT_TRUE(Took(one.Take(At(0))));
  EXPECT_FALSE(Took(two.Take(At(100)))) << "seen for the first time";
  EXPECT_FALSE(Took(two.Take(At(114))));
  EXPECT_TRUE(Took(one.Take(At(114))));
  EXPECT_FALSE(Took(two.Take(At(116)))) << "it was renewed";
  EXPECT_TRUE(Took(two.Take(At(131))));
  EXPECT_EQ(spec()["holderIdentity"], "two");
  EXPECT_EQ(spec()["leaseTransitions"], 1);
  EXPECT_FALSE(Took(one.Take(At(132))));
}

TEST_F(LeaseTest, WhatWasReleasedIsFree) {
  Lease one = Of("one");
  Lease two = Of("two");
  EXPECT_TRUE(Took(one.Take(At(0))));
  EXPECT_TRUE(two.Release()) << "it is not its own";
  EXPECT_EQ(spec()["holderIdentity"], "one");
  EXPECT_TRUE(one.Release());
  EXPECT_TRUE(Took(two.Take(At(1))));
}

TEST_F(LeaseTest, AnApiServerThatIsAwayIsAnError) {
  Lease one = Of("one");
  is_away_ = true;
  EXPECT_FALSE(one.Take(At(0)));
}

TEST_F(LeaseTest, ItsEndLetsAnotherLead) {
  const auto lead = [this](const char* holder) {
    return std::make_unique<Leadership>(
        client(), Lease::Names{.name_space = "weft", .name = "weft-controller", .holder = holder},
        [](const Error& error) { ADD_FAILURE() << error.message; });
  };
  auto one = lead("one");
  while (!one->leads()) std::this_thread::yield();
  one.reset();
  auto two = lead("two");
  while (!two->leads()) std::this_thread::yield();
}

}  // namespace
}  // namespace weft::kube
