// SPDX-License-Identifier: Apache-2.0
// See event_counts.h.
#include "lib/api/event_counts.h"

#include <algorithm>
#include <tuple>

#include "lib/api/limits.h"

namespace weft::api {
namespace {

// The stage of events that are not in a ring: discarded ones were never written, overwritten ones
// are not there any more.
constexpr std::string_view kRing = "ring";
constexpr std::string_view kOverwritten = "overwritten";

// Returns the entry for this reason, which is made if there is none; nullptr: there is no room for
// it.
EventLoss* Reason(EventCounts& counts, const EventLoss& like) {
  const auto found = std::ranges::find_if(counts.reasons, [&](const EventLoss& loss) {
    return loss.stage == like.stage && loss.reason == like.reason;
  });
  if (found != counts.reasons.end()) return &*found;
  if (counts.reasons.size() >= limits::kReasons) return nullptr;
  counts.reasons.push_back({.stage = like.stage, .reason = like.reason});
  return &counts.reasons.back();
}

enum class Kind { kDiscarded, kOverwritten, kLost };

Kind KindOf(const EventLoss& loss) {
  if (loss.stage != kRing) return Kind::kLost;
  return loss.reason == kOverwritten ? Kind::kOverwritten : Kind::kDiscarded;
}

// " Lost 3 (relay/unreachable: 2, node/gone: 1)."; "" if there is none.
std::string DescribeKind(const EventCounts& counts, Kind kind, const char* verb, std::int64_t sum) {
  if (sum == 0) return "";
  std::string reasons;
  for (const EventLoss& loss : counts.reasons) {
    if (KindOf(loss) != kind || loss.count == 0) continue;
    reasons += (reasons.empty() ? "" : ", ") + loss.stage + "/" + loss.reason + ": " +
               std::to_string(loss.count);
  }
  return std::string(" ") + verb + " " + std::to_string(sum) +
         (reasons.empty() ? "" : " (" + reasons + ")") + ".";
}

}  // namespace

std::int64_t InFlight(const EventCounts& counts) {
  return std::max<std::int64_t>(
      counts.recorded - counts.delivered - counts.overwritten - counts.lost, 0);
}

void Add(EventCounts& to, const EventCounts& more) {
  to.recorded += more.recorded;
  to.delivered += more.delivered;
  to.discarded += more.discarded;
  to.overwritten += more.overwritten;
  to.lost += more.lost;
  to.missing = to.discarded + to.lost;
  for (const EventLoss& loss : more.reasons) {
    if (EventLoss* sum = Reason(to, loss)) sum->count += loss.count;
  }
}

void RaiseTo(EventCounts& counts, const EventCounts& floor) {
  counts.delivered = std::max(counts.delivered, floor.delivered);
  counts.discarded = std::max(counts.discarded, floor.discarded);
  counts.overwritten = std::max(counts.overwritten, floor.overwritten);
  counts.lost = std::max(counts.lost, floor.lost);
  counts.recorded = std::max(
      {counts.recorded, floor.recorded, counts.delivered + counts.overwritten + counts.lost});
  counts.missing = counts.discarded + counts.lost;
  for (const EventLoss& loss : floor.reasons) {
    if (EventLoss* raised = Reason(counts, loss))
      raised->count = std::max(raised->count, loss.count);
  }
}

void LoseInFlight(EventCounts& counts, const std::string& stage, const std::string& reason) {
  const std::int64_t in_flight = InFlight(counts);
  if (in_flight == 0) return;
  EventCounts lost;
  lost.lost = in_flight;
  lost.reasons = {{.stage = stage, .reason = reason, .count = in_flight}};
  Add(counts, lost);
}

void SortReasons(EventCounts& counts) {
  std::ranges::sort(counts.reasons, {},
                    [](const EventLoss& loss) { return std::tie(loss.stage, loss.reason); });
}

std::string Describe(const EventCounts& counts) {
  std::string text = "Recorded " + std::to_string(counts.recorded) + " events and delivered " +
                     std::to_string(counts.delivered) + ".";
  if (counts.discarded + counts.lost == 0) text += " Nothing was discarded or lost.";
  text += DescribeKind(counts, Kind::kDiscarded, "Discarded", counts.discarded);
  text += DescribeKind(counts, Kind::kLost, "Lost", counts.lost);
  if (counts.overwritten > 0)
    text += " Newer events overwrote " + std::to_string(counts.overwritten) + ".";
  if (const std::int64_t in_flight = InFlight(counts); in_flight > 0)
    text += " " + std::to_string(in_flight) + " are not delivered yet.";
  return text;
}

}  // namespace weft::api
