// SPDX-License-Identifier: Apache-2.0
// List and watch, for ever.
#include "lib/kube/informer.h"

#include <condition_variable>
#include <mutex>
#include <random>

#include "lib/kube/backoff.h"

namespace weft::kube {
namespace {

void Sleep(const std::stop_token& stop, std::chrono::milliseconds time) {
  std::mutex mutex;
  std::unique_lock<std::mutex> lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace

Informer::Informer(Client& client, Address collection, Selection selection,
                   InformerHandlers handlers)
    : client_(client),
      collection_(std::move(collection)),
      selection_(std::move(selection)),
      handlers_(std::move(handlers)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

// Ends with the watch's expiry (no error), or with an error. `progress`: the server answered.
Status Informer::ListAndWatch(const std::stop_token& stop, bool& progress) {
  WEFT_ASSIGN(ObjectList list, client_.List(collection_, selection_, stop));
  progress = true;
  std::string version = std::move(list.resource_version);
  handlers_.on_list(std::move(list.items));
  Backoff backoff;
  std::minstd_rand random(std::random_device{}());
  while (!stop.stop_requested()) {
    const Result<WatchEnd> end =
        client_.Watch(collection_, selection_, version, stop, handlers_.on_event);
    if (end && *end == WatchEnd::kExpired) return {};
    if (end) {
      backoff.Reset();
      continue;
    }
    if (stop.stop_requested()) return {};
    // What the server understood and refused, watching on will not mend.
    if (end.error().code == ErrorCode::kInvalid || end.error().code == ErrorCode::kPermission ||
        end.error().code == ErrorCode::kNotFound)
      return std::unexpected(end.error());
    handlers_.on_error(end.error());
    Sleep(stop, backoff.Next(random()));
  }
  return {};
}

void Informer::Run(const std::stop_token& stop) {
  Backoff backoff;
  std::minstd_rand random(std::random_device{}());
  while (!stop.stop_requested()) {
    bool progress = false;
    const Status status = ListAndWatch(stop, progress);
    if (stop.stop_requested()) return;
    if (progress) backoff.Reset();
    if (!status) handlers_.on_error(status.error());
    Sleep(stop, backoff.Next(random()));
  }
}

}  // namespace weft::kube
