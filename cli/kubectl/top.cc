// SPDX-License-Identifier: Apache-2.0
// `kubectl weft top`: what the relay receives of each Trace and pod, refreshed on a terminal.
#include "cli/kubectl/top.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "cli/exit_status.h"
#include "cli/kubectl/commands.h"
#include "cli/kubectl/explain.h"
#include "cli/kubectl/table.h"
#include "cli/kubectl/trace_objects.h"
#include "cli/kubectl/trace_view.h"

namespace weft::kubectl {
namespace {

constexpr std::chrono::seconds kRefresh{2};
// Traces that are asked for without TRACE: each needs a TraceView, about which the relay asks the
// API server every 3 s, at most 5 times a second for a namespace.
constexpr std::size_t kMostTraces = 12;
// Where the height of the terminal is not known.
constexpr std::size_t kUsualLines = 24;

RelayCounts& operator+=(RelayCounts& sum, const RelayCounts& more) {
  sum.events += more.events;
  sum.bytes += more.bytes;
  sum.discarded += more.discarded;
  sum.lost += more.lost;
  return sum;
}

// "1234.5": events of some seconds as a rate.
std::string Rate(std::uint64_t count) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", static_cast<double>(count) / kRateSeconds);
  return text.data();
}

Row ToRow(const std::string& trace, const std::string& pod, const RelayCounts& recently,
          const RelayCounts& total) {
  return {trace,
          pod,
          Rate(recently.events),
          Bytes(recently.bytes / kRateSeconds) + "/s",
          Rate(recently.discarded),
          Rate(recently.lost),
          std::to_string(total.discarded),
          std::to_string(total.lost)};
}

kube::Json ToJson(const RelayCounts& recently, const RelayCounts& total) {
  const auto rate = [](std::uint64_t count) { return static_cast<double>(count) / kRateSeconds; };
  return {{"eventsPerSecond", rate(recently.events)},
          {"bytesPerSecond", rate(recently.bytes)},
          {"discardedPerSecond", rate(recently.discarded)},
          {"lostPerSecond", rate(recently.lost)},
          {"events", total.events},
          {"bytes", total.bytes},
          {"discarded", total.discarded},
          {"lost", total.lost}};
}

std::size_t LinesOfTerminal() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 3;
  return known ? size.ws_row : kUsualLines;
}

// Asks the relay about Traces, with one TraceView for each.
class Watcher {
 public:
  Watcher(const Connection& connection, std::string only)
      : connection_(connection), only_(std::move(only)) {}

  // The Traces that record, or are on their way to an end.
  Result<std::vector<TraceRates>> Look() {
    WEFT_ASSIGN(const std::vector<api::Trace> traces, Traces());
    std::vector<TraceRates> all;
    left_out_ = 0;
    is_over_ = !only_.empty() && !traces.empty() && IsOver(traces.front().status.phase);
    for (const api::Trace& trace : traces) {
      if (only_.empty() && IsOver(trace.status.phase)) continue;
      if (all.size() == kMostTraces) {
        ++left_out_;
        continue;
      }
      TraceRates one{.name = trace.metadata.name,
                     .phase = std::string(PhaseName(trace.status.phase))};
      if (!FolderAtRelay(trace).empty()) {
        WEFT_ASSIGN(one.pods, Ask(trace));
      }
      all.push_back(std::move(one));
    }
    return all;
  }

  // Returns how many Traces the last Look did not ask for.
  [[nodiscard]] std::size_t left_out() const { return left_out_; }
  // Returns whether the one Trace had ended at the last Look.
  [[nodiscard]] bool is_over() const { return is_over_; }

 private:
  struct AtRelay {
    AtRelay(const Connection& connection, const api::Trace& trace)
        : view(connection, trace.metadata.name), client(connection, view, FolderAtRelay(trace)) {}
    TraceView view;
    RelayClient client;
  };

  Result<std::vector<api::Trace>> Traces() {
    std::vector<api::Trace> traces;
    if (!only_.empty()) {
      WEFT_ASSIGN(api::Trace trace, GetTrace(connection_, only_));
      traces.push_back(std::move(trace));
      return traces;
    }
    WEFT_ASSIGN(const kube::ObjectList list,
                connection_.client->List(
                    {.resource = kube::kTraces, .name_space = connection_.name_space}));
    for (const kube::Json& object : list.items) {
      // One that this version does not understand keeps no other from being shown.
      if (auto trace = ToTrace(object)) traces.push_back(std::move(*trace));
    }
    return traces;
  }

  Result<std::vector<RelayRates>> Ask(const api::Trace& trace) {
    // A Trace that was made again under its name has another folder.
    auto& relay = relays_[trace.status.folder];
    if (relay == nullptr) relay = std::make_unique<AtRelay>(connection_, trace);
    return relay->client.Rates(kRateSeconds);
  }

