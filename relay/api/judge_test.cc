// SPDX-License-Identifier: Apache-2.0
#include "relay/api/judge.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "relay/api/testing.h"

namespace weft::relay_api {
namespace {

using namespace std::chrono_literals;
using testing::TestCluster;

const std::string kUid = "6f1c0b0e-5b1f-4c44-9a61-0d6f4ad6ac52";

class JudgeTest : public ::testing::Test {
 protected:
  Judgement Decide(const std::string& token, const std::string& name_space,
                   const std::string& trace = "") {
    const std::string path = "/v1/namespaces/" + name_space + "/traces" +
                             (trace.empty() ? "" : "/" + trace + "/" + kUid + "/files");
    return judge_.Decide(ParseToken(token, "").value(), ParseRoute(path).value(), peer_);
  }
  Verdict Of(const std::string& token, const std::string& name_space,
             const std::string& trace = "") {
    return Decide(token, name_space, trace).verdict;
  }

  TestCluster cluster_;
  std::string peer_ = "198.18.1.1";
  Judge judge_{*cluster_.client, "weft", cluster_.clocks()};
};

TEST_F(JudgeTest, AViewOpensItsTraceAndNothingElse) {
  const Judgement list = Decide(TestCluster::kToken, "shop");
  EXPECT_EQ(list.verdict, Verdict::kAllowed);
  EXPECT_EQ(list.only_trace, "sales");
  EXPECT_EQ(list.who, "view shop/look");
  EXPECT_EQ(Of(TestCluster::kToken, "shop", "sales"), Verdict::kAllowed);
  EXPECT_EQ(Of(TestCluster::kToken, "shop", "other"), Verdict::kForbidden);
  EXPECT_EQ(Of(TestCluster::kToken, "bank"), Verdict::kForbidden);
  EXPECT_EQ(Of(TestCluster::kToken, "bank", "sales"), Verdict::kForbidden);
}

TEST_F(JudgeTest, AWrongSecretOpensNothing) {
  EXPECT_EQ(Of("shop.look." + std::string(43, 'X'), "shop"), Verdict::kUnknown);
  EXPECT_EQ(Of("shop.none." + TestCluster::kSecret, "shop"), Verdict::kUnknown);
  EXPECT_EQ(Of("bank.look." + TestCluster::kSecret, "shop"), Verdict::kUnknown);
  cluster_.view["spec"]["tokenSHA256"] = "";
  cluster_.Pass(kBelieveTime);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown);
}

TEST_F(JudgeTest, AViewExpires) {
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  cluster_.Pass(10min - 1s);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  cluster_.Pass(1s);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown);
}

TEST_F(JudgeTest, AViewExpiresByTheApiServersClock) {
  cluster_.wall -= 3h;
  cluster_.SetView(10min);
  Judge judge(*cluster_.client, "weft");
  const Token token = ParseToken(TestCluster::kToken, "").value();
  const Route route = ParseRoute("/v1/namespaces/shop/traces").value();
  EXPECT_EQ(judge.Decide(token, route, peer_).verdict, Verdict::kAllowed);
  cluster_.wall += 6h;
  Judge later(*cluster_.client, "weft");
  EXPECT_EQ(later.Decide(token, route, peer_).verdict, Verdict::kUnknown);
}

TEST_F(JudgeTest, AViewOfMoreThanAnHourOpensNothing) {
  cluster_.SetView(1h + 1s);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown);
  cluster_.Pass(kBelieveTime);
  cluster_.SetView(1h);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
}

TEST_F(JudgeTest, AViewThatIsIncompleteOpensNothing) {
  for (const char* member : {"/spec/expires", "/spec/trace", "/metadata/creationTimestamp"}) {
    cluster_.SetView(10min);
    cluster_.view[kube::Json::json_pointer(member)] = 7;
    cluster_.Pass(kBelieveTime);
    EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown) << member;
  }
  cluster_.SetView(10min);
  cluster_.view["metadata"]["deletionTimestamp"] = kube::FormatTime(cluster_.wall);
  cluster_.Pass(kBelieveTime);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown);
}

TEST_F(JudgeTest, AnAnswerIsBelievedForAShortTime) {
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  cluster_.view = nullptr;
  cluster_.failing = true;
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  EXPECT_EQ(cluster_.questions(), 1U);
  cluster_.Pass(kBelieveTime);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnavailable);
  cluster_.failing = false;
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown);
}

