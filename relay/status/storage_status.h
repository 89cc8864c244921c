// SPDX-License-Identifier: Apache-2.0
// Writes status.storage of Traces: how many of their events the relay has removed, and what it has
// of them. A thread of its own, so that a slow API server holds up no packet.
#ifndef WEFT_RELAY_STATUS_STORAGE_STATUS_H_
#define WEFT_RELAY_STATUS_STORAGE_STATUS_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "lib/kube/client.h"
#include "relay/ingest/retention.h"

namespace weft::relay_status {

// Between two rounds; each writes the Traces of which something was removed since.
inline constexpr std::chrono::seconds kReportEvery{10};

class StorageStatus {
 public:
  using Log = std::function<void(const std::string&)>;

  // All references outlive it. `log` gets lines from its thread.
  StorageStatus(kube::Client& client, ingest::Retention& retention, Log log,
                std::chrono::milliseconds every = kReportEvery);
  // Ends after the call that is under way.
  ~StorageStatus() = default;
  StorageStatus(const StorageStatus&) = delete;
  StorageStatus& operator=(const StorageStatus&) = delete;

 private:
  void Run(const std::stop_token& stop);
  // False: it may succeed later.
  bool Report(const ingest::Retention::Removed& removed);

  kube::Client& client_;
  ingest::Retention& retention_;
  const Log log_;
  const std::chrono::milliseconds every_;
  bool has_failed_ = false;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weft::relay_status

#endif  // WEFT_RELAY_STATUS_STORAGE_STATUS_H_
