// SPDX-License-Identifier: Apache-2.0
// Shows the events of one Trace as the relay gets them: prints them in the order of their time.
// Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_LIVE_VIEW_H_
#define WEFT_CLI_KUBECTL_LIVE_VIEW_H_

#include <cstdio>
#include <string>

#include "cli/kubectl/follow.h"
#include "cli/kubectl/follower.h"
#include "cli/kubectl/live_format.h"
#include "cli/kubectl/relay_tail.h"
#include "cli/view_text.h"
#include "lib/base/result.h"

namespace weft::kubectl {

class LiveView : public Followed, TailSink {
 public:
  // All references outlive the object.
  LiveView(const Connection& connection, TraceView& view, const std::string& folder,
           LiveFormat format);

  // Fetches what is new, and prints what is due. kClosed: the reader of the output is gone.
  Status Round() override;
  // Fetches and prints the rest: the Trace is over.
  Status Finish() override;
  [[nodiscard]] std::chrono::milliseconds pause() const override { return tail_.pause(); }

  [[nodiscard]] std::uint64_t events() const { return events_; }
  [[nodiscard]] std::uint64_t late() const { return follower_.late(); }

 private:
  void SetMetadata(const std::string& folder, std::string_view text) override;
  Status AddPackets(const std::string& folder, const std::string& stream,
                    std::string_view packets) override;
  void SetSafe(const std::string& folder, const std::string& stream,
               std::uint64_t time_ns) override;
  void SetEnded(const std::string& folder, const std::string& stream) override;
  bool IsFull() override;
  Status Print(bool all);
  Status Flush(std::string& text);
  void ShowProblems();

  RelayTail tail_;
  Follower follower_;
  const bool json_;
  cli::TextPrinter printer_;
  std::uint64_t events_ = 0;
  std::size_t problems_ = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LIVE_VIEW_H_
