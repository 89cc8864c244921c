// SPDX-License-Identifier: Apache-2.0
// See state.h. One template describes the order of members for both directions.
#include "node-agent/consumer/state.h"

#include <type_traits>

namespace weft::consumer {
namespace {

class Writer {
 public:
  explicit Writer(std::vector<uint8_t>& out) : out_(&out) {}
  template <typename T>
  void Word(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    out_->insert(out_->end(), bytes, bytes + sizeof(value));
  }
  void Text(const std::string& text) {
    Word(static_cast<uint64_t>(text.size()));
    out_->insert(out_->end(), text.begin(), text.end());
  }
  template <typename T, typename Each>
  void List(const std::vector<T>& list, const Each& each) {
    Word(static_cast<uint64_t>(list.size()));
    for (const T& item : list) each(*this, item);
  }

 private:
  std::vector<uint8_t>* out_;
};

class Reader {
 public:
  explicit Reader(Bytes bytes) : in_(bytes) {}
  template <typename T>
  void Word(T& value) {
    value = in_.Read<T>();
  }
  void Text(std::string& text) { text = in_.ReadString(in_.Read<uint64_t>()); }
  template <typename T, typename Each>
  void List(std::vector<T>& list, const Each& each) {
    const auto count = in_.Read<uint64_t>();
    // Grows as items are really there: a false count ends at the end of the bytes.
    for (uint64_t i = 0; i < count && in_.ok(); i++) each(*this, list.emplace_back());
  }
  [[nodiscard]] bool ok() const { return in_.ok(); }
  [[nodiscard]] bool more() const { return in_.ok() && in_.remaining() > 0; }

 private:
  ByteReader in_;
};

constexpr auto kSlot = [](auto& io, auto& slot) {
  io.Word(slot.slot);
  io.Word(slot.last_cpu);
  io.Word(slot.state.position);
  io.Word(slot.state.accounted);
  io.Word(slot.state.in_subbuf);
  io.Word(slot.state.overwritten);
  io.Word(slot.state.skipped);
  io.Word(slot.discarded);
  io.Word(slot.overwritten);
};

constexpr auto kRing = [](auto& io, auto& ring) {
  io.Word(ring.key.device);
  io.Word(ring.key.inode);
  io.Word(ring.instance);
  io.Word(ring.phase);
  io.Word(ring.corrupt_recorded);
  io.List(ring.slots, kSlot);
};

constexpr auto kStream = [](auto& io, auto& stream) {
  io.Word(stream.cpu);
  io.Word(stream.bytes);
  io.Word(stream.packets);
  io.Word(stream.events);
  io.Word(stream.next_sequence);
  io.Word(stream.discarded);
  io.Word(stream.last_time);
  io.Word(stream.last_discarded);
};

constexpr auto kChannel = [](auto& io, auto& channel) {
  io.Word(channel.id);
  io.Word(channel.stream_class);
  io.Word(channel.classes);
  io.Word(channel.totals.delivered);
  io.Word(channel.totals.late);
  io.Word(channel.totals.lost);
  io.Word(channel.totals.rings);
  io.Word(channel.totals.corrupt_rings);
  io.Word(channel.totals.tail_unknown);
  io.Word(channel.totals.recorded);
  io.Word(channel.totals.overwritten);
  io.Word(channel.totals.discarded);
  io.List(channel.streams, kStream);
  io.List(channel.rings, kRing);
};

constexpr auto kOutput = [](auto& io, auto& output) {
  io.Text(output.name);
  io.Word(output.metadata_bytes);
  io.Word(output.vpids.min);
  io.Word(output.vpids.max);
  io.List(output.channels, kChannel);
};

}  // namespace

const char* LostReasonName(LostReason reason) {
  switch (reason) {
    case kLostMalformed:
      return "consumer/malformed";
    case kLostCorrupt:
      return "consumer/corrupt";
    case kLostLimit:
      return "consumer/limit";
    case kLostStore:
      return "store/write";
    case kLostReasons:
      break;
  }
  return "unknown";
}

const char* DiscardReasonName(size_t reason) {
  static constexpr std::array<const char*, WEFT_DISCARD_REASONS> kNames = {
      "full", "memory", "nested", "too_large", "contended", "missed"};
  return reason < kNames.size() ? kNames[reason] : "unknown";
}

void Encode(const OutputRecord& record, std::vector<uint8_t>& out) {
  Writer writer(out);
  kOutput(writer, record);
}

Result<std::vector<OutputRecord>> DecodeOutputs(Bytes bytes) {
  std::vector<OutputRecord> outputs;
  Reader reader(bytes);
  while (reader.more()) kOutput(reader, outputs.emplace_back());
  if (!reader.ok()) return Fail(ErrorCode::kCorrupt, "journal: record");
  return outputs;
}

}  // namespace weft::consumer
