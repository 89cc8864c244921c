// SPDX-License-Identifier: Apache-2.0
// Exports to Perfetto's trace format, messages of Protocol Buffers: perfetto/trace/trace.proto,
// trace_packet.proto, track_event/*.proto, clock_snapshot.proto. Names of events and fields are
// written once (interned_data). Times stand on the clock BOOTTIME, which the trace says to equal
// REALTIME, so that viewers show the time of day.
#include <array>

#include "cli/export/exporter.h"
#include "cli/export/protobuf.h"
#include "cli/export/timeline.h"
#include "cli/json_printer.h"
#include "lib/ctf/text.h"

namespace weft::cli {
namespace {

// Fields of messages, by their numbers in the schema.
constexpr uint32_t kTracePacket = 1;
namespace packet {
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
                   kInternedData = 12, kSequenceFlags = 13, kTrackDescriptor = 60;
}
namespace clock {
constexpr uint32_t kClocks = 1, kPrimary = 2;  // ClockSnapshot
constexpr uint32_t kId = 1, kTime = 2;         // ClockSnapshot.Clock
}  // namespace clock
namespace descriptor {
constexpr uint32_t kUuid = 1, kName = 2, kParent = 5, kCounter = 8;
}
namespace event {
constexpr uint32_t kAnnotations = 4, kType = 9, kNameId = 10, kTrack = 11, kName = 23,
                   kDoubleValue = 44;
}
namespace annotation {
constexpr uint32_t kNameId = 1, kBool = 2, kUnsigned = 3, kSigned = 4, kDouble = 5, kText = 6,
                   kJson = 9;
}
namespace interned {
constexpr uint32_t kEventNames = 2, kAnnotationNames = 3;
constexpr uint32_t kId = 1, kName = 2;
}  // namespace interned

constexpr uint64_t kSequence = 1;  // all packets are of one
constexpr uint64_t kStateCleared = 1, kNeedsState = 2;
constexpr uint64_t kRealtime = 1, kBoottime = 6;
constexpr uint64_t kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounterValue = 4;

// Numbers for names that are written once.
template <typename Key>
class Interned {
 public:
  // The number of a name; a new one is appended to `data`, a message InternedData.
  uint64_t Of(const Key& key, uint32_t field, std::string_view name, std::string& data) {
    const auto [found, added] = ids_.try_emplace(key, ids_.size() + 1);
    if (added) {
      std::string entry;
      ProtobufWriter writer(entry);
      writer.Number(interned::kId, found->second);
      writer.Bytes(interned::kName, ctf::ValidText(name));
      ProtobufWriter(data).Bytes(field, entry);
    }
    return found->second;
  }

 private:
  std::unordered_map<Key, uint64_t> ids_;
};

using FieldNames = Interned<const ctf::Member*>;

// Writes a payload's members as annotations; structures, arrays, options and labelled values as
// JSON.
class AnnotationPrinter final : public ctf::Visitor {
 public:
  AnnotationPrinter(FieldNames& names, std::string& event, std::string& data)
      : names_(names), event_(event), data_(data), json_(text_) {}

