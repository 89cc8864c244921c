// SPDX-License-Identifier: Apache-2.0
// `kubectl weft doctor`: looks at the cluster, the namespace, the nodes and the Traces, as far as
// the user may, and says what does not work, why, and what to do.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <set>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/findings.h"
#include "cli/kubectl/relay_client.h"
#include "cli/kubectl/trace_objects.h"
#include "cli/kubectl/trace_view.h"
#include "lib/api/selector.h"
#include "lib/api/session.h"
#include "lib/kube/library.h"

namespace weft::kubectl {
namespace {

using kube::Json;

// Selectable fields of custom resources, which agents need.
constexpr int kOldestMinor = 32;

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// What helps where a status has no advice of its own.
std::string RemedyOf(std::string_view reason) {
  static const std::map<std::string_view, std::string_view> remedies = {
      {"LibraryNotLoaded",
       "restart the pods; a program that is static, setuid or musl's with another loader cannot "
       "load it (docs/compatibility.md)"},
      {"Static", "build the program with a dynamic loader, or trace its kernel events"},
      {"NoPods",
       "compare the Trace's labels with those of the pods: kubectl get pods --show-labels"},
      {"MemoryLimit", "raise the memory limit of the containers, or make spec.buffer smaller"},
      {"ImagePreloadReplaced", "set LD_PRELOAD in the pod's spec: weft keeps it there"},
      {"WaitingForRelay", "ask an administrator to look at the StatefulSet weft-relay"},
      {"Off", "ask an administrator for agent.kernel.mode (charts/weft/README.md)"},
  };
  const auto found = remedies.find(reason);
  return found == remedies.end() ? "" : std::string(found->second);
}

class Doctor {
 public:
  Doctor(const Connection& connection, Findings& findings)
      : connection_(connection), findings_(findings), name_space_(connection.name_space) {}

  // An error: the API server cannot be asked at all, or there is no such Trace.
  Status Examine(const std::string& only) {
    WEFT_TRY(LookAtServer());
    if (!LookAtDefinitions()) return {};
    LookAtRelay();
    LookAtNamespace();
    LookAtNodes();
    return LookAtTraces(only);
  }

 private:
  Status LookAtServer() {
    const auto version = GetJson("/version");
    if (!version) return std::unexpected(version.error());
    const std::string text = kube::TextAt(*version, {"gitVersion"});
    const std::string major = kube::TextAt(*version, {"major"});
    const std::string minor = kube::TextAt(*version, {"minor"});  // "32+" of some vendors
    int number = 0;
    std::from_chars(minor.data(), minor.data() + minor.size(), number);
    if (major == "1" && number < kOldestMinor) {
      findings_.Wrong("API server", text + " is too old: weft needs Kubernetes 1.32",
                      "upgrade the cluster");
    } else {
      findings_.Works("API server", text);
    }
    return {};
  }

  bool LookAtDefinitions() {
    const auto found = GetJson("/apis/weft.dev/v1alpha1");
    if (!found && found.error().code == ErrorCode::kNotFound) {
      findings_.Wrong("resources", "this cluster has no weft.dev/v1alpha1",
                      "ask an administrator to install weft (docs/operations.md)");
      return false;
    }
    if (!found) {
      findings_.Unseen("resources", found.error());
      return true;
    }
    std::set<std::string> missing = {"traces", "traceviews", "tracesessions", "clustertraces"};
    if (const Json* list = kube::At(*found, {"resources"}); list != nullptr && list->is_array())
      for (const Json& one : *list) missing.erase(kube::TextAt(one, {"name"}));
    if (missing.empty()) {
      findings_.Works("resources", "weft.dev/v1alpha1 is there");
    } else {
      findings_.Wrong("resources", "this cluster lacks " + Join({missing.begin(), missing.end()}),
                      "ask an administrator to upgrade weft: its definitions are older than this "
                      "kubectl-weft");
    }
    return true;
  }