  const Connection& connection_;
  const std::string only_;
  std::map<std::string, std::unique_ptr<AtRelay>> relays_;  // by status.folder
  std::size_t left_out_ = 0;
  bool is_over_ = false;
};

std::string LeftOut(std::size_t count) {
  return std::to_string(count) + " more Traces are not shown: name one, kubectl weft top TRACE\n";
}

// Redraws the terminal until ^C, or the end of the one Trace.
int Refresh(const Connection& connection, Watcher& watcher, Interrupts& interrupts) {
  for (;;) {
    const auto traces = watcher.Look();
    const bool may_pass = !traces && (traces.error().code == ErrorCode::kIo ||
                                      traces.error().code == ErrorCode::kTimeout ||
                                      traces.error().code == ErrorCode::kLimit);
    if (!traces && !may_pass) return Complain(traces.error());
    std::string text = "\033[H\033[J";
    if (!traces) {
      text += Printable(traces.error().message) + "; trying again\n";
    } else if (traces->empty()) {
      text += "no Trace records in the namespace " + connection.name_space + "\n";
    } else {
      text += TopTable(*traces, LinesOfTerminal() - 2);
      if (watcher.left_out() > 0) text += LeftOut(watcher.left_out());
    }
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      return cli::kExitOk;  // the terminal is gone
    if (watcher.is_over() || interrupts.Sleep(kRefresh)) return cli::kExitOk;
  }
}

}  // namespace

RelayCounts Sum(const std::vector<RelayRates>& pods, RelayCounts RelayRates::* counts) {
  RelayCounts sum;
  for (const RelayRates& pod : pods) sum += pod.*counts;
  return sum;
}

std::string TopTable(std::vector<TraceRates> traces, std::size_t most) {
  std::vector<Row> rows = {
      {"TRACE", "POD", "EVENTS/S", "BYTES/S", "DISCARDED/S", "LOST/S", "DISCARDED", "LOST"}};
  for (TraceRates& trace : traces) {
    const std::string name = Printable(trace.name);
    rows.push_back(ToRow(name, "all " + std::to_string(trace.pods.size()),
                         Sum(trace.pods, &RelayRates::recently),
                         Sum(trace.pods, &RelayRates::total)));
    std::ranges::sort(trace.pods, [](const RelayRates& a, const RelayRates& b) {
      return std::tie(b.recently.events, a.pod) < std::tie(a.recently.events, b.pod);
    });
    for (const RelayRates& pod : trace.pods)
      rows.push_back(ToRow(name, Printable(pod.pod), pod.recently, pod.total));
  }
  const std::size_t all = rows.size();
  if (all <= most) return Table(rows);
  rows.resize(most > 1 ? most - 1 : 1);
  return Table(rows) + std::to_string(all - rows.size()) +
         " more lines; kubectl weft top --once prints all\n";
}

kube::Json TopJson(const std::string& name_space, const std::vector<TraceRates>& traces) {
  kube::Json list = kube::Json::array();
  for (const TraceRates& trace : traces) {
    kube::Json one =
        ToJson(Sum(trace.pods, &RelayRates::recently), Sum(trace.pods, &RelayRates::total));
    one["name"] = trace.name;
    one["phase"] = trace.phase;
    one["pods"] = kube::Json::array();
    for (const RelayRates& pod : trace.pods) {
      one["pods"].push_back(ToJson(pod.recently, pod.total));
      one["pods"].back()["name"] = pod.pod;
    }
    list.push_back(std::move(one));
  }
  return {{"namespace", name_space}, {"seconds", kRateSeconds}, {"traces", std::move(list)}};
}

int Top(const Connection& connection, const TopCommand& command, Interrupts& interrupts) {
  Watcher watcher(connection, command.trace);
  const bool is_json = command.output == "json";
  if (!command.once && !is_json && isatty(STDOUT_FILENO) == 1)
    return Refresh(connection, watcher, interrupts);
  const auto traces = watcher.Look();
  if (!traces) return Complain(traces.error());
  if (is_json) {
    std::printf("%s\n", TopJson(connection.name_space, *traces)
                            .dump(2, ' ', true, kube::Json::error_handler_t::replace)
                            .c_str());
  } else if (traces->empty()) {
    std::fprintf(stderr, "no Trace records in the namespace %s\n", connection.name_space.c_str());
  } else {
    std::fputs(TopTable(*traces, SIZE_MAX).c_str(), stdout);
  }
  if (watcher.left_out() > 0) std::fputs(LeftOut(watcher.left_out()).c_str(), stderr);
  return cli::kExitOk;
}

}  // namespace weft::kubectl