  void BeginStruct(const ctf::Type& type) override {
    if (depth_++ > 0) json_.BeginStruct(type);
  }
  void EndStruct(const ctf::Type& type) override {
    if (--depth_ > 0) json_.EndStruct(type);
    if (depth_ == 0) Finish();
  }
  void BeginMember(const ctf::Type& type, const ctf::Member& member) override {
    if (depth_ > 1) return json_.BeginMember(type, member);
    Finish();
    if (ctf::IsInternal(member.type)) return;
    member_ = &member;
    name_ = names_.Of(&member, interned::kAnnotationNames, member.name, data_);
  }
  void Integer(const ctf::Type& type, uint64_t value) override {
    if (!IsPlain(type) || type.kind == ctf::TypeKind::kEnum) return json_.Integer(type, value);
    Put([&](ProtobufWriter& w) {
      w.Number(type.is_signed ? annotation::kSigned : annotation::kUnsigned, value);
    });
  }
  void Float(const ctf::Type& type, double value) override {
    if (!IsPlain(type)) return json_.Float(type, value);
    Put([&](ProtobufWriter& w) { w.Double(annotation::kDouble, value); });
  }
  void Bool(const ctf::Type& type, bool value) override {
    if (!IsPlain(type)) return json_.Bool(type, value);
    Put([&](ProtobufWriter& w) { w.Number(annotation::kBool, value ? 1 : 0); });
  }
  void Text(const ctf::Type& type, std::string_view text) override {
    if (!IsPlain(type) || !ctf::IsUtf8(text)) return json_.Text(type, text);
    Put([&](ProtobufWriter& w) { w.Bytes(annotation::kText, text); });
  }
  void BitMap(const ctf::Type& type, uint64_t value) override { json_.BitMap(type, value); }
  void Blob(const ctf::Type& type, std::span<const uint8_t> bytes) override {
    json_.Blob(type, bytes);
  }
  void NoOption(const ctf::Type& type) override { json_.NoOption(type); }
  void BeginArray(const ctf::Type& type, uint64_t length) override {
    depth_++;
    json_.BeginArray(type, length);
  }
  void BeginElement(const ctf::Type& type, uint64_t index) override {
    json_.BeginElement(type, index);
  }
  void EndArray(const ctf::Type& type) override {
    depth_--;
    json_.EndArray(type);
  }

 private:
  // Whether a value is a member of the payload itself, and one that has a name.
  [[nodiscard]] bool IsPlain(const ctf::Type& type) const {
    return depth_ == 1 && member_ != nullptr && !ctf::IsInternal(type);
  }
  template <typename Write>
  void Put(Write write) {
    scratch_.clear();
    ProtobufWriter writer(scratch_);
    writer.Number(annotation::kNameId, name_);
    write(writer);
    ProtobufWriter(event_).Bytes(event::kAnnotations, scratch_);
    member_ = nullptr;
  }
  // Writes the member that became JSON.
  void Finish() {
    if (member_ != nullptr && !text_.empty()) {
      Put([&](ProtobufWriter& w) { w.Bytes(annotation::kJson, text_); });
    }
    member_ = nullptr;
    text_.clear();
  }

  FieldNames& names_;
  std::string& event_;
  std::string& data_;
  std::string text_, scratch_;
  JsonPrinter json_;
  int depth_ = 0;
  const ctf::Member* member_ = nullptr;  // of the payload, not written yet
  uint64_t name_ = 0;
};

class PerfettoExporter : public Exporter {
 public:
  explicit PerfettoExporter(const CounterFields& counters) : timeline_(counters) {}

  void Item(ctf::StreamReader& stream, std::string& out) override {
    const ctf::Item& item = stream.item();
    if (item.kind != ctf::ItemKind::kEvent || item.time_ns < 0) return;
    const auto time = static_cast<uint64_t>(item.time_ns);
    if (!begun_) Clocks(time, out);
    const Moment moment = timeline_.Take(stream);
    for (const Track* track : timeline_.TakeNewTracks()) Describe(*track, out);
    const SpanChange& change = moment.change;
    for (size_t i = 0; i < change.ends; i++) {
      const bool own = i + 1 == change.ends;
      Put(kSliceEnd, *moment.track, time, own ? &stream : nullptr, nullptr, out);
    }
    if (change.begins || change.instant) {
      Put(change.begins ? kSliceBegin : kInstant, *moment.track, time, &stream, moment.name, out);
    }
    if (moment.counter != nullptr) {
      Write(time, out, [&](ProtobufWriter& event) {
        event.Number(event::kType, kCounterValue);
        event.Number(event::kTrack, moment.counter->id);
        event.Double(event::kDoubleValue, moment.value);
      });
    }
    if (moment.cpu == nullptr) return;
    if (moment.cpu_was_busy) Put(kSliceEnd, *moment.cpu, time, nullptr, nullptr, out);
    if (moment.running.empty()) return;
    Write(time, out, [&](ProtobufWriter& event) {
      event.Number(event::kType, kSliceBegin);
      event.Number(event::kTrack, moment.cpu->id);
      event.Bytes(event::kName, ctf::ValidText(moment.running));
    });
  }

