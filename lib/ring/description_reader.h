// SPDX-License-Identifier: Apache-2.0
// Reads the descriptions of a ring set's events as they are appended, each once. Used by the
// consumer's thread. The bytes are foreign: an entry that contradicts the format is kCorrupt (the
// ring set is given up); what a description says is the caller's to check.
// Bounded by kDescriptionsPerPoll for a call, kMaxDescriptions and kMaxDescriptionsSize in all.
#ifndef WEFT_LIB_RING_DESCRIPTION_READER_H_
#define WEFT_LIB_RING_DESCRIPTION_READER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/result.h"
#include "lib/ring/ring_set.h"

namespace weft::ring {

class DescriptionReader {
 public:
  // Gets an event's id in this ring set and its struct weft_event_desc with all that follows it.
  // The bytes are valid during the call. An error ends the poll and is returned by it.
  using Sink = std::function<Status(uint16_t event, Bytes description)>;

  // `ring` must outlive the reader.
  explicit DescriptionReader(const RingSet& ring) : ring_(&ring) {}

  // Hands out what was appended since the last call, at most kDescriptionsPerPoll. True: there may
  // be more. An id may come twice; the caller compares.
  Result<bool> Poll(const Sink& sink);

  [[nodiscard]] uint64_t used() const { return used_; }

 private:
  const RingSet* ring_;
  uint64_t used_ = 0;  // bytes handed out
  uint32_t count_ = 0;
};

// Takes whole entries from `bytes`; returns how many bytes they were. It has no side effects
// besides calls of `sink`, for Poll and the fuzzer.
Result<uint64_t> ParseDescriptions(Bytes bytes, const DescriptionReader::Sink& sink);

}  // namespace weft::ring

#endif  // WEFT_LIB_RING_DESCRIPTION_READER_H_
