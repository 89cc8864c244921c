// SPDX-License-Identifier: Apache-2.0
// Passes pods and TraceSessions of this node from the API server's watches to the agent's loop.
// The watches have threads of their own; their changes wait in one queue, and an eventfd wakes the
// loop.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_FEED_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_FEED_H_

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "lib/api/session.h"
#include "lib/base/unique_fd.h"
#include "lib/ipc/loop.h"
#include "lib/kube/client.h"
#include "lib/kube/informer.h"
#include "node-agent/agent/cluster/image_preload.h"
#include "node-agent/agent/cluster/pod.h"

namespace weft::agent {

// All that there are: what is not among them is gone.
struct PodsListed {
  std::vector<PodFacts> pods;
};
struct PodSeen {
  PodFacts pod;
};
struct PodGone {
  std::string uid;
};
struct OrdersListed {
  std::vector<api::TraceSession> orders;
};
struct OrderSeen {
  api::TraceSession order;
};
struct OrderGone {
  std::string uid;
};
struct WatchFailed {
  std::string why;  // it is tried again
};
using News =
    std::variant<PodsListed, PodSeen, PodGone, OrdersListed, OrderSeen, OrderGone, WatchFailed>;

class Feed {
 public:
  using Handler = std::function<void(News&&)>;

  // `client` outlives this. The handler is called in the loop.
  static Result<std::unique_ptr<Feed>> Start(kube::Client& client, const std::string& node,
                                             ipc::Loop& loop, Handler handler);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

 private:
  Feed(ipc::Loop& loop, UniqueFd event, Handler handler)
      : loop_(loop), event_(std::move(event)), handler_(std::move(handler)) {}
  void Watch(kube::Client& client, const std::string& node);
  void Put(News news);
  void TakeAll();

  ipc::Loop& loop_;
  const UniqueFd event_;
  const Handler handler_;
  std::mutex mutex_;
  std::deque<News> queue_;
  ImagePreloads images_{OpenRootOfNode()};  // of the thread of pods_
  // Last: their threads use the others.
  std::unique_ptr<kube::Informer> pods_, orders_;
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_FEED_H_
