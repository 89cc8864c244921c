// SPDX-License-Identifier: Apache-2.0
// Shows the events of one Trace as the relay gets them: asks the relay in rounds for what is new,
// and prints it in the order of its time. Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_LIVE_VIEW_H_
#define WEFT_CLI_KUBECTL_LIVE_VIEW_H_

#include <cstdio>
#include <map>
#include <string>

#include "cli/kubectl/follower.h"
#include "cli/kubectl/interrupts.h"
#include "cli/kubectl/relay_client.h"
#include "cli/view_text.h"
#include "lib/base/result.h"

namespace weft::kubectl {

// The time between two rounds, and how long an event waits for earlier ones of other streams.
inline constexpr std::chrono::milliseconds kRound{100};
inline constexpr std::chrono::milliseconds kWindow{100};

class LiveView {
 public:
  // All references outlive the object.
  LiveView(const Connection& connection, TraceView& view, const std::string& folder, bool json);

  // Fetches what is new, and prints what is due. kClosed: the reader of the output is gone.
  Status Round();

  // Fetches and prints the rest: the Trace is over.
  Status Finish();

  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t late() const { return follower_.late(); }

 private:
  // Whether the relay has more than was fetched.
  Result<bool> Fetch();
  Result<bool> FetchStream(const RelayFile& file);
  Status FetchMetadata(const RelayFile& file);
  Status Print(bool all);
  Status Flush(std::string& text);
  void ShowProblems();

  RelayClient relay_;
  Follower follower_{kWindow};
  const bool json_;
  cli::TextPrinter printer_;
  std::map<std::string, std::uint64_t> fetched_;  // bytes, by path
  std::uint64_t events_ = 0;
  std::size_t problems_ = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LIVE_VIEW_H_
