// SPDX-License-Identifier: Apache-2.0
// From a plan to requests. Order: the finalizer before any session, so that none is left behind;
// the status before the removal of sessions whose counts it has, and before its Events; a finalizer
// goes last.
//
// A status is written only onto the version of the Trace that it was made from. Of two controllers
// that act for a moment, one writes, and the other plans again: no counts are taken back or counted
// twice.
#include "controller/reconcile/reconciler.h"

#include <algorithm>
#include <utility>

#include "lib/api/filters.h"
#include "lib/api/names.h"
#include "lib/api/write.h"
#include "lib/kube/library.h"

namespace weft::controller {
namespace {

using std::chrono::milliseconds;

kube::Address AddressOf(const api::Trace& trace, const char* subresource = "") {
  return {.resource = IsClusterWide(trace) ? kube::kClusterTraces : kube::kTraces,
          .name_space = trace.metadata.name_space,
          .name = trace.metadata.name,
          .subresource = subresource};
}

std::string KindOf(const api::Trace& trace) {
  return std::string(IsClusterWide(trace) ? api::kClusterTraceKind : api::kTraceKind);
}

// What an object from the API server says; `problem` where its spec cannot be acted on: then
// metadata and status are read beside a spec that stands for it.
api::Trace ReadTrace(const Json& object, std::string& problem) {
  api::ParseOptions options = api::CheckingFilters();
  options.refuse_unknown_fields = false;
  const bool cluster_wide = KeyOf(object).name_space.empty();
  const auto parse = cluster_wide ? api::ParseClusterTraces : api::ParseTraces;
  api::Traces read = parse("", object.dump(), options);
  if (read) return std::move(read->front());
  for (const api::Diagnostic& diagnostic : read.error()) {
    problem += (problem.empty() ? "" : "; ") + diagnostic.path + ": " + diagnostic.message;
  }
  Json other = object;
  const Json all = Json::array({{{"name", "*"}}});
  other["spec"] =
      cluster_wide ? Json{{"kernel", {{"tracepoints", all}}}} : Json{{"user", {{"events", all}}}};
  read = parse("", other.dump(), options);
  if (read) return std::move(read->front());
  const ObjectKey key = KeyOf(object);
  api::Trace trace;
  trace.metadata.name = key.name;
  trace.metadata.name_space = key.name_space;
  return trace;
}

Json SessionBody(const api::Trace& trace, api::TraceSession session) {
  session.metadata.labels[std::string(api::kTraceLabel)] = trace.metadata.name;
  Json body = Json::parse(api::ToJson(session), nullptr, false);
  body.erase("status");
  body["metadata"]["finalizers"] = session.metadata.finalizers;
  body["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", api::kApiVersion},
                                                      {"kind", KindOf(trace)},
                                                      {"name", trace.metadata.name},
                                                      {"uid", trace.metadata.uid},
                                                      {"controller", true},
                                                      {"blockOwnerDeletion", true}}});
  return body;
}

}  // namespace

// Returns "" for a Trace that has sessions or has ended: the limit is for new ones.
std::string Reconciler::WhyOneTooMany(const ObjectKey& key, const Situation& situation) const {
  const api::Trace& trace = situation.trace;
  const bool is_new = situation.sessions.empty() && trace.status.completion_time.empty() &&
                      trace.metadata.deletion_timestamp.empty();
  if (!is_new || IsClusterWide(trace)) return "";
  return api::CheckTraceCount(cache_.CountOlder(key, traces_per_namespace_), traces_per_namespace_);
}

Situation Reconciler::Look(const ObjectKey& key, const Json& object,
                           const std::vector<api::TraceSession>& sessions) {
  Situation situation;
  situation.trace = ReadTrace(object, situation.problem);
  const auto written = written_.find(key);
  if (written != written_.end() && written->second.uid == situation.trace.metadata.uid) {
    std::string& version = situation.trace.metadata.resource_version;
    if (written->second.older.contains(version)) {
      version = written->second.version;
      situation.trace.status = written->second.status.value_or(situation.trace.status);
    } else {
      written->second.older.clear();
    }
  }
  situation.name_space = cache_.Namespace(key.name_space);
  // One of a Trace of that name from before goes with it.
  for (const api::TraceSession& session : sessions) {
    if (session.spec.trace_uid == situation.trace.metadata.uid)
      situation.sessions.push_back(session);
  }
  if (std::string why = WhyOneTooMany(key, situation); situation.problem.empty() && !why.empty()) {
    situation.problem = std::move(why);
    situation.problem_reason = kTooManyTraces;
  } else {
    situation.pods = cache_.Pods(key.name_space);
    situation.nodes = cache_.Nodes();
  }
  situation.own_namespace = own_namespace_;
  situation.served_namespaces = served_namespaces_;
  situation.relay = relay_;
  situation.now = std::chrono::system_clock::now();
  situation.uninstalling_since = uninstalling_since_;
  return situation;
}

