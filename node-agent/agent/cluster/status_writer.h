// SPDX-License-Identifier: Apache-2.0
// Writes the statuses of TraceSessions to the API server, on a thread of its own: the agent's loop
// never waits for the network.
//
// Invariants:
//   1. For each session only the newest status that is not written yet is kept.
//   2. The last status of a session is tried until it is written, or the session is gone, or the
//      API server says that it is invalid.
//   3. Sessions take turns: one whose status cannot be written keeps no other from being written.
// Thread-safety: Put from any thread.
#ifndef WEFT_NODE_AGENT_AGENT_CLUSTER_STATUS_WRITER_H_
#define WEFT_NODE_AGENT_AGENT_CLUSTER_STATUS_WRITER_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "lib/api/session.h"
#include "lib/kube/client.h"

namespace weft::agent {

class StatusWriter {
 public:
  // `client` outlives this.
  explicit StatusWriter(kube::Client& client)
      : client_(client), thread_([this](const std::stop_token& stop) { Run(stop); }) {}

  // `session`: names it, by uid too, so that another one of that name is left alone.
  void Put(const api::Metadata& session, const api::SessionStatus& status);

 private:
  struct Write {
    kube::Address address;
    kube::Json body;
  };
  void Run(const std::stop_token& stop);
  // False: to be tried again.
  bool TryOnce(const Write& write);
  // Takes what is to be written after the session with that uid.
  std::map<std::string, Write>::node_type TakeNextAfter(const std::string& uid);

  kube::Client& client_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::map<std::string, Write> waiting_;  // by uid
  std::jthread thread_;                   // last: it uses the others
};

}  // namespace weft::agent

#endif  // WEFT_NODE_AGENT_AGENT_CLUSTER_STATUS_WRITER_H_
