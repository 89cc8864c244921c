// SPDX-License-Identifier: Apache-2.0
// Judges who may read what (docs/adr/0048): asks the API server about a TraceView, or about a token
// of Kubernetes and its user's rights, and believes the answer for kBelieveTime.
//
// Thread-safety: Decide may be called from several threads at once. It blocks for the API server;
// at most kMaxQuestions calls do at a time, so that the server's other threads serve clients that
// are believed already, and at most kMaxQuestionsOfOne about one namespace, of one user, of
// strangers, or of agents.
#ifndef WEFT_RELAY_API_JUDGE_H_
#define WEFT_RELAY_API_JUDGE_H_

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "lib/base/result.h"
#include "lib/base/token_bucket.h"
#include "lib/kube/client.h"
#include "lib/kube/time.h"
#include "relay/api/limits.h"
#include "relay/api/request.h"
#include "relay/api/shares.h"

namespace weft::relay_api {

using Clock = std::chrono::steady_clock;

enum class Verdict {
  kAllowed,
  kUnknown,      // the token opens nothing
  kForbidden,    // it opens something else
  kLimited,      // too many questions about tokens of this namespace, or of all
  kUnavailable,  // the API server does not answer
};

struct Judgement {
  Verdict verdict = Verdict::kUnknown;
  // For the log: "view NAMESPACE/NAME", "user NAME", or what an unproved client claims; "": not
  // known.
  std::string who;
  std::string credential;  // which one it is, for rates; "": not known
  std::string only_trace;  // of kListTraces: the one to list; "": all
  std::string node;        // of an agent
  std::string problem;     // of kUnavailable, for the log
};

class Judge {
 public:
  struct Clocks {
    std::function<kube::WallTime()> wall;  // the API server's
    std::function<Clock::time_point()> steady = [] { return Clock::now(); };
  };

  // `client` outlives the judge. `own_namespace` is weft's: events of ClusterTraces, which are of
  // all namespaces, are stored there, so nothing of it is given out.
  Judge(kube::Client& client, std::string own_namespace)
      : Judge(client, std::move(own_namespace),
              Clocks{.wall = [&client] { return client.ServerTime(); }}) {}
  Judge(kube::Client& client, std::string own_namespace, Clocks clocks)
      : client_(client), own_namespace_(std::move(own_namespace)), clocks_(std::move(clocks)) {}

  // Whether `token` opens what `route` names. `peer`: the address that sent it. `knows_trace`: the
  // route has the uid of a Trace that the relay stores. Those who may `get` that Trace know it, and
  // no other tenant does.
  Judgement Decide(const Token& token, const Route& route, const std::string& peer,
                   bool knows_trace = false);

  // Whether the kubelet gave `token` to a pod of weft-agent, and on which node.
  Judgement DecideAgent(const Token& token, const std::string& peer);

 private:
  // What the API server said of one question.
  struct Belief {
    Clock::time_point until;
    bool good = false;  // a view that can be used; an authenticated user; a user with the right
    bool is_absent = false;  // a view that is not there, and may be made at any moment
    // These three belong to a view:
    std::string digest;
    std::string trace;
    kube::WallTime expires{};
    // What the TokenReview of a user has under status.user.
    kube::Json user;
  };
  using Question = std::function<Result<Belief>()>;
  // A question uses shares of the address that asks, and of the namespace that it is about;
  // std::nullopt: the share of agents. One that knows a Trace of this namespace uses a share of
  // those who do.
  struct Asker {
    std::string peer;
    std::optional<std::string> about_namespace;
    bool knows_trace = false;
  };

  Judgement DecideView(const Token& token, const Route& route, const std::string& peer,
                       bool knows_trace);
  Judgement DecideUser(const Token& token, const Route& route, const std::string& peer,
                       bool knows_trace);
  // The belief of this name, or what `question` answers. An error: kLimit, or of the API server.
  Result<Belief> Believe(const std::string& name, const Asker& asker, const Question& question);
  // Charges a question to one of the shares and returns the share's name; none: all that it may use
  // are used up. `last`: what was believed last; null: nothing.
  std::optional<std::string> Charge(const Asker& asker, const Belief* last, Clock::time_point now);
  // Whether a question of a stranger may be asked now.
  bool MayAskAsStranger(const Asker& asker, Clock::time_point now);
  Result<Belief> AskView(const Token& token);
  Result<Belief> AskUser(const Token& token);
  Result<Belief> AskRight(const kube::Json& user, const Route& route);

  kube::Client& client_;
  const std::string own_namespace_;
  const Clocks clocks_;
  std::mutex mutex_;
  std::map<std::string, Belief> beliefs_;
  Shares asking_{kMaxQuestions, kMaxQuestionsOfOne};  // questions that are being asked
  TokenBucket all_questions_{kQuestionRate, kQuestionBurst};
  TokenBuckets questions_from_about_{kPeerNamespaceQuestionRate, kPeerNamespaceQuestionBurst,
                                     kMaxRated};
  TokenBuckets questions_from_{kPeerQuestionRate, kPeerQuestionBurst, kMaxRated};
  TokenBuckets questions_of_{kNamespaceQuestionRate, kNamespaceQuestionBurst, kMaxRated};
  TokenBuckets questions_in_{kNamespaceQuestionRate, kNamespaceQuestionBurst, kMaxRated};
  TokenBuckets renewals_of_{kRenewalRate, kRenewalBurst, kMaxRated};
  TokenBucket agent_questions_{kAgentQuestionRate, kAgentQuestionBurst};
};

}  // namespace weft::relay_api

#endif  // WEFT_RELAY_API_JUDGE_H_
