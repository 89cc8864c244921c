// SPDX-License-Identifier: Apache-2.0
// See live_view.h.
#include "cli/kubectl/live_view.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "cli/view_json.h"
#include "lib/base/open_file_limit.h"

namespace weft::kubectl {
namespace {

// While more than this waits to be printed, only streams of which nothing is left are fetched.
constexpr std::uint64_t kMostWaiting = std::uint64_t{64} << 20;
constexpr std::size_t kFlushBytes = 64 * 1024;
constexpr std::size_t kShownProblems = 20;

}  // namespace

LiveView::LiveView(const Connection& connection, TraceView& view, const std::string& folder,
                   LiveFormat format)
    : tail_(connection, view, folder, *this),
      json_(format.json),
      printer_(cli::IsColorTerminal(stdout), format.indent) {
  RaiseOpenFileLimit();  // packets that wait are open files
}

void LiveView::SetMetadata(const std::string& folder, std::string_view text) {
  follower_.SetMetadata(folder, text);
}

Status LiveView::AddPackets(const std::string& folder, const std::string& stream,
                            std::string_view packets) {
  return follower_.Add(folder, stream, packets);
}

void LiveView::SetSafe(const std::string& folder, const std::string& stream,
                       std::uint64_t time_ns) {
  follower_.SetSafe(folder, stream, time_ns);
}

void LiveView::SetEnded(const std::string& folder, const std::string& stream) {
  follower_.SetEnded(folder, stream);
}

bool LiveView::IsFull() { return follower_.waiting_bytes() > kMostWaiting; }

bool LiveView::WaitsFor(const std::string& folder, const std::string& stream) {
  return follower_.IsIdle(folder, stream);
}

Status LiveView::Flush(std::string& text) {
  const bool ok =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  text.clear();
  if (ok) return {};
  if (errno == EPIPE) return Fail(ErrorCode::kClosed, "the reader of the output is gone");
  return FailErrno("the output cannot be written");
}

Result<bool> LiveView::Print(bool all) {
  std::string text;
  while (ctf::StreamReader* stream = follower_.Next(all)) {
    const bool is_event = stream->item().kind == ctf::ItemKind::kEvent;
    if (is_event) ++events_;
    if (json_) {
      cli::AppendJson(*stream, text);
    } else if (is_event) {
      printer_.Event(*stream, text);
    } else {
      WEFT_TRY(Flush(text));
      std::fprintf(stderr, "%s\n", cli::TextPrinter::Discarded(*stream).c_str());
    }
    if (text.size() < kFlushBytes) continue;
    WEFT_TRY(Flush(text));
    if (stop_ && stop_()) return true;
  }
  WEFT_TRY(Flush(text));
  ShowProblems();
  return false;
}

void LiveView::ShowProblems() {
  for (const std::string& problem : follower_.TakeProblems()) {
    if (problems_++ >= kShownProblems) continue;
    std::string line;
    cli::AppendName(line, problem);
    std::fprintf(stderr, "kubectl weft: %s\n", line.c_str());
  }
}

Status LiveView::Round() {
  // The next round fetches and prints what is left.
  WEFT_TRY(tail_.Fetch(false));
  WEFT_TRY(Print(false));
  return {};
}

Result<bool> LiveView::Finish() {
  WEFT_ASSIGN(const bool more, tail_.Fetch(true));
  WEFT_ASSIGN(const bool stopped, Print(!more));
  return more || stopped;
}

}  // namespace weft::kubectl
