// SPDX-License-Identifier: Apache-2.0
// Moves what a ring set of a process that is gone still holds into this consumer's memory, so that
// its container has its own back. The bytes stay where they are in the file: each chunk is copied,
// its pages are freed, and it is written again, so that the kernel charges the new pages to this
// process. What was read already is freed. Used by the consumer's thread, which is the only reader.
//
// A consumer may be killed between two of these steps. The chunk is therefore in the journal before
// its pages are freed. The next consumer writes it again before it reads that ring set (Complete).
#ifndef WEFT_NODE_AGENT_CONSUMER_RING_MOVER_H_
#define WEFT_NODE_AGENT_CONSUMER_RING_MOVER_H_

#include <cstdint>
#include <vector>

#include "lib/ring/ring_set.h"
#include "node-agent/consumer/journal.h"

namespace weft::consumer {

class RingInput;

// A part of a ring set's file: [begin, end) in bytes, multiples of a page.
struct FileRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool operator==(const FileRange&) const = default;
};

// Returns the parts of a ring set that must be kept, in order: its front and, of each slot, the
// records that no journal has yet or, without `records`, only what its counts need.
std::vector<FileRange> RangesToKeep(const RingInput& input, bool records);
uint64_t BytesIn(const std::vector<FileRange>& ranges);

class RingMover {
 public:
  // `journal` outlives this.
  explicit RingMover(Journal& journal) : journal_(&journal) {}

  // Completes a move that a killed consumer had begun in this ring set: its header may be missing.
  Status Complete(int fd);
  // Moves these ranges, and frees all others. kIo: the rest is where it was.
  Status Move(const ring::RingSet& set, const std::vector<FileRange>& keep);

 private:
  Journal* journal_;
};

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_RING_MOVER_H_
