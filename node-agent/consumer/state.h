// SPDX-License-Identifier: Apache-2.0
// The contents of a journal's record: for every trace the lengths of its files, for every ring the
// position up to which it was read, and the counts at exactly that point. The lists of fields
// below are the order of the bytes (lib/fields/binary.h). Only consumers of one installation read
// them. A version in the journal guards them, and state_test.cc compares them with bytes of an
// encoder of its own. Thread-safety: plain values.
#ifndef WEFT_NODE_AGENT_CONSUMER_STATE_H_
#define WEFT_NODE_AGENT_CONSUMER_STATE_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/ctf/schema.h"
#include "lib/fields/fields.h"
#include "lib/ring/slot_reader.h"

namespace weft {

// Fields of structs of other libraries that the journal has.
template <>
struct FieldList<ring::SlotState> {
  static constexpr auto kFields = std::tuple(Field("position", &ring::SlotState::position),
                                             Field("accounted", &ring::SlotState::accounted),
                                             Field("in_subbuf", &ring::SlotState::in_subbuf),
                                             Field("overwritten", &ring::SlotState::overwritten),
                                             Field("skipped", &ring::SlotState::skipped));
};
template <>
struct FieldList<ring::RingKey> {
  static constexpr auto kFields =
      std::tuple(Field("device", &ring::RingKey::device), Field("inode", &ring::RingKey::inode));
};
template <>
struct FieldList<ctf::VpidRange> {
  static constexpr auto kFields =
      std::tuple(Field("min", &ctf::VpidRange::min), Field("max", &ctf::VpidRange::max));
};

}  // namespace weft

namespace weft::consumer {

// Why a record that was committed did not reach a file.
enum LostReason : uint8_t {
  kLostMalformed,  // unknown event, or bytes that contradict its description
  kLostCorrupt,    // behind a contradiction in its ring
  kLostLimit,      // more kinds of events than are allowed
  kLostStore,      // the file could not be written
  kLostMemory,     // its container needed the memory, and the consumer had none for it
  kLostReasons,
};
// Returns "stage/reason", as in messages.
const char* LostReasonName(LostReason reason);

using DiscardCounts = std::array<uint64_t, WEFT_DISCARD_REASONS>;

// Totals of a channel. Channel::Counts adds the counts of the rings that are still known.
struct Totals {
  uint64_t delivered = 0;
  uint64_t late = 0;
  std::array<uint64_t, kLostReasons> lost{};
  uint64_t rings = 0;
  uint64_t corrupt_rings = 0;
  uint64_t tail_unknown = 0;  // ring sets that went away before their end was read
  // Counts of rings that were forgotten:
  uint64_t recorded = 0;
  uint64_t overwritten = 0;
  DiscardCounts discarded{};

  static constexpr auto Fields() {
    return std::tuple(
        Field("delivered", &Totals::delivered), Field("late", &Totals::late),
        Field("lost", &Totals::lost), Field("rings", &Totals::rings),
        Field("corrupt_rings", &Totals::corrupt_rings),
        Field("tail_unknown", &Totals::tail_unknown), Field("recorded", &Totals::recorded),
        Field("overwritten", &Totals::overwritten), Field("discarded", &Totals::discarded));
  }
};

struct SlotRecord {
  // The records that this consumer, and those whose journal it has, must account for.
  [[nodiscard]] uint64_t recorded() const { return state.accounted - state.skipped; }

  uint32_t slot = 0;
  uint32_t last_cpu = 0;
  ring::SlotState state;
  // Events that streams have counted as missing:
  DiscardCounts discarded{};
  uint64_t overwritten = 0;

  static constexpr auto Fields() {
    return std::tuple(Field("slot", &SlotRecord::slot), Field("last_cpu", &SlotRecord::last_cpu),
                      Field("state", &SlotRecord::state),
                      Field("discarded", &SlotRecord::discarded),
                      Field("overwritten", &SlotRecord::overwritten));
  }
};

enum class RingPhase : uint8_t { kActive, kDone, kCorrupt };

struct RingRecord {
  ring::RingKey key;
  uint64_t instance = 0;
  RingPhase phase = RingPhase::kActive;
  uint64_t corrupt_recorded = 0;  // committed, as far as known, and lost behind a contradiction
  std::vector<SlotRecord> slots;

  static constexpr auto Fields() {
    return std::tuple(Field("key", &RingRecord::key), Field("instance", &RingRecord::instance),
                      Field("phase", &RingRecord::phase),
                      Field("corrupt_recorded", &RingRecord::corrupt_recorded),
                      Field("slots", &RingRecord::slots));
  }
};

struct StreamRecord {
  uint32_t cpu = 0;
  uint64_t bytes = 0;  // of its packets together: its file's length
  uint64_t packets = 0;
  uint64_t events = 0;  // in them
  uint64_t next_sequence = 0;
  uint64_t discarded = 0;
  // Values in the last packet:
  uint64_t last_time = 0;
  uint64_t last_discarded = 0;

  static constexpr auto Fields() {
    return std::tuple(
        Field("cpu", &StreamRecord::cpu), Field("bytes", &StreamRecord::bytes),
        Field("packets", &StreamRecord::packets), Field("events", &StreamRecord::events),
        Field("next_sequence", &StreamRecord::next_sequence),
        Field("discarded", &StreamRecord::discarded), Field("last_time", &StreamRecord::last_time),
        Field("last_discarded", &StreamRecord::last_discarded));
  }
};

struct ChannelRecord {
  uint64_t id = 0;
  uint32_t stream_class = 0;
  uint32_t classes = 0;
  Totals totals;
  std::vector<StreamRecord> streams;
  std::vector<RingRecord> rings;

  static constexpr auto Fields() {
    return std::tuple(
        Field("id", &ChannelRecord::id), Field("stream_class", &ChannelRecord::stream_class),
        Field("classes", &ChannelRecord::classes), Field("totals", &ChannelRecord::totals),
        Field("streams", &ChannelRecord::streams), Field("rings", &ChannelRecord::rings));
  }
};

struct OutputRecord {
  std::string name;  // OutputName
  uint64_t metadata_bytes = 0;
  ctf::VpidRange vpids;
  std::vector<ChannelRecord> channels;

  static constexpr auto Fields() {
    return std::tuple(
        Field("name", &OutputRecord::name), Field("metadata_bytes", &OutputRecord::metadata_bytes),
        Field("vpids", &OutputRecord::vpids), Field("channels", &OutputRecord::channels));
  }
};

void Encode(const OutputRecord& record, std::vector<uint8_t>& out);
// kCorrupt: the bytes are not Encode's.
Result<std::vector<OutputRecord>> DecodeOutputs(Bytes bytes);

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_STATE_H_