Reconciler::Written& Reconciler::NoteWrite(api::Trace& trace, const Json& answer) {
  Written& written = written_[{trace.metadata.name_space, trace.metadata.name}];
  if (written.uid != trace.metadata.uid) written = {.uid = trace.metadata.uid};
  written.older.insert(trace.metadata.resource_version);
  const std::string version = kube::TextAt(answer, {"metadata", "resourceVersion"});
  if (!version.empty()) trace.metadata.resource_version = version;
  written.version = trace.metadata.resource_version;
  return written;
}

Status Reconciler::WriteFinalizers(api::Trace& trace, bool want) {
  std::vector<std::string> finalizers = trace.metadata.finalizers;
  std::erase(finalizers, kFinalizer);
  if (want) finalizers.emplace_back(kFinalizer);
  const auto written = client_.MergePatch(
      AddressOf(trace),
      {{"metadata",
        {{"resourceVersion", trace.metadata.resource_version}, {"finalizers", finalizers}}}});
  if (!written) return std::unexpected(written.error());
  NoteWrite(trace, *written);
  return {};
}

Status Reconciler::ApplySession(const api::Trace& trace, const api::TraceSession& session) {
  const auto applied = client_.Apply({.resource = kube::kTraceSessions,
                                      .name_space = session.metadata.name_space,
                                      .name = session.metadata.name},
                                     SessionBody(trace, session));
  if (!applied) return std::unexpected(applied.error());
  return {};
}

// Gone already, or another one of that name: all the same.
Status Reconciler::RemoveSession(const api::TraceSession& session) {
  const kube::Address address = {.resource = kube::kTraceSessions,
                                 .name_space = session.metadata.name_space,
                                 .name = session.metadata.name};
  const auto is_done = [](ErrorCode code) {
    return code == ErrorCode::kNotFound || code == ErrorCode::kConflict;
  };
  if (HasFinalizer(session.metadata)) {
    std::vector<std::string> finalizers = session.metadata.finalizers;
    std::erase(finalizers, kFinalizer);
    const auto released = client_.MergePatch(
        address, {{"metadata", {{"uid", session.metadata.uid}, {"finalizers", finalizers}}}});
    if (!released && is_done(released.error().code)) return {};
    if (!released) return std::unexpected(released.error());
  }
  const Status removed = client_.Delete(address, session.metadata.uid);
  return !removed && is_done(removed.error().code) ? Status() : removed;
}

Status Reconciler::ReleaseOrphans(const std::vector<api::TraceSession>& sessions,
                                  const std::string& trace_uid) {
  for (const api::TraceSession& session : sessions) {
    const bool is_going =
        !session.metadata.deletion_timestamp.empty() && HasFinalizer(session.metadata);
    if (is_going && session.spec.trace_uid != trace_uid) WEFT_TRY(RemoveSession(session));
  }
  return {};
}

Status Reconciler::WriteStatus(Situation& situation, Plan& plan) {
  api::Trace& trace = situation.trace;
  if (plan.status == trace.status) return {};
  const ObjectKey key = {trace.metadata.name_space, trace.metadata.name};
  const auto last = written_.find(key);
  if (last != written_.end() && last->second.status &&
      !DiffersBeyondCounts(plan.status, trace.status)) {
    const kube::WallTime due = last->second.at + kCountsInterval;
    if (situation.now < due) {
      plan.again = plan.again ? std::min(*plan.again, due) : due;
      return {};
    }
  }
  Json body = Json::parse(api::StatusToJson(plan.status), nullptr, false);
  if (body.contains("status")) body["status"].erase("storage");  // the relay's
  body["apiVersion"] = api::kApiVersion;
  body["kind"] = KindOf(trace);
  body["metadata"] = {{"name", trace.metadata.name},
                      {"uid", trace.metadata.uid},
                      {"resourceVersion", trace.metadata.resource_version}};
  if (!IsClusterWide(trace)) body["metadata"]["namespace"] = trace.metadata.name_space;
  const auto written = client_.Apply(AddressOf(trace, "status"), body);
  if (!written) return std::unexpected(written.error());
  Written& noted = NoteWrite(trace, *written);
  noted.status = plan.status;
  noted.at = situation.now;
  return {};
}

