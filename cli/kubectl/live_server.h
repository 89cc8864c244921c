// SPDX-License-Identifier: Apache-2.0
// Serves a LiveFeed to viewers of lttng-live on this machine: binds 127.0.0.1 only. Each connection
// has a live::Viewer, and reads at its own pace; none waits for another one.
// Thread-safety: its functions are for one thread; it has a thread of its own.
#ifndef WEFT_CLI_KUBECTL_LIVE_SERVER_H_
#define WEFT_CLI_KUBECTL_LIVE_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/kubectl/live_feed.h"
#include "lib/base/result.h"

namespace weft::kubectl {

class LiveServer {
 public:
  // `port` 0: any. `feed` outlives it. `log` gets lines without an end, from the server's thread.
  // kInvalid: the port is taken.
  static Result<std::unique_ptr<LiveServer>> Start(std::uint16_t port, LiveFeed& feed,
                                                   std::function<void(const std::string&)> log);
  // Ends connections and the thread.
  virtual ~LiveServer() = default;

  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LIVE_SERVER_H_