  // Without a token the relay refuses, and so shows that it answers.
  void LookAtRelay() {
    const kube::HttpReply reply =
        connection_.client->Exchange({.method = "GET",
                                      .target = RelayTarget(connection_) + "/namespaces/" +
                                                kube::Encode(name_space_) + "/traces",
                                      .headers = {{"Accept", "*/*"}}});
    const Json status = Json::parse(reply.body, nullptr, false);
    const std::string message = kube::TextAt(status, {"message"});
    const std::string look = "kubectl -n " + connection_.weft_namespace +
                             " get pods -l app.kubernetes.io/component=relay";
    if (reply.failure != kube::TransportFailure::kNone) {
      findings_.Wrong("relay", "it cannot be asked: " + reply.problem, look);
    } else if (reply.status == 401 && message.empty()) {
      findings_.Works("relay", "it answers through the API server");
    } else if (reply.status == 403 && !message.empty()) {
      findings_.Unseen("relay", {ErrorCode::kPermission, 0, message});
    } else if (reply.status == 404) {
      findings_.Wrong("relay",
                      "the namespace " + connection_.weft_namespace + " has no Service weft-relay",
                      "name the namespace of weft with --weft-namespace");
    } else {
      findings_.Wrong("relay",
                      "it does not answer: status " + std::to_string(reply.status) +
                          (message.empty() ? "" : ": " + message),
                      look);
    }
  }

  void LookAtNamespace() {
    const auto found =
        connection_.client->Get({.resource = kube::kNamespaces, .name = name_space_});
    const auto pods =
        connection_.client->List({.resource = kube::kPods, .name_space = name_space_});
    std::size_t labelled = 0;
    if (pods) {
      for (const Json& pod : pods->items) {
        const std::string node = kube::TextAt(pod, {"spec", "nodeName"});
        if (!node.empty()) used_nodes_.insert(node);
        labelled += kube::TextAt(pod, {"metadata", "labels", kube::kInjectLabel}) == "enabled";
      }
    } else {
      findings_.Unseen("pods", pods.error());
    }
    const std::string subject = "namespace " + name_space_;
    const std::string label = std::string(kube::kInjectLabel) + "=enabled";
    if (!found) return findings_.Unseen(subject, found.error());
    if (kube::TextAt(*found, {"metadata", "labels", kube::kInjectLabel}) == "enabled") {
      findings_.Works(subject, "it has the label " + label);
    } else if (labelled > 0) {
      findings_.Works(subject, std::to_string(labelled) + " pods have the label " + label);
    } else {
      findings_.Wrong(subject,
                      "it lacks the label " + label + ", so events of programs are not recorded",
                      "kubectl label namespace " + name_space_ + " " + label +
                          ", and restart the pods (kubectl rollout restart)");
    }
  }

  void LookAtNodes() {
    const auto agents = connection_.client->List(
        {.resource = kube::kPods, .name_space = connection_.weft_namespace},
        {.labels = "app.kubernetes.io/name=weft,app.kubernetes.io/component=agent"});
    if (!agents) findings_.Unseen("agents", agents.error());
    std::map<std::string, bool> ready;  // by node
    if (agents) {
      for (const Json& agent : agents->items) {
        bool& is_ready = ready[kube::TextAt(agent, {"spec", "nodeName"})];
        is_ready = is_ready || IsReady(agent);
      }
      ready.erase("");
    }
    for (const auto& [node, is_ready] : ready) {
      if (is_ready) {
        findings_.Works("node " + node, "its agent is ready");
      } else {
        findings_.Wrong("node " + node, "its agent is not ready",
                        "kubectl -n " + connection_.weft_namespace +
                            " describe pods -l app.kubernetes.io/component=agent");
      }
    }
    if (agents) LookForNodesWithout(ready);
  }

  void LookForNodesWithout(const std::map<std::string, bool>& agents) {
    std::set<std::string> nodes = used_nodes_;
    const auto listed = connection_.client->List({.resource = kube::kNodes});
    if (!listed) findings_.Unseen("nodes", listed.error());
    if (listed)
      for (const Json& node : listed->items) nodes.insert(kube::TextAt(node, {"metadata", "name"}));
    for (const std::string& node : nodes) {
      if (agents.contains(node)) continue;
      if (used_nodes_.contains(node)) {
        findings_.Wrong("node " + node, "it has pods of this namespace, but no agent",
                        "ask an administrator for agent.tolerations or agent.nodeSelector "
                        "(charts/weft/README.md)");
      } else {
        findings_.Note("node " + node, "it has no agent, and no pods of this namespace");
      }
    }
  }

  static bool IsReady(const Json& pod) {
    const Json* conditions = kube::At(pod, {"status", "conditions"});
    return conditions != nullptr && conditions->is_array() &&
           std::ranges::any_of(*conditions, [](const Json& condition) {
             return kube::TextAt(condition, {"type"}) == "Ready" &&
                    kube::TextAt(condition, {"status"}) == "True";
           });
  }

