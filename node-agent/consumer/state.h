// SPDX-License-Identifier: Apache-2.0
// What the journal's record holds: for every trace the lengths of its files, for every ring how far
// it was read, and the counts that go with exactly that. Encoded as a flat list of little-endian
// words; only consumers of one installation read it, a version in the journal guards it.
// Thread-safety: plain values.
#ifndef WEFT_NODE_AGENT_CONSUMER_STATE_H_
#define WEFT_NODE_AGENT_CONSUMER_STATE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/ctf/schema.h"
#include "lib/ring/slot_reader.h"

namespace weft::consumer {

// Why a record that was committed did not reach a file.
enum LostReason : uint8_t {
  kLostMalformed,  // unknown event, or bytes that contradict its description
  kLostCorrupt,    // behind a contradiction in its ring
  kLostLimit,      // more kinds of events than are allowed
  kLostStore,      // the file could not be written
  kLostReasons,
};
// "stage/reason", as messages have it.
const char* LostReasonName(LostReason reason);

using DiscardCounts = std::array<uint64_t, WEFT_DISCARD_REASONS>;
const char* DiscardReasonName(size_t reason);

// Totals of a channel. What rings that are still known hold is added when somebody asks.
struct Totals {
  uint64_t delivered = 0;
  uint64_t late = 0;
  std::array<uint64_t, kLostReasons> lost{};
  uint64_t rings = 0;
  uint64_t corrupt_rings = 0;
  uint64_t tail_unknown = 0;  // ring sets that went away before their end was read
  // Of rings that were forgotten:
  uint64_t recorded = 0;
  uint64_t overwritten = 0;
  DiscardCounts discarded{};
};

struct SlotRecord {
  // What this consumer and those whose journal it has must account for.
  [[nodiscard]] uint64_t recorded() const { return state.accounted - state.skipped; }

  uint32_t slot = 0;
  uint32_t last_cpu = 0;
  ring::SlotState state;
  // That streams have counted as missing:
  DiscardCounts discarded{};
  uint64_t overwritten = 0;
};

enum class RingPhase : uint8_t { kActive, kDone, kCorrupt };

struct RingRecord {
  ring::RingKey key;
  uint64_t instance = 0;
  RingPhase phase = RingPhase::kActive;
  uint64_t corrupt_recorded = 0;  // committed, as far as known, and lost behind a contradiction
  std::vector<SlotRecord> slots;
};

struct StreamRecord {
  uint32_t cpu = 0;
  uint64_t bytes = 0;  // of its packets together: its file's length
  uint64_t packets = 0;
  uint64_t events = 0;  // in them
  uint64_t next_sequence = 0;
  uint64_t discarded = 0;
  // What the last packet says.
  uint64_t last_time = 0;
  uint64_t last_discarded = 0;
};

struct ChannelRecord {
  uint64_t id = 0;
  uint32_t stream_class = 0;
  uint32_t classes = 0;
  Totals totals;
  std::vector<StreamRecord> streams;
  std::vector<RingRecord> rings;
};

struct OutputRecord {
  std::string name;  // OutputName
  uint64_t metadata_bytes = 0;
  ctf::VpidRange vpids;
  std::vector<ChannelRecord> channels;
};

void Encode(const OutputRecord& record, std::vector<uint8_t>& out);
// kCorrupt: not what Encode makes.
Result<std::vector<OutputRecord>> DecodeOutputs(Bytes bytes);

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_STATE_H_
