// SPDX-License-Identifier: Apache-2.0
// See lease.h.
#include "lib/kube/lease.h"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "lib/kube/json.h"
#include "lib/kube/time.h"

namespace weft::kube {

Address Lease::address() const {
  return {.resource = kLeases, .name_space = names_.name_space, .name = names_.name};
}

Result<Json> Lease::Patch(const Json& lease, const Json& spec) {
  return client_.MergePatch(
      address(),
      {{"metadata", {{"resourceVersion", TextAt(lease, {"metadata", "resourceVersion"})}}},
       {"spec", spec}});
}

Result<bool> Lease::Write(const Json& lease, const std::string& previous) {
  const std::string now = FormatTime(std::chrono::system_clock::now(), true);
  Json spec = {{"holderIdentity", names_.holder},
               {"leaseDurationSeconds", kLeaseDuration.count()},
               {"renewTime", now}};
  if (previous != names_.holder) {
    const Json* transitions = At(lease, {"spec", "leaseTransitions"});
    spec["acquireTime"] = now;
    spec["leaseTransitions"] =
        transitions != nullptr && transitions->is_number() ? transitions->get<int64_t>() + 1 : 0;
  }
  Result<Json> written =
      lease.empty() ? client_.Create({.resource = kLeases, .name_space = names_.name_space},
                                     {{"apiVersion", "coordination.k8s.io/v1"},
                                      {"kind", "Lease"},
                                      {"metadata", {{"name", names_.name}}},
                                      {"spec", std::move(spec)}})
                    : Patch(lease, spec);
  if (written) return true;
  // Another replica was faster.
  if (written.error().code == ErrorCode::kConflict) return false;
  return std::unexpected(written.error());
}

Result<bool> Lease::Take(Time now) {
  const Result<Json> lease = client_.Get(address());
  if (!lease && lease.error().code == ErrorCode::kNotFound) return Write(Json::object(), "");
  if (!lease) return std::unexpected(lease.error());
  const std::string version = TextAt(*lease, {"metadata", "resourceVersion"});
  if (version != seen_version_) {
    seen_version_ = version;
    seen_since_ = now;
  }
  const std::string holder = TextAt(*lease, {"spec", "holderIdentity"});
  const bool is_free = holder.empty() || holder == names_.holder;
  if (!is_free && now - seen_since_ < kLeaseDuration) return false;
  return Write(*lease, holder);
}

Status Lease::Release() {
  const Result<Json> lease = client_.Get(address());
  if (!lease) return std::unexpected(lease.error());
  if (TextAt(*lease, {"spec", "holderIdentity"}) != names_.holder) return {};
  const auto written = Patch(*lease, {{"holderIdentity", ""}});
  if (!written) return std::unexpected(written.error());
  return {};
}

Leadership::Leadership(Client& client, Lease::Names names,
                       std::function<void(const Error&)> on_error)
    : lease_(client, std::move(names)),
      on_error_(std::move(on_error)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Leadership::~Leadership() {
  thread_.request_stop();
  thread_.join();
  if (!leads()) return;
  if (const Status released = lease_.Release(); !released) on_error_(released.error());
}

bool Leadership::leads() const { return std::chrono::steady_clock::now() < until_.load(); }

void Leadership::Run(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    const Lease::Time now = std::chrono::steady_clock::now();
    const Result<bool> taken = lease_.Take(now);
    if (!taken)
      on_error_(taken.error());
    else if (*taken)
      until_ = now + kLeaseUse;
    stopped.wait_for(lock, stop, kLeaseRetry, [] { return false; });
  }
}

}  // namespace weft::kube
