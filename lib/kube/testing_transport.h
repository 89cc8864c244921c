// SPDX-License-Identifier: Apache-2.0
// An API server for tests: a function answers requests, and the test puts events into watches. It
// uses no socket, so that it runs with every sanitizer (client_test.cc has the real one).
// Thread-safety: all functions, except the answering function, which is called with the lock
// held.
#ifndef WEFT_LIB_KUBE_TESTING_TRANSPORT_H_
#define WEFT_LIB_KUBE_TESTING_TRANSPORT_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lib/kube/json.h"
#include "lib/kube/transport.h"

namespace weft::kube::testing {

inline HttpReply Reply(int status, const Json& body) {
  return {.status = status, .body = body.dump()};
}

class TestTransport final : public Transport {
 public:
  using Answer = std::function<HttpReply(const HttpRequest&)>;
  explicit TestTransport(Answer answer) : answer_(std::move(answer)) {}

  HttpReply Send(const HttpRequest& request, const std::stop_token&) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    return answer_(request);
  }

  // A watch lasts until it is stopped.
  HttpReply Stream(const HttpRequest& request, const std::stop_token& stop,
                   const BytesHandler& on_bytes) override {
    const std::string collection = request.target.substr(0, request.target.find('?'));
    std::size_t said = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, stop, [&] { return events_[collection].size() > said; });
      if (stop.stop_requested()) return {.failure = TransportFailure::kCancelled};
      const std::string line = events_[collection][said++];
      lock.unlock();
      if (!on_bytes(line)) return {.failure = TransportFailure::kCancelled};
      lock.lock();
    }
  }

  // To who watches this collection, "/api/v1/pods", now or later.
  void Put(const std::string& collection, const char* type, const Json& object) {
    const std::lock_guard lock(mutex_);
    events_[collection].push_back(Json({{"type", type}, {"object", object}}).dump() + "\n");
    changed_.notify_all();
  }

  std::vector<HttpRequest> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  Answer answer_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<HttpRequest> requests_;
  std::map<std::string, std::vector<std::string>> events_;  // by collection
};

}  // namespace weft::kube::testing

#endif  // WEFT_LIB_KUBE_TESTING_TRANSPORT_H_