  Status LookAtTraces(const std::string& only) {
    if (!only.empty()) {
      const auto object = connection_.client->Get(
          {.resource = kube::kTraces, .name_space = name_space_, .name = only});
      if (!object && object.error().code == ErrorCode::kNotFound)
        return std::unexpected(NoSuchTrace(connection_, only));
      if (!object) findings_.Unseen("Trace " + only, object.error());
      if (object) LookAtTrace(*object);
      return {};
    }
    const auto traces =
        connection_.client->List({.resource = kube::kTraces, .name_space = name_space_});
    if (!traces) {
      findings_.Unseen("Traces", traces.error());
      return {};
    }
    if (traces->items.empty()) findings_.Note("Traces", "there are none in this namespace");
    for (const Json& object : traces->items) LookAtTrace(object);
    return {};
  }

  void LookAtTrace(const Json& object) {
    const auto trace = ToTrace(object);
    const std::string subject = "Trace " + kube::TextAt(object, {"metadata", "name"});
    if (!trace) return findings_.Unseen(subject, trace.error());
    const api::TraceStatus& status = trace->status;
    const std::string phase(PhaseName(status.phase));
    if (status.phase == api::Phase::kFailed) {
      findings_.Wrong(subject, "it failed", "");
    } else if (status.observed_generation == 0) {
      findings_.Wrong(subject, "no controller has looked at it",
                      "ask an administrator to look at the Deployment weft-controller");
    } else {
      findings_.Works(subject, phase + ", " + std::to_string(status.pods.traced) + " of " +
                                   std::to_string(status.pods.matched) + " pods traced");
    }
    LookAtConditions(subject, status.conditions, status.events, IsOver(status.phase));
    LookAtPods(subject, *trace);
    LookAtLosses(subject, status.events);
    if (IsOver(status.phase)) return;
    LookAtSessions(subject, *trace);
    LookAtStored(subject, *trace);
  }

  void LookAtConditions(const std::string& subject, const std::vector<api::Condition>& conditions,
                        const api::EventCounts& events, bool is_over) {
    for (const api::Condition& condition : conditions) {
      if (condition.status != api::ConditionStatus::kFalse) continue;
      const std::string what =
          condition.type + " is False, " + condition.reason + ": " + condition.message;
      // Drained is False until the end, and Ready is False from then on.
      if (condition.type == api::kConditionDrained && !is_over) continue;
      if (condition.type == api::kConditionReady && is_over) continue;
      // Smaller buffers do no harm as long as no event was lost.
      const bool is_harmless =
          condition.type == api::kConditionBuffersGranted && events.missing == 0;
      if (condition.type == api::kConditionReceiving || is_harmless) {
        findings_.Note(subject, what);
      } else {
        findings_.Wrong(subject, what, RemedyOf(condition.reason));
      }
    }
  }

  // Returns those that the Trace's conditions do not quote: the reader has these already.
  static std::vector<api::Condition> WithoutQuoted(std::vector<api::Condition> of_node,
                                                   const std::vector<api::Condition>& of_trace) {
    std::erase_if(of_node, [&](const api::Condition& one) {
      const api::Condition* said = api::FindCondition(of_trace, one.type);
      return said != nullptr && said->status == one.status && said->reason == one.reason &&
             said->message.contains(one.message);
    });
    return of_node;
  }

  void LookAtPods(const std::string& subject, const api::Trace& trace) {
    const api::PodCounts& pods = trace.status.pods;
    if (pods.matched == 0 && trace.spec.RecordsUser() && !IsOver(trace.status.phase) &&
        FindRefusal(trace.status) == nullptr)
      findings_.Wrong(subject, "no pod has its labels",
                      "kubectl get pods -n " + name_space_ + " -l '" +
                          api::ToQuery(trace.spec.pods.selector) + "'");
    for (const api::SkippedPods& skipped : pods.skipped) {
      std::string names = Join(skipped.names);
      if (skipped.count > static_cast<std::int64_t>(skipped.names.size())) names += ", ...";
      findings_.Wrong(subject, NotTraced(skipped) + (names.empty() ? "" : " (" + names + ")"),
                      RemedyOf(skipped.reason));
    }
  }

