// SPDX-License-Identifier: Apache-2.0
// Keeps a collection of objects up to date: lists it, then watches it, as long as the informer
// lives. A thread of its own calls the handlers one after the other.
//
// The handlers see every existing object. on_list passes all of them and replaces what was known;
// it is called at the start, and again when a watch expired. After a lost connection the watch goes
// on from the last version, without a handler call.
#ifndef WEFT_LIB_KUBE_INFORMER_H_
#define WEFT_LIB_KUBE_INFORMER_H_

#include <functional>
#include <stop_token>
#include <thread>
#include <vector>

#include "lib/base/result.h"
#include "lib/kube/client.h"

namespace weft::kube {

struct InformerHandlers {
  std::function<void(std::vector<Json>)> on_list;
  std::function<void(WatchEvent)> on_event;    // kAdded, kModified, kDeleted
  std::function<void(const Error&)> on_error;  // for a log; it tries again by itself
};

class Informer {
 public:
  // `client` outlives the informer.
  Informer(Client& client, Address collection, Selection selection, InformerHandlers handlers);
  // Ends a call that is under way, and waits for a handler that runs.
  ~Informer() = default;
  Informer(const Informer&) = delete;
  Informer& operator=(const Informer&) = delete;

 private:
  void Run(const std::stop_token& stop);
  Status ListAndWatch(const std::stop_token& stop, bool& progress);

  Client& client_;
  const Address collection_;
  const Selection selection_;
  const InformerHandlers handlers_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_INFORMER_H_