 private:
  // Says that both clocks show the same, at the first event.
  void Clocks(uint64_t time, std::string& out) {
    begun_ = true;
    std::string snapshot;
    ProtobufWriter writer(snapshot);
    for (const uint64_t id : {kRealtime, kBoottime}) {
      std::string one;
      ProtobufWriter clock_writer(one);
      clock_writer.Number(clock::kId, id);
      clock_writer.Number(clock::kTime, time);
      writer.Bytes(clock::kClocks, one);
    }
    writer.Number(clock::kPrimary, kBoottime);
    packet_.clear();
    ProtobufWriter packet_writer(packet_);
    packet_writer.Number(packet::kTimestamp, time);
    packet_writer.Number(packet::kSequenceId, kSequence);
    packet_writer.Number(packet::kSequenceFlags, kStateCleared);
    packet_writer.Bytes(packet::kClockSnapshot, snapshot);
    ProtobufWriter(out).Bytes(kTracePacket, packet_);
  }

  void Describe(const Track& track, std::string& out) {
    std::string text;
    ProtobufWriter writer(text);
    writer.Number(descriptor::kUuid, track.id);
    writer.Bytes(descriptor::kName, ctf::ValidText(track.name));
    if (track.parent != nullptr) writer.Number(descriptor::kParent, track.parent->id);
    if (track.kind == TrackKind::kCounter) writer.Bytes(descriptor::kCounter, "");
    packet_.clear();
    ProtobufWriter packet_writer(packet_);
    packet_writer.Number(packet::kSequenceId, kSequence);
    packet_writer.Bytes(packet::kTrackDescriptor, text);
    ProtobufWriter(out).Bytes(kTracePacket, packet_);
  }

  // `stream`: whose payload the event has; nullptr: none. `name`: nullptr for the end of a slice.
  void Put(uint64_t type, const Track& track, uint64_t time, ctf::StreamReader* stream,
           const std::string* name, std::string& out) {
    Write(time, out, [&](ProtobufWriter& event) {
      event.Number(event::kType, type);
      event.Number(event::kTrack, track.id);
      if (name != nullptr) {
        event.Number(event::kNameId, event_names_.Of(name, interned::kEventNames, *name, data_));
      }
      if (stream == nullptr) return;
      AnnotationPrinter printer(field_names_, event_, data_);
      (void)stream->Visit(ctf::Scope::kPayload, printer);
    });
  }

  // A packet with a TrackEvent whose fields `fill` writes.
  template <typename Fill>
  void Write(uint64_t time, std::string& out, Fill fill) {
    event_.clear();
    data_.clear();
    packet_.clear();
    ProtobufWriter event(event_);
    fill(event);
    ProtobufWriter writer(packet_);
    writer.Number(packet::kTimestamp, time);
    writer.Number(packet::kSequenceId, kSequence);
    writer.Number(packet::kSequenceFlags, kNeedsState);
    if (!data_.empty()) writer.Bytes(packet::kInternedData, data_);
    writer.Bytes(packet::kTrackEvent, event_);
    ProtobufWriter(out).Bytes(kTracePacket, packet_);
  }

  Timeline timeline_;
  bool begun_ = false;
  Interned<const std::string*> event_names_;
  FieldNames field_names_;
  std::string packet_, event_, data_;  // kept for their memory
};

}  // namespace

std::unique_ptr<Exporter> MakePerfettoExporter(const CounterFields& counters) {
  return std::make_unique<PerfettoExporter>(counters);
}

}  // namespace weft::cli