TEST_F(JudgeTest, AViewThatWasGuessedBeforeItsTimeOpensAtOnce) {
  const kube::Json view = cluster_.view;
  cluster_.view = nullptr;
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kUnknown);
  cluster_.view = view;
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
}

TEST_F(JudgeTest, AUserReadsWhatTheyMayGet) {
  EXPECT_EQ(Of("eyJ.good", "shop"), Verdict::kAllowed);
  EXPECT_EQ(Decide("eyJ.good", "shop").who, "user jo");
  EXPECT_EQ(Decide("eyJ.good", "shop").only_trace, "");
  EXPECT_EQ(Of("eyJ.good", "shop", "sales"), Verdict::kAllowed);
  EXPECT_EQ(Of("eyJ.good", "bank", "sales"), Verdict::kForbidden);
  EXPECT_EQ(Of("eyJ.bad", "shop"), Verdict::kUnknown);
  cluster_.only_trace = "sales";
  cluster_.Pass(kBelieveTime);
  EXPECT_EQ(Of("eyJ.good", "shop"), Verdict::kForbidden);
  EXPECT_EQ(Of("eyJ.good", "shop", "other"), Verdict::kForbidden);
  EXPECT_EQ(Of("eyJ.good", "shop", "sales"), Verdict::kAllowed);
}

TEST_F(JudgeTest, NothingOfWeftsOwnNamespaceIsGivenOut) {
  Judge judge(*cluster_.client, "shop", cluster_.clocks());
  const Route route = ParseRoute("/v1/namespaces/shop/traces").value();
  for (const std::string& token : {TestCluster::kToken, std::string("eyJ.good")}) {
    EXPECT_EQ(judge.Decide(ParseToken(token, "").value(), route, peer_).verdict,
              Verdict::kForbidden);
  }
}

TEST_F(JudgeTest, ATokenForAnotherAudienceOpensNothing) {
  cluster_.audiences = kube::Json::array({"https://kubernetes.default.svc"});
  EXPECT_EQ(Of("eyJ.good", "shop"), Verdict::kUnknown);
}

TEST_F(JudgeTest, AFloodOfWrongTokensLeavesOthersAlone) {
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  Verdict last = Verdict::kUnknown;
  for (int i = 0; i < 500 && last == Verdict::kUnknown; i++) {
    last = Of("bank.v" + std::to_string(i) + "." + TestCluster::kSecret, "bank");
  }
  EXPECT_EQ(last, Verdict::kLimited);
  EXPECT_LE(cluster_.questions(), kPeerNamespaceQuestionBurst + 1);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  EXPECT_EQ(Of("eyJ.good", "shop", "sales"), Verdict::kAllowed) << "new, from the same address";
  cluster_.Pass(kBelieveTime);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
}

TEST_F(JudgeTest, AFloodOfStrangersDoesNotLimitClientsThatKnowATrace) {
  const std::string wrong = "." + TestCluster::kSecret;
  const std::string path = "/traces/sales/" + kUid + "/files";
  const auto decide = [&](const std::string& token, const std::string& name_space) {
    const Route route = ParseRoute("/v1/namespaces/" + name_space + path).value();
    return judge_.Decide(ParseToken(token, "").value(), route, peer_, true).verdict;
  };
  for (int i = 0; i < 500; i++) {
    (void)Of("shop.v" + std::to_string(i) + wrong, "shop");
    (void)Of("x" + std::to_string(i) + ".v" + wrong, "x" + std::to_string(i));
    (void)decide("shop.w" + std::to_string(i) + wrong, "bank");  // knows a Trace of bank only
    (void)decide("bank.v" + std::to_string(i) + wrong, "bank");
  }
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kLimited);
  EXPECT_EQ(decide("bank.new" + wrong, "bank"), Verdict::kLimited);
  EXPECT_EQ(decide(TestCluster::kToken, "shop"), Verdict::kAllowed);
  EXPECT_EQ(decide("eyJ.good", "shop"), Verdict::kAllowed);
}

