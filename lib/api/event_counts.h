// SPDX-License-Identifier: Apache-2.0
// Arithmetic on counts of events, for those who sum up reports and who must never report less than
// before. Each function keeps missing = discarded + lost. Thread-safety: pure functions.
#ifndef WEFT_LIB_API_EVENT_COUNTS_H_
#define WEFT_LIB_API_EVENT_COUNTS_H_

#include <cstdint>
#include <string>

#include "lib/api/status.h"

namespace weft::api {

// Returns the number of events whose fate is not known yet.
std::int64_t InFlight(const EventCounts& counts);

void Add(EventCounts& to, const EventCounts& more);

// Raises each count, and each reason's, to that of `floor`. Events of one count may have become
// those of another meanwhile, so `recorded` is raised further where the rest would not fit into it.
void RaiseTo(EventCounts& counts, const EventCounts& floor);

// Counts events in flight as lost, for this reason: nothing will report what became of them.
void LoseInFlight(EventCounts& counts, const std::string& stage, const std::string& reason);

// Sorts the reasons by stage and reason.
void SortReasons(EventCounts& counts);

// Describes the counts in one line for people. "Recorded 12 events and delivered 9. Discarded 4
// (ring/full: 4). Lost 1 (relay/unreachable: 1). 2 are not delivered yet."
std::string Describe(const EventCounts& counts);

}  // namespace weft::api

#endif  // WEFT_LIB_API_EVENT_COUNTS_H_
