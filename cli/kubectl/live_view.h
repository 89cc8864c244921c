// SPDX-License-Identifier: Apache-2.0
// Shows the events of one Trace as the relay gets them: prints them in the order of their time.
// Thread-safety: one thread per object.
#ifndef WEFT_CLI_KUBECTL_LIVE_VIEW_H_
#define WEFT_CLI_KUBECTL_LIVE_VIEW_H_

#include <cstdio>
#include <functional>
#include <string>
#include <utility>

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
  // Fetches and prints some of the rest: the Trace is over. Returns whether there is more, at the
  // relay or here, since `stop` ended the round.
  Result<bool> Finish() override;
  // `stop`: asked while a round prints; true ends the round. The next one goes on from there.
  void StopWhen(std::function<bool()> stop) { stop_ = std::move(stop); }
  [[nodiscard]] std::chrono::milliseconds pause() const override { return tail_.pause(); }
  void Look(const api::Trace& trace) override {
    if (on_look_) on_look_(trace);
  }
  void OnLook(std::function<void(const api::Trace&)> on_look) { on_look_ = std::move(on_look); }

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
  bool WaitsFor(const std::string& folder, const std::string& stream) override;
  // Prints what is due. Returns whether `stop` ended it before that.
  Result<bool> Print(bool all);
  Status Flush(std::string& text);
  void ShowProblems();

  RelayTail tail_;
  Follower follower_;
  std::function<bool()> stop_;
  std::function<void(const api::Trace&)> on_look_;
  const bool json_;
  cli::TextPrinter printer_;
  std::uint64_t events_ = 0;
  std::size_t problems_ = 0;
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LIVE_VIEW_H_
