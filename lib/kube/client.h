// SPDX-License-Identifier: Apache-2.0
// The Kubernetes API as weft uses it: objects are JSON, errors are Results, writes name their field
// manager. Calls block; several threads may call at the same time.
//
// Errors: kNotFound 404; kConflict 409 (exists already, or was changed meanwhile); kPermission 401,
// 403; kInvalid other 4xx; kLimit 429; kIo 5xx and network errors; kTimeout; kClosed: the stop
// token.
#ifndef WEFT_LIB_KUBE_CLIENT_H_
#define WEFT_LIB_KUBE_CLIENT_H_

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/kube/json.h"
#include "lib/kube/resource.h"
#include "lib/kube/time.h"
#include "lib/kube/transport.h"
#include "lib/kube/watch_decoder.h"

namespace weft::kube {

// How long the server keeps a watch; below kStreamIdleLimit, so that silence means a dead
// connection.
inline constexpr int kWatchSeconds = 50;
// Objects in a page of a list: bounds what the server holds in memory for one answer.
inline constexpr int kPageSize = 500;
// A list whose continuation expired (410) is begun again so often.
inline constexpr int kListTries = 3;

struct ObjectList {
  std::vector<Json> items;
  std::string resource_version;  // of the list, for a watch from there
};

enum class WatchEnd {
  kOver,     // the server ended it in time: watch on from the last version
  kExpired,  // 410: list again
};

class Client {
 public:
  Client(std::unique_ptr<Transport> transport, std::string field_manager)
      : transport_(std::move(transport)), manager_(std::move(field_manager)) {}

  Result<Json> Get(const Address& object);
  Result<ObjectList> List(const Address& collection, const Selection& selection = {},
                          const std::stop_token& stop = {});
  // Returns how many objects a collection has; reads at most one of them.
  // `limit`: for the API server to answer.
  Result<std::size_t> Count(const Address& collection,
                            std::chrono::seconds limit = kAnswerIdleLimit);
  // Events from `version` on, which is moved along with them. `on_event` gets no bookmarks and no
  // errors.
  Result<WatchEnd> Watch(const Address& collection, const Selection& selection,
                         std::string& version, const std::stop_token& stop,
                         const std::function<void(WatchEvent)>& on_event);

  Result<Json> Create(const Address& collection, const Json& object);
  // Server-side apply: makes the object, or makes its fields those of `object`, which belong to
  // this manager from then on. With metadata.uid it never makes one. Takes fields from other
  // managers.
  Result<Json> Apply(const Address& object, const Json& body);
  // RFC 7386. With metadata.resourceVersion: kConflict if it is another one now.
  Result<Json> MergePatch(const Address& object, const Json& body);
  // `uid` "": whichever object has that name.
  Status Delete(const Address& object, const std::string& uid);

  // Returns the API server's time, which its last answer told, to about a second. Times in objects
  // are judged by it: this machine's clock may be wrong. Without any answer: this machine's time.
  [[nodiscard]] WallTime ServerTime() const;

  // A request to what is not an object, such as the proxy of a Service.
  HttpReply Exchange(const HttpRequest& request, const std::stop_token& stop = {}) {
    return transport_->Send(request, stop);
  }

 private:
  struct KnownTime {
    WallTime server;
    std::chrono::steady_clock::time_point here;
  };

  Result<Json> Send(const HttpRequest& request, const std::stop_token& stop = {});
  // Sends to the API server itself, whose time the answer tells.
  HttpReply Ask(const HttpRequest& request, const std::stop_token& stop);

  std::unique_ptr<Transport> transport_;
  std::string manager_;
  mutable std::mutex mutex_;
  std::optional<KnownTime> time_;
};

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_CLIENT_H_