Status Reconciler::Announce(const api::Trace& trace, const Plan& plan, kube::WallTime now) {
  for (const Note& note : plan.notes) {
    const kube::EventNote event{.regarding = {.api_version = std::string(api::kApiVersion),
                                              .kind = KindOf(trace),
                                              .name_space = trace.metadata.name_space,
                                              .name = trace.metadata.name,
                                              .uid = trace.metadata.uid},
                                .warning = note.warning,
                                .reason = note.reason,
                                .action = "Reconcile",
                                .note = note.text,
                                .controller = "weft.dev/controller",
                                .instance = instance_};
    WEFT_TRY(PostEvent(client_, event, now, random_()));
  }
  return {};
}

// Asks the API server itself: what an informer shows may be older than the last eviction, and an
// eviction of a pod that is being deleted already succeeds once more.
Result<bool> Reconciler::EvictIfStillThere(const std::string& name_space, const std::string& name) {
  const kube::Address address{.resource = kube::kPods, .name_space = name_space, .name = name};
  const Result<Json> pod = client_.Get(address);
  if (!pod && pod.error().code == ErrorCode::kNotFound) return false;
  if (!pod) return std::unexpected(pod.error());
  const PodFacts facts = ReadPod(*pod);
  if (facts.is_ending || facts.has_library) return false;
  kube::Address eviction = address;
  eviction.subresource = "eviction";
  const Json preconditions = {{"uid", kube::TextAt(*pod, {"metadata", "uid"})}};
  WEFT_TRY(client_.Create(eviction, {{"apiVersion", "policy/v1"},
                                     {"kind", "Eviction"},
                                     {"metadata", {{"name", name}, {"namespace", name_space}}},
                                     {"deleteOptions", {{"preconditions", preconditions}}}}));
  return true;
}

// A PodDisruptionBudget may refuse it for now.
Status Reconciler::Evict(const Situation& situation, Plan& plan) {
  for (const std::string& name : plan.evict) {
    const Result<bool> evicted = EvictIfStillThere(situation.trace.metadata.name_space, name);
    const kube::WallTime later = situation.now + kEvictAgain;
    plan.again = plan.again ? std::min(*plan.again, later) : later;
    if (evicted && *evicted)
      plan.notes.push_back({.reason = "PodEvicted",
                            .text = "evicted pod " + name +
                                    ", which was made before the library was there, so that it is "
                                    "made anew (" +
                                    std::string(kube::kRestartMissed) + ")"});
    else if (!evicted && evicted.error().code == ErrorCode::kPermission)
      return std::unexpected(evicted.error());
  }
  return {};
}

Status Reconciler::Do(Situation& situation, Plan& plan) {
  api::Trace& trace = situation.trace;
  if (plan.add_finalizer) WEFT_TRY(WriteFinalizers(trace, true));
  for (const api::TraceSession& session : plan.apply) WEFT_TRY(ApplySession(trace, session));
  WEFT_TRY(WriteStatus(situation, plan));
  for (const api::TraceSession& session : situation.sessions) {
    if (std::ranges::find(plan.remove, session.metadata.name) != plan.remove.end())
      WEFT_TRY(RemoveSession(session));
  }
  // A refused eviction is reported last: what else the plan says does not wait for it.
  const Status evicted = Evict(situation, plan);
  WEFT_TRY(Announce(trace, plan, situation.now));
  if (plan.remove_finalizer) WEFT_TRY(WriteFinalizers(trace, false));
  return evicted;
}

Result<std::optional<milliseconds>> Reconciler::Reconcile(const ObjectKey& key) {
  const std::optional<Json> object = cache_.Trace(key);
  const std::vector<api::TraceSession> sessions = cache_.Sessions(key);
  if (!object) {
    written_.erase(key);
    WEFT_TRY(ReleaseOrphans(sessions, ""));
    return std::nullopt;
  }
  Situation situation = Look(key, *object, sessions);
  const std::string& uid = situation.trace.metadata.uid;
  if (uid.empty()) return Fail(ErrorCode::kCorrupt, "a Trace without a uid: " + key.name);
  WEFT_TRY(ReleaseOrphans(sessions, uid));
  Plan plan = MakePlan(situation);
  const Status done = Do(situation, plan);
  // It went away meanwhile: its DELETED event is on its way.
  if (!done && done.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!done) return std::unexpected(done.error());
  if (!plan.again) return std::nullopt;
  const auto wait = std::chrono::ceil<milliseconds>(*plan.again - situation.now);
  return std::max(wait, milliseconds(1));
}

}  // namespace weft::controller
