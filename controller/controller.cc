// SPDX-License-Identifier: Apache-2.0
// The controller's loop.
#include "controller/controller.h"

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
  }
  return "";
}

}  // namespace

Controller::Controller(kube::Client& client, const Options& options, metrics::Registry& metrics,
                       std::function<void(const Error&)> on_error)
    : client_(client),
      world_(queue_),
      reconciler_(client, world_, options.relay, options.name_space, options.instance),
      delivery_(client, world_, options.library, options.name_space),
      certificates_(client, {.name_space = options.name_space}),
      on_error_(std::move(on_error)),
      metrics_(metrics),
      random_(std::random_device{}()),
      turned_(std::chrono::steady_clock::now()) {}

Result<std::optional<std::chrono::milliseconds>> Controller::Do(const Work& work) {
  switch (work.kind) {
    case WorkKind::kTrace:
      return reconciler_.Reconcile(work.key);
    case WorkKind::kNamespace:
      WEFT_TRY(delivery_.Reconcile(work.key.name));
      return std::nullopt;
    case WorkKind::kCertificates:
      WEFT_TRY(certificates_.Reconcile());
      return kCheckInterval;
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
  for (const Json& trace : world_.Traces()) {
    const std::string phase = kube::TextAt(trace, {"status", "phase"});
    ++phases[phase.empty() ? "Pending" : phase];
  }
  for (const auto& [phase, count] : phases)
    metrics_.Set(metrics::Id::kControllerTraces, {phase}, count);
}

void Controller::Run(const std::stop_token& stop) {
  const auto informers = Feed(world_, client_, on_error_);
  queue_.Add({.kind = WorkKind::kCertificates});
  constexpr std::chrono::milliseconds kUntilComplete{50};
  while (!stop.stop_requested()) {
    turned_ = std::chrono::steady_clock::now();
    const std::optional<Work> work = queue_.Take(stop, kTurn);
    CountTraces();
    if (!work) continue;
    // Certificates need to know nothing; all else must know everything.
    if (work->kind != WorkKind::kCertificates && !world_.is_complete()) {
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
  return world_.is_complete() ? ""
                              : "the first lists of the cluster's objects are not complete yet";
}

}  // namespace weft::controller
