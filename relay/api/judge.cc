// SPDX-License-Identifier: Apache-2.0
// See judge.h.
#include "relay/api/judge.h"

#include <openssl/crypto.h>

#include <memory>
#include <string_view>
#include <utility>

#include "lib/kube/digest.h"
#include "lib/kube/json.h"

namespace weft::relay_api {
namespace {

using kube::Json;
using kube::TextAt;

// Tokens for weft only: the relay could use others at the API server as their owners.
constexpr const char* kAudience = "weft-relay";

constexpr kube::Resource kTokenReviews{"authentication.k8s.io", "v1", "tokenreviews"};
constexpr kube::Resource kAccessReviews{"authorization.k8s.io", "v1", "subjectaccessreviews"};

// Returns a key for a secret; "", which matches nothing, without SHA-256.
std::string Digest(const std::string& secret) { return Sha256(secret).value_or(""); }

// Compares in a time that does not depend on the position of the first difference.
bool IsSame(const std::string& a, const std::string& b) {
  return !a.empty() && a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool IsTrue(const Json& object, kube::JsonPath path) {
  const Json* value = kube::At(object, path);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

bool HasAudience(const Json& review) {
  const Json* audiences = kube::At(review, {"status", "audiences"});
  if (audiences == nullptr || !audiences->is_array()) return false;
  return std::ranges::any_of(*audiences, [](const Json& one) { return one == kAudience; });
}

// Returns the value of extra[key], if it has exactly one; else "".
std::string OnlyText(const Json& user, const char* key) {
  const Json* values = kube::At(user, {"extra", key});
  const bool is_one =
      values != nullptr && values->is_array() && values->size() == 1 && values->front().is_string();
  return is_one ? values->front().get<std::string>() : "";
}

// Names of shares. Names of namespaces have no spaces.
std::string OfNamespace(const std::string& name_space) { return "of " + name_space; }

// A namespace can have any number of service accounts, which use one share, its own.
std::string OfUser(const std::string& user) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  if (!user.starts_with(kAccount)) return "user " + user;
  return OfNamespace(user.substr(kAccount.size(), user.rfind(':') - kAccount.size()));
}

Judgement Failed(const Error& error, std::string who) {
  const bool limited = error.code == ErrorCode::kLimit;
  return {.verdict = limited ? Verdict::kLimited : Verdict::kUnavailable,
          .who = std::move(who),
          .credential = "",
          .only_trace = "",
          .problem = error.message};
}

}  // namespace

Judgement Judge::Decide(const Token& token, const Route& route, const std::string& peer,
                        bool knows_trace) {
  Judgement judgement = token.is_view() ? DecideView(token, route, peer, knows_trace)
                                        : DecideUser(token, route, peer, knows_trace);
  if (judgement.verdict == Verdict::kAllowed && route.kubernetes_namespace == own_namespace_) {
    judgement.verdict = Verdict::kForbidden;
  }
  return judgement;
}

Judgement Judge::DecideView(const Token& token, const Route& route, const std::string& peer,
                            bool knows_trace) {
  const std::string name = token.view_namespace + "/" + token.view_name;
  const std::string who = "view " + name;
  const std::string claimed = "a client that names view " + name;
  // A client that knows a Trace of one namespace is a stranger in another.
  const Asker asker{peer, token.view_namespace,
                    knows_trace && route.kubernetes_namespace == token.view_namespace};
  const auto view = Believe("view/" + name, asker, [&] { return AskView(token); });
  if (!view) return Failed(view.error(), claimed);
  if (!view->good || !IsSame(view->digest, Digest(token.secret)) ||
      clocks_.wall() >= view->expires) {
    return {.verdict = Verdict::kUnknown, .who = claimed};
  }
  Judgement judgement{
      .verdict = Verdict::kForbidden, .who = who, .credential = who, .only_trace = view->trace};
  if (route.kubernetes_namespace == token.view_namespace &&
      (route.verb == Verb::kListTraces || route.trace == view->trace)) {
    judgement.verdict = Verdict::kAllowed;
  }
  return judgement;
}

Judgement Judge::DecideUser(const Token& token, const Route& route, const std::string& peer,
                            bool knows_trace) {
  const std::string key = "user/" + Digest(token.secret);
  const Asker asker{peer, route.kubernetes_namespace, knows_trace};
  const auto user = Believe(key, asker, [&] { return AskUser(token); });
  if (!user) return Failed(user.error(), "");
  if (!user->good) return {.verdict = Verdict::kUnknown};
  const std::string who = "user " + TextAt(user->user, {"username"});
  const auto right = Believe(key + "/" + route.kubernetes_namespace + "/" + route.trace, asker,
                             [&] { return AskRight(user->user, route); });
  if (!right) return Failed(right.error(), who);
  return {.verdict = right->good ? Verdict::kAllowed : Verdict::kForbidden,
          .who = who,
          .credential = key};
}

Judgement Judge::DecideAgent(const Token& token, const std::string& peer) {
  if (token.is_view()) return {.verdict = Verdict::kUnknown};
  const std::string key = "user/" + Digest(token.secret);
  const auto user = Believe(key, {peer, std::nullopt}, [&] { return AskUser(token); });
  if (!user) return Failed(user.error(), "");
  if (!user->good) return {.verdict = Verdict::kUnknown};
  const std::string name = TextAt(user->user, {"username"});
  const std::string node = OnlyText(user->user, "authentication.kubernetes.io/node-name");
  if (name != "system:serviceaccount:" + own_namespace_ + ":weft-agent" || node.empty()) {
    return {.verdict = Verdict::kForbidden, .who = "user " + name};
  }
  return {.verdict = Verdict::kAllowed, .who = "agent of " + node, .credential = key, .node = node};
}

std::optional<std::string> Judge::Charge(const Asker& asker, const Belief* last,
                                         Clock::time_point now) {
  const std::string about = OfNamespace(asker.about_namespace.value_or(""));
  if (last != nullptr && last->good && now < last->until + kGoodLately) {
    // A client chooses the namespace of a route, but not the user that its token belongs to.
    const std::string user = TextAt(last->user, {"username"});
    const std::string owner = user.empty() ? about : OfUser(user);
    if (renewals_of_.Take(owner, now)) return owner;
  }
  if (asker.knows_trace && questions_in_.Take(about, now)) return about;
  if (!MayAskAsStranger(asker, now)) return std::nullopt;
  return asker.about_namespace ? "strangers" : "agents";
}

bool Judge::MayAskAsStranger(const Asker& asker, Clock::time_point now) {
  const std::string about = asker.about_namespace ? "/" + *asker.about_namespace : "";
  if (!questions_from_about_.Take(asker.peer + about, now)) return false;
  if (!questions_from_.Take(asker.peer, now)) return false;
  if (!asker.about_namespace) return agent_questions_.Take(now);
  return questions_of_.Take(*asker.about_namespace, now) && all_questions_.Take(now);
}

Result<Judge::Belief> Judge::Believe(const std::string& name, const Asker& asker,
                                     const Question& question) {
  std::shared_ptr<void> slot;
  {
    const std::lock_guard lock(mutex_);
    const auto now = clocks_.steady();
    const auto found = beliefs_.find(name);
    if (found != beliefs_.end() && now < found->second.until) return found->second;
    const auto share = Charge(asker, found == beliefs_.end() ? nullptr : &found->second, now);
    if (!share) return Fail(ErrorCode::kLimit, "too many questions about tokens");
    slot = asking_.Begin(*share);
  }
  if (slot == nullptr) {
    return Fail(ErrorCode::kTimeout, "the API server has not answered other questions yet");
  }
  auto answer = question();
  slot.reset();
  const std::lock_guard lock(mutex_);
  if (!answer) return answer;
  if (answer->is_absent) {
    beliefs_.erase(name);
    return answer;
  }
  const auto now = clocks_.steady();
  if (beliefs_.size() >= kMaxBelieved) {
    std::erase_if(beliefs_, [now](const auto& entry) {
      const auto& belief = entry.second;
      return now >= belief.until + (belief.good ? kGoodLately : std::chrono::seconds(0));
    });
  }
  // Where there is no room, the question is asked again.
  answer->until = now + kBelieveTime;
  if (beliefs_.size() < kMaxBelieved) beliefs_.insert_or_assign(name, *answer);
  return answer;
}

Result<Judge::Belief> Judge::AskView(const Token& token) {
  const auto view = client_.Get(
      {.resource = kube::kTraceViews, .name_space = token.view_namespace, .name = token.view_name});
  if (!view && view.error().code == ErrorCode::kNotFound) return Belief{.is_absent = true};
  if (!view) return std::unexpected(view.error());
  const auto created = kube::ParseTime(TextAt(*view, {"metadata", "creationTimestamp"}));
  const auto expires = kube::ParseTime(TextAt(*view, {"spec", "expires"}));
  Belief belief;
  belief.digest = TextAt(*view, {"spec", "tokenSHA256"});
  belief.trace = TextAt(*view, {"spec", "trace"});
  if (!created || !expires || belief.trace.empty()) return belief;
  belief.expires = *expires;
  belief.good = *expires - *created <= kMaxViewLifetime &&
                kube::At(*view, {"metadata", "deletionTimestamp"}) == nullptr;
  return belief;
}

Result<Judge::Belief> Judge::AskUser(const Token& token) {
  const auto review = client_.Create(
      {.resource = kTokenReviews},
      {{"apiVersion", "authentication.k8s.io/v1"},
       {"kind", "TokenReview"},
       {"spec", {{"token", token.secret}, {"audiences", Json::array({kAudience})}}}});
  if (!review) return std::unexpected(review.error());
  Belief belief;
  belief.good = IsTrue(*review, {"status", "authenticated"}) && HasAudience(*review);
  if (const Json* user = kube::At(*review, {"status", "user"})) belief.user = *user;
  return belief;
}

Result<Judge::Belief> Judge::AskRight(const Json& user, const Route& route) {
  Json attributes = {{"namespace", route.kubernetes_namespace},
                     {"verb", "get"},
                     {"group", kube::kTraces.group},
                     {"resource", kube::kTraces.plural}};
  if (!route.trace.empty()) attributes["name"] = route.trace;
  Json spec = {{"user", TextAt(user, {"username"})}, {"resourceAttributes", std::move(attributes)}};
  for (const char* member : {"uid", "groups", "extra"}) {
    if (const Json* value = kube::At(user, {member})) spec[member] = *value;
  }
  const auto review =
      client_.Create({.resource = kAccessReviews}, {{"apiVersion", "authorization.k8s.io/v1"},
                                                    {"kind", "SubjectAccessReview"},
                                                    {"spec", std::move(spec)}});
  if (!review) return std::unexpected(review.error());
  Belief belief;
  belief.good = IsTrue(*review, {"status", "allowed"}) && !IsTrue(*review, {"status", "denied"});
  return belief;
}

}  // namespace weft::relay_api