TEST_F(JudgeTest, AFloodAboutANamespaceDoesNotEndWhatReadsThere) {
  const std::string wrong = "." + TestCluster::kSecret;
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
  EXPECT_EQ(Of("eyJ.good", "shop", "sales"), Verdict::kAllowed);
  for (int address = 0; address < 10; address++) {
    peer_ = "198.18.2." + std::to_string(address);
    for (int i = 0; i < 100; i++) (void)Of("shop.v" + std::to_string(i) + wrong, "shop");
  }
  for (int i = 0; i < 10; i++) {
    EXPECT_EQ(Of("shop.new" + wrong, "shop"), Verdict::kLimited);
    cluster_.Pass(kBelieveTime);
    for (int j = 0; j < 100; j++) (void)Of("shop.v" + std::to_string(j) + wrong, "shop");
    EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
    EXPECT_EQ(Of("eyJ.good", "shop", "sales"), Verdict::kAllowed);
  }
}

// An API server that calls `during` before it answers a question.
class SlowTransport final : public kube::Transport {
 public:
  explicit SlowTransport(TestCluster& cluster) : cluster_(cluster) {}

  kube::HttpReply Send(const kube::HttpRequest& request, const std::stop_token&) override {
    if (during) during();
    return cluster_.Serve(request);
  }
  kube::HttpReply Stream(const kube::HttpRequest&, const std::stop_token&,
                         const kube::BytesHandler&) override {
    return {};
  }

  std::function<void()> during;

 private:
  TestCluster& cluster_;
};

TEST_F(JudgeTest, QuestionsThatWaitLeaveSomeToOtherNamespaces) {
  auto transport = std::make_unique<SlowTransport>(cluster_);
  std::function<void()>& during = transport->during;
  kube::Client client(std::move(transport), "weft-test");
  Judge judge(client, "weft", cluster_.clocks());
  int asked = 0;
  const auto ask = [&](const std::string& token, const std::string& name_space, bool knows_trace) {
    const std::string path = "/v1/namespaces/" + name_space + "/traces/sales/" + kUid + "/files";
    return judge.Decide(ParseToken(token, "").value(), ParseRoute(path).value(), peer_, knows_trace)
        .verdict;
  };
  const auto view = [&] { return "bank.v" + std::to_string(asked++) + "." + TestCluster::kSecret; };
  // A user whose tokens are known, and who is asked about again.
  EXPECT_EQ(ask("eyJ.good", "shop", false), Verdict::kAllowed);
  cluster_.Pass(kBelieveTime);
  const std::vector<std::function<Verdict()>> floods = {
      [&] { return ask(view(), "bank", true); },
      [&] { return ask("eyJ.good", "bank", false); },
      [&] { return ask(view(), "bank", false); },
      [&] {
        const std::string token = "eyJ.bad" + std::to_string(asked++);
        return judge.DecideAgent(ParseToken(token, "").value(), peer_).verdict;
      },
  };
  size_t flood = 0;
  int waiting = 0;
  bool others_asked = false;
  during = [&] {
    waiting++;
    // Each question asks the next one while it waits, until one is refused.
    while (flood < floods.size() && floods[flood]() == Verdict::kUnavailable) {
      flood++;
      EXPECT_EQ(waiting, kMaxQuestionsOfOne * static_cast<int>(flood));
    }
    if (!std::exchange(others_asked, true)) {
      EXPECT_EQ(ask(TestCluster::kToken, "shop", true), Verdict::kAllowed);
    }
  };
  EXPECT_EQ(floods[0](), Verdict::kUnknown);
  EXPECT_EQ(flood, floods.size());
}

TEST_F(JudgeTest, AnAddressThatFloodsUsesUpNoOtherOnesQuestions) {
  const auto agent = [this](const std::string& token) {
    return judge_.DecideAgent(ParseToken(token, "").value(), peer_).verdict;
  };
  for (int i = 0; i < 500; i++) {
    (void)agent("eyJ.bad" + std::to_string(i));
    (void)Of("shop.v" + std::to_string(i) + "." + TestCluster::kSecret, "shop");
  }
  EXPECT_EQ(agent("eyJ.agent"), Verdict::kLimited);
  peer_ = "198.18.1.2";
  EXPECT_EQ(agent("eyJ.agent"), Verdict::kAllowed);
  EXPECT_EQ(Of(TestCluster::kToken, "shop"), Verdict::kAllowed);
}

}  // namespace
}  // namespace weft::relay_api
