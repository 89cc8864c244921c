// SPDX-License-Identifier: Apache-2.0
// `kubectl weft live`: shows the events of a Trace, from its first one on, until it ends; or serves
// them to viewers of lttng-live.
#include <cinttypes>
#include <cstdio>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/follow.h"
#include "cli/kubectl/live_feed.h"
#include "cli/kubectl/live_server.h"
#include "cli/kubectl/live_view.h"
#include "cli/kubectl/trace_objects.h"

namespace weft::kubectl {
namespace {

// Waits until the Trace's status names its folder at the relay. "": ^C, or it will not have any.
Result<std::string> WaitForFolder(const Connection& connection, const std::string& name,
                                  Interrupts& interrupts) {
  for (bool is_first = true;; is_first = false) {
    WEFT_ASSIGN(const api::Trace trace, GetTrace(connection, name));
    std::string folder = FolderAtRelay(trace);
    if (!folder.empty()) return folder;
    if (IsOver(trace.status.phase)) {
      std::string problem =
          "the Trace " + name + " ended and recorded nothing; kubectl weft status ";
      problem.append(name).append(" shows why");
      return Fail(ErrorCode::kNotFound, problem);
    }
    if (is_first) std::fprintf(stderr, "waiting until a relay has the Trace\n");
    if (interrupts.Sleep(std::chrono::milliseconds(500))) return "";
  }
}

// Feeds the viewers.
class Serving : public Followed {
 public:
  Serving(const Connection& connection, TraceView& view, const std::string& folder, LiveFeed& feed)
      : feed_(feed), tail_(connection, view, folder, feed) {}

  Status Round() override {
    WEFT_ASSIGN(const bool more, tail_.Fetch(false));
    (void)more;  // the next round gets it
    TellProblems();
    return {};
  }

  Result<bool> Finish() override {
    WEFT_ASSIGN(const bool more, tail_.Fetch(true));
    TellProblems();
    if (!more) feed_.End();
    return more;
  }

  [[nodiscard]] std::chrono::milliseconds pause() const override { return tail_.pause(); }

 private:
  void TellProblems() {
    for (const std::string& problem : feed_.TakeProblems())
      std::fprintf(stderr, "kubectl weft: %s\n", Printable(problem).c_str());
  }

  LiveFeed& feed_;
  RelayTail tail_;
};

int Serve(const Connection& connection, const LiveCommand& command, const std::string& folder,
          Interrupts& interrupts) {
  auto spool = Spool::Make();
  if (!spool) return Complain(spool.error());
  LiveFeed feed(std::move(*spool), connection.name_space, command.trace);
  const auto server = LiveServer::Start(command.port, feed, [](const std::string& line) {
    std::fprintf(stderr, "kubectl weft: %s\n", line.c_str());
  });
  if (!server) return Complain(server.error());
  // Exactly what can be pasted; everything else goes to standard error.
  std::printf("babeltrace2 --input-format=lttng-live net://localhost:%d/host/%s/%s\n",
              (*server)->port(), connection.name_space.c_str(), command.trace.c_str());
  std::fflush(stdout);
  std::fprintf(stderr, "serving on this machine, from the first event on; ^C ends it\n");
  TraceView view(connection, command.trace);
  Serving serving(connection, view, folder, feed);
  const auto end = Follow(connection, command.trace, serving, interrupts, true);
  if (!end) return Complain(end.error());
  if (*end == FollowEnd::kInterrupted) return cli::kExitOk;
  std::fprintf(stderr, "the Trace has ended; viewers still get all of it; ^C ends serving\n");
  while (!interrupts.Sleep(std::chrono::hours(1))) {
  }
  return cli::kExitOk;
}

}  // namespace

int Live(const Connection& connection, const LiveCommand& command, Interrupts& interrupts) {
  const auto folder = WaitForFolder(connection, command.trace, interrupts);
  if (!folder) return Complain(folder.error());
  if (folder->empty()) return cli::kExitOk;
  if (command.serve) return Serve(connection, command, *folder, interrupts);
  TraceView view(connection, command.trace);
  LiveView live(connection, view, *folder, command.format);
  live.StopWhen([&interrupts] { return interrupts.came(); });
  const auto end = Follow(connection, command.trace, live, interrupts, true);
  if (!end && end.error().code == ErrorCode::kClosed) return cli::kExitOk;  // a pipe's reader left
  if (!end) return Complain(end.error());
  if (live.late() > 0)
    std::fprintf(stderr, "%" PRIu64 " events came late and are not in the order of their time\n",
                 live.late());
  return cli::kExitOk;
}

}  // namespace weft::kubectl
