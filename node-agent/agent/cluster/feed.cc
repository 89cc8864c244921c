// SPDX-License-Identifier: Apache-2.0
// See feed.h.
#include "node-agent/agent/cluster/feed.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace weft::agent {
namespace {

using kube::Json;

std::optional<api::TraceSession> ReadOrder(const Json& object, const std::string& node) {
  // An object that cannot be read was not made by weft's controller: it is no session.
  auto order = api::ParseSession(object.dump(), {.refuse_unknown_fields = false});
  if (!order || order->spec.node_name != node) return std::nullopt;
  return std::move(*order);
}

}  // namespace

Result<std::unique_ptr<Feed>> Feed::Start(kube::Client& client, const std::string& node,
                                          ipc::Loop& loop, Handler handler) {
  UniqueFd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return FailErrno("eventfd");
  std::unique_ptr<Feed> feed(new Feed(loop, std::move(event), std::move(handler)));
  WEFT_TRY(loop.Watch(feed->event_.get(), [at = feed.get()] { at->TakeAll(); }));
  feed->Watch(client, node);
  return feed;
}

Feed::~Feed() {
  pods_.reset();
  orders_.reset();
  loop_.Unwatch(event_.get());
}

void Feed::Watch(kube::Client& client, const std::string& node) {
  const auto failed = [this](const Error& error) { Put(WatchFailed{error.message}); };
  const kube::Selection of_node{.fields = "spec.nodeName=" + node, .labels = ""};
  pods_ = std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kPods}, of_node,
      kube::InformerHandlers{.on_list =
                                 [this](const std::vector<Json>& list) {
                                   PodsListed news;
                                   for (const Json& pod : list) {
                                     news.pods.push_back(ReadPod(pod));
                                     images_.AddTo(news.pods.back());
                                   }
                                   Put(std::move(news));
                                 },
                             .on_event =
                                 [this](const kube::WatchEvent& event) {
                                   PodFacts pod = ReadPod(event.object);
                                   if (event.type == kube::WatchType::kDeleted)
                                     return Put(PodGone{pod.uid});
                                   images_.AddTo(pod);
                                   Put(PodSeen{std::move(pod)});
                                 },
                             .on_error = failed});
  orders_ = std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kTraceSessions}, of_node,
      kube::InformerHandlers{
          .on_list =
              [this, node](const std::vector<Json>& list) {
                OrdersListed news;
                for (const Json& object : list)
                  if (auto order = ReadOrder(object, node))
                    news.orders.push_back(std::move(*order));
                Put(std::move(news));
              },
          .on_event =
              [this, node](const kube::WatchEvent& event) {
                auto order = ReadOrder(event.object, node);
                if (event.type == kube::WatchType::kDeleted)
                  return Put(OrderGone{kube::TextAt(event.object, {"metadata", "uid"})});
                if (order) Put(OrderSeen{std::move(*order)});
              },
          .on_error = failed});
}

void Feed::Put(News news) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(news));
  const uint64_t one = 1;
  (void)!write(event_.get(), &one, sizeof(one));
}

void Feed::TakeAll() {
  uint64_t count = 0;
  (void)!read(event_.get(), &count, sizeof(count));
  std::deque<News> queue;
  {
    const std::lock_guard lock(mutex_);
    queue.swap(queue_);
  }
  for (News& news : queue) handler_(std::move(news));
}

}  // namespace weft::agent
