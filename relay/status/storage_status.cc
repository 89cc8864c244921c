// SPDX-License-Identifier: Apache-2.0
// See storage_status.h.
#include "relay/status/storage_status.h"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace weft::relay_status {

StorageStatus::StorageStatus(kube::Client& client, ingest::Retention& retention, Log log,
                             std::chrono::milliseconds every)
    : client_(client),
      retention_(retention),
      log_(std::move(log)),
      every_(every),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

void StorageStatus::Run(const std::stop_token& stop) {
  std::map<std::string, ingest::Retention::Removed> due;  // by the Trace's folder
  std::mutex mutex;
  std::condition_variable_any ended;
  while (!stop.stop_requested()) {
    for (auto& removed : retention_.TakeRemoved()) due[removed.folder] = removed;
    for (auto at = due.begin(); at != due.end() && !stop.stop_requested();) {
      at = Report(at->second) ? due.erase(at) : std::next(at);
    }
    std::unique_lock lock(mutex);
    ended.wait_for(lock, stop, every_, [] { return false; });
  }
}

bool StorageStatus::Report(const ingest::Retention::Removed& removed) {
  const kube::Address address{.resource = kube::kTraces,
                              .name_space = removed.name_space,
                              .name = removed.trace,
                              .subresource = "status"};
  const kube::Json body = {
      {"apiVersion", "weft.dev/v1alpha1"},
      {"kind", "Trace"},
      {"metadata",
       {{"name", removed.trace}, {"namespace", removed.name_space}, {"uid", removed.uid}}},
      {"status",
       {{"storage", {{"removedEvents", removed.events}, {"keptBytes", removed.kept_bytes}}}}}};
  const auto written = client_.Apply(address, body);
  // Deleted, made again under its name, or a ClusterTrace, which is no Trace of this namespace.
  const bool is_gone = !written && (written.error().code == ErrorCode::kNotFound ||
                                    written.error().code == ErrorCode::kConflict);
  if (written || is_gone) {
    has_failed_ = false;
    return true;
  }
  if (!std::exchange(has_failed_, true)) {
    log_("the status of Traces cannot be written, trying again: " + written.error().message);
  }
  return false;
}

}  // namespace weft::relay_status
