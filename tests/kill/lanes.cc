// SPDX-License-Identifier: Apache-2.0
// See lanes.h.
#include "tests/kill/lanes.h"

#include <algorithm>
#include <map>

namespace weft::kill_test {

std::string Lanes::Order(uint64_t lane, const stress_lane& book) const {
  const std::vector<Record>& records = lanes_[lane];
  const std::string who = "lane " + std::to_string(lane) + ": ";
  if (book.begun - book.ended > 1) return who + "two events at once";
  std::map<uint32_t, uint64_t> next;  // of each slot
  for (const Record& r : records) {
    if (r.ring_set != records.front().ring_set) return who + "in two ring sets";
    uint64_t& least = next[r.slot];
    if (r.sequence < least) return who + "back or twice at " + std::to_string(r.sequence);
    least = r.sequence + 1;
  }
  std::vector<Record> sorted = records;
  std::ranges::sort(sorted, {}, &Record::sequence);
  for (size_t i = 1; i < sorted.size(); ++i) {
    const std::string at = " at " + std::to_string(sorted[i].sequence);
    if (sorted[i].sequence == sorted[i - 1].sequence) return who + "twice" + at;
    if (sorted[i].time < sorted[i - 1].time) return who + "back in time" + at;
  }
  return "";
}

Lanes::Balance Lanes::Missing(uint64_t lane, const stress_lane& book) const {
  const std::vector<Record>& records = lanes_[lane];
  const auto seen =
      std::ranges::count_if(records, [&](const Record& r) { return r.sequence < book.ended; });
  const auto late = static_cast<uint64_t>(seen);
  return {.missing = book.ended - late, .open = book.begun - book.ended - (records.size() - late)};
}

std::string Lanes::Contradiction(const stress_books& books, std::span<const uint64_t> lost) const {
  std::vector<Balance> of(lost.size());
  Balance nowhere;  // of lanes with no record: they may belong to any ring set
  for (uint64_t lane = 0; lane < STRESS_LANES; ++lane) {
    const stress_lane& book = books.lanes[lane];
    if (std::string wrong = Order(lane, book); !wrong.empty()) return wrong;
    const Balance b = Missing(lane, book);
    Balance& sum = lanes_[lane].empty() ? nowhere : of[lanes_[lane].front().ring_set];
    sum.missing += b.missing;
    sum.open += b.open;
  }
  uint64_t beyond = 0;  // what the ring sets lost more than their lanes miss
  uint64_t open = nowhere.open;
  for (size_t i = 0; i < lost.size(); ++i) {
    const uint64_t more = lost[i] - of[i].missing;
    if (lost[i] < of[i].missing || more > of[i].open + nowhere.missing + nowhere.open) {
      return "ring set " + std::to_string(i) + ": its lanes miss " + std::to_string(of[i].missing) +
             ", it lost " + std::to_string(lost[i]);
    }
    beyond += more;
    open += of[i].open;
  }
  if (beyond < nowhere.missing || beyond > nowhere.missing + open)
    return "the ring sets lost " + std::to_string(beyond) +
           " more than their lanes miss; it can be " + std::to_string(nowhere.missing) + " to " +
           std::to_string(nowhere.missing + open);
  return "";
}

}  // namespace weft::kill_test
