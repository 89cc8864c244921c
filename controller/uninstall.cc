// SPDX-License-Identifier: Apache-2.0
// See uninstall.h.
#include "controller/uninstall.h"

#include <chrono>
#include <thread>

#include "controller/reconcile/plan.h"

namespace weft::controller {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPoll{100};
// A pod that is told to end gets 30 s.
constexpr std::chrono::seconds kStopLimit{60};
// The nodes' time, and that of the requests behind it.
constexpr std::chrono::seconds kReleaseLimit = kDrainLimit + std::chrono::seconds(30);

}  // namespace

Status StopController(kube::Client& client, const std::string& name_space) {
  const auto scaled = client.MergePatch({.resource = kube::kDeployments,
                                         .name_space = name_space,
                                         .name = "weft-controller",
                                         .subresource = "scale"},
                                        {{"spec", {{"replicas", 0}}}});
  if (!scaled && scaled.error().code != ErrorCode::kNotFound)
    return std::unexpected(scaled.error());
  for (const auto end = Clock::now() + kStopLimit; Clock::now() < end;
       std::this_thread::sleep_for(kPoll)) {
    const auto pods = client.List({.resource = kube::kPods, .name_space = name_space},
                                  {.labels = "app.kubernetes.io/name=weft,"
                                             "app.kubernetes.io/component=controller"});
    if (!pods) return std::unexpected(pods.error());
    if (pods->items.empty()) return {};
  }
  return Fail(ErrorCode::kTimeout,
              "the pods of the Deployment weft-controller did not end; delete them by hand");
}

Status WaitUntilReleased(const Controller& controller) {
  std::optional<std::vector<std::string>> held;
  for (const auto end = Clock::now() + kReleaseLimit; Clock::now() < end;
       std::this_thread::sleep_for(kPoll)) {
    held = controller.Held();
    if (held && held->empty()) return {};
  }
  if (!held) return Fail(ErrorCode::kTimeout, "the API server did not list weft's resources");
  return Fail(ErrorCode::kTimeout, "these Traces still have the finalizer " +
                                       std::string(kFinalizer) + ": " + Join(*held));
}

}  // namespace weft::controller