  void LookAtLosses(const std::string& subject, const api::EventCounts& events) {
    if (events.missing == 0) return;
    std::string reasons;
    bool is_full = false;
    for (const api::EventLoss& loss : events.reasons) {
      reasons += (reasons.empty() ? "" : ", ") + std::to_string(loss.count) + " " + loss.stage +
                 "/" + loss.reason;
      is_full = is_full || loss.reason == "full";
    }
    findings_.Wrong(subject, std::to_string(events.missing) + " events were lost: " + reasons,
                    is_full ? "record fewer events (filter, exclude), or make spec.buffer larger"
                            : "docs/operations.md explains the reasons");
  }

  void LookAtSessions(const std::string& subject, const api::Trace& trace) {
    const auto sessions = connection_.client->List(
        {.resource = kube::kTraceSessions, .name_space = name_space_},
        {.labels = std::string(api::kTraceLabel) + "=" + trace.metadata.name});
    if (!sessions) return findings_.Unseen(subject + ", nodes", sessions.error());
    for (const Json& object : sessions->items) {
      const auto session =
          api::ParseSession(object.dump(-1, ' ', false, Json::error_handler_t::replace),
                            {.refuse_unknown_fields = false});
      const std::string node = subject + ", node " + kube::TextAt(object, {"spec", "nodeName"});
      if (!session) {
        findings_.Wrong(node,
                        "its TraceSession is not understood: " + session.error().front().ToString(),
                        "take the kubectl-weft of the release that is in the cluster");
        continue;
      }
      const api::SessionStatus& status = session->status;
      const std::string text = std::string(PhaseName(status.phase)) + ", " +
                               std::to_string(status.pods.traced) + " of " +
                               std::to_string(status.pods.matched) + " pods traced";
      if (status.observed_generation == 0) {
        findings_.Wrong(node, "its agent has not looked at the Trace yet",
                        "kubectl -n " + connection_.weft_namespace +
                            " get pods -l app.kubernetes.io/component=agent -o wide");
      } else {
        findings_.Works(node, text);
      }
      LookAtConditions(node, WithoutQuoted(status.conditions, trace.status.conditions),
                       status.events, IsOver(status.phase));
    }
  }

  void LookAtStored(const std::string& subject, const api::Trace& trace) {
    const std::string folder = FolderAtRelay(trace);
    if (folder.empty()) return;
    TraceView view(connection_, trace.metadata.name);
    RelayClient relay(connection_, view, folder);
    const auto files = relay.Files();
    if (!files && files.error().code == ErrorCode::kNotFound)
      return findings_.Note(subject, "the relay has no events of it yet");
    if (!files) return findings_.Unseen(subject + ", relay", files.error());
    std::uint64_t bytes = 0;
    for (const RelayFile& file : *files) bytes += file.size;
    findings_.Works(subject, "the relay has " + Bytes(bytes) + " of it");
  }

  Result<Json> GetJson(const std::string& target) {
    const kube::HttpReply reply = connection_.client->Exchange({.method = "GET", .target = target});
    if (reply.failure != kube::TransportFailure::kNone)
      return Fail(ErrorCode::kIo, "GET " + target + ": " + reply.problem);
    Json answer = Json::parse(reply.body, nullptr, false);
    const std::string message = "GET " + target + ": " + kube::TextAt(answer, {"message"});
    if (reply.status == 401 || reply.status == 403) return Fail(ErrorCode::kPermission, message);
    if (reply.status == 404) return Fail(ErrorCode::kNotFound, message);
    if (reply.status != 200 || !answer.is_object())
      return Fail(ErrorCode::kIo, message + ": status " + std::to_string(reply.status));
    return answer;
  }

  const Connection& connection_;
  Findings& findings_;
  const std::string name_space_;
  std::set<std::string> used_nodes_;  // by pods of the namespace, as far as the user may see them
};

}  // namespace

int Examine(const Connection& connection, const std::string& trace) {
  Findings findings(stdout);
  const Status done = Doctor(connection, findings).Examine(trace);
  if (!done) return Complain(done.error());
  if (findings.unseen() > 0) std::printf("unknown, for want of a right: %d\n", findings.unseen());
  if (findings.wrong() == 0) {
    std::printf("nothing is wrong\n");
    return cli::kExitOk;
  }
  std::printf("wrong: %d\n", findings.wrong());
  return kExitWrong;
}

}  // namespace weft::kubectl
