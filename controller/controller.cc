// SPDX-License-Identifier: Apache-2.0
// The controller's loop.
#include "controller/controller.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace weft::controller {
namespace {

const char* NameOf(WorkKind kind) {
  switch (kind) {
    case WorkKind::kTrace:
      return "trace";
    case WorkKind::kNamespace:
      return "namespace";
    case WorkKind::kCertificates:
      return "certificates";
    case WorkKind::kDefinitions:
      return "definitions";
    case WorkKind::kViews:
      return "views";
  }
  return "";
}

}  // namespace

Controller::Controller(kube::Client& client, const Options& options, metrics::Registry& metrics,
                       std::function<void(const Error&)> on_error)
    : client_(client),
      cache_(queue_),
      reconciler_(client, cache_, options.relay, options.name_space, options.instance,
                  options.uninstalling, options.served_namespaces, options.traces_per_namespace),
      delivery_(client, cache_, options.library, options.name_space, options.instance),
      certificates_(client, {.name_space = options.name_space}),
      definitions_(client),
      views_(client),
      uninstalling_(options.uninstalling),
      leads_(options.leads),
      on_error_(std::move(on_error)),
      metrics_(metrics),
      random_(std::random_device{}()),
      turned_(std::chrono::steady_clock::now()) {}

Result<std::optional<std::chrono::milliseconds>> Controller::Do(const Work& work) {
  switch (work.kind) {
    case WorkKind::kTrace:
      return reconciler_.Reconcile(work.key);
    case WorkKind::kNamespace:
      if (uninstalling_) return std::nullopt;
      WEFT_TRY(delivery_.Reconcile(work.key.name));
      return std::nullopt;
    case WorkKind::kCertificates:
      return certificates_.Reconcile();
    case WorkKind::kDefinitions:
      return definitions_.Reconcile();
    case WorkKind::kViews:
      return views_.Reconcile();
  }
  return std::nullopt;
}

void Controller::DoAndCount(const Work& work) {
  const auto again = Do(work);
  metrics_.Add(metrics::Id::kControllerWork, {NameOf(work.kind), again ? "ok" : "error"});
  if (again) {
    failing_.erase(work);
    if (*again) queue_.Add(work, **again);
    return;
  }
  // A conflict is answered by the informer's next event, and is no news.
  if (again.error().code != ErrorCode::kConflict) on_error_(again.error());
  queue_.Add(work, failing_[work].Next(random_()));
}

void Controller::CountTraces() {
  std::map<std::string, int> phases;
  for (const char* phase : {"Pending", "Recording", "Paused", "Draining", "Completed", "Failed"})
    phases[phase] = 0;
  for (const auto& [phase, count] : cache_.Phases())
    phases[phase.empty() ? "Pending" : phase] += count;
  for (const auto& [phase, count] : phases)
    metrics_.Set(metrics::Id::kControllerTraces, {phase}, count);
}

// An older definition makes this replica not ready, too.
void Controller::StandBy(const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kLook{100};
  constexpr std::chrono::milliseconds kAfterError{5000};
  auto look_at_definitions = std::chrono::steady_clock::time_point::min();
  while (!stop.stop_requested() && !leads_()) {
    turned_ = std::chrono::steady_clock::now();
    if (turned_.load() >= look_at_definitions) {
      const auto again = definitions_.Reconcile();
      if (!again) on_error_(again.error());
      look_at_definitions = turned_.load() + again.value_or(kAfterError);
    }
    std::this_thread::sleep_for(kLook);
  }
}

void Controller::Run(const std::stop_token& stop) {
  const auto informers = Feed(cache_, client_, on_error_);
  StandBy(stop);
  if (!uninstalling_) {
    queue_.Add({.kind = WorkKind::kCertificates});
    queue_.Add({.kind = WorkKind::kDefinitions});
    queue_.Add({.kind = WorkKind::kViews});
  }
  constexpr std::chrono::milliseconds kUntilComplete{50};
  while (!stop.stop_requested() && leads_()) {
    turned_ = std::chrono::steady_clock::now();
    const std::optional<Work> work = queue_.Take(stop, kTurn);
    CountTraces();
    if (!work) continue;
    // The others need no lists.
    if ((work->kind == WorkKind::kTrace || work->kind == WorkKind::kNamespace) &&
        !cache_.is_complete()) {
      queue_.Add(*work, kUntilComplete);
      continue;
    }
    DoAndCount(*work);
  }
}

std::string Controller::Stuck() const {
  const auto since = std::chrono::steady_clock::now() - turned_.load();
  return since > kStuck ? "the worker thread has not finished a pass for too long" : "";
}

std::string Controller::NotReady() const {
  if (std::string problem = definitions_.Problem(); !problem.empty()) return problem;
  return cache_.is_complete() ? ""
                              : "the first lists of the cluster's objects are not complete yet";
}

std::optional<std::vector<std::string>> Controller::Held() const {
  if (!cache_.is_complete()) return std::nullopt;
  std::vector<std::string> held;
  for (const Json& trace : cache_.Traces()) {
    const Json* finalizers = kube::At(trace, {"metadata", "finalizers"});
    const auto is_ours = [](const Json& finalizer) { return finalizer == kFinalizer; };
    if (finalizers == nullptr || std::none_of(finalizers->begin(), finalizers->end(), is_ours))
      continue;
    const ObjectKey key = KeyOf(trace);
    held.push_back(key.name_space.empty() ? key.name : key.name_space + "/" + key.name);
  }
  return held;
}

}  // namespace weft::controller
