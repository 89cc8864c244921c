// SPDX-License-Identifier: Apache-2.0
// For tests: makes record bodies (contexts, fixed part, segments) field by field, as libweft.so
// lays them out (lib/abi/event.h, lib/abi/context.h), and random schemas with random bodies.
// Thread-safety: one thread per object.
#ifndef WEFT_LIB_CTF_RECORD_BUILDER_H_
#define WEFT_LIB_CTF_RECORD_BUILDER_H_

#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ctf/schema.h"
#include "lib/event/description.h"

namespace weft::ctf {

class RecordBuilder {
 public:
  template <typename T>
  RecordBuilder& Context(T value) {
    context_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  RecordBuilder& ContextBytes(std::string_view bytes) {
    context_ += bytes;
    return *this;
  }
  template <typename T>
  RecordBuilder& Fixed(T value) {
    fixed_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  RecordBuilder& FixedBytes(std::string_view bytes) {
    fixed_ += bytes;
    return *this;
  }
  RecordBuilder& Segment(std::string_view bytes) {
    segments_ += bytes;
    return *this;
  }
  RecordBuilder& String(std::string_view text) {
    return Fixed(static_cast<uint32_t>(text.size())).Segment(text);
  }

  // The result is valid until the builder changes.
  std::span<const uint8_t> body() {
    all_ = context_ + fixed_ + segments_;
    return {reinterpret_cast<const uint8_t*>(all_.data()), all_.size()};
  }

 private:
  std::string context_, fixed_, segments_, all_;
};

// Makes random schemas and bodies from a seed.
class RandomRecords {
 public:
  explicit RandomRecords(uint64_t seed) : random_(seed) {}

  // May a value have several labels?
  bool overlapping_labels = true;

  uint64_t Below(uint64_t n) { return random_() % n; }
  uint64_t Bits() { return random_() >> Below(64); }

  std::string Name() {
    static constexpr const char* kNames[] = {"event", "int",    "struct", "align", "x",   "_y",
                                             "a.b",   "stream", "id",     "v",     "9th", "trace"};
    return kNames[Below(std::size(kNames))];
  }

  // Never empty: babeltrace2 2.0 shows the text of an earlier event for an empty one.
  std::string Text(size_t limit) {
    std::string text(1 + Below(limit), 'T');
    for (size_t i = 1; i < text.size(); i++) {
      text[i] = static_cast<char>(Below(5) == 0 ? Below(256) : 32 + Below(95));
    }
    return text;
  }

  FieldDescription Field() {
    static constexpr uint8_t kSizes[] = {1, 2, 4, 8};
    static constexpr uint8_t kBases[] = {2, 8, 10, 16};
    FieldDescription field;
    field.name = Name();
    field.kind = static_cast<FieldKind>(1 + Below(6));
    field.elem_size = kSizes[Below(4)];
    field.base = kBases[Below(4)];
    field.length_size = kSizes[Below(4)];
    if (Below(2) == 0) field.flags |= WEFT_FIELD_SIGNED;
    if (Below(3) == 0) field.flags |= WEFT_FIELD_NETWORK;
    if (Below(8) == 0) field.flags |= WEFT_FIELD_NOWRITE;
    const bool array = field.kind == FieldKind::kArray || field.kind == FieldKind::kSequence;
    if (array && Below(3) == 0) {
      field.flags |= WEFT_FIELD_TEXT;
      field.elem_size = 1;
    } else if (array && Below(3) == 0) {
      field.flags |= WEFT_FIELD_FLOAT_ELEMENTS;
      field.elem_size = kSizes[2 + Below(2)];
    }
    if (field.kind == FieldKind::kFloat) field.elem_size = kSizes[2 + Below(2)];
    if (field.kind == FieldKind::kArray) {
      field.count = static_cast<uint32_t>(1 + Below(12));
      if (Below(2) == 0) field.flags |= WEFT_FIELD_INLINE;
    }
    if (field.kind == FieldKind::kEnum) AddMappings(field);
    if (array && field.elem_size == 1 && (field.flags & ~WEFT_FIELD_INLINE) == 0) {
      field.blob = Below(2) == 0;
      field.base = 16;
      if (field.blob) field.media_type = "image/x-" + Text(3);
    }
    return field;
  }

  EventDescription Event(std::string name) {
    EventDescription event{.name = std::move(name), .loglevel = static_cast<int32_t>(Below(15))};
    if (Below(2) == 0) event.uri = "http://x/" + Text(8);
    for (uint64_t n = Below(9); n > 0; n--) event.fields.push_back(Field());
    return event;
  }

  void AddBody(const EventDescription& event, RecordBuilder& to) {
    for (const FieldDescription& field : event.fields) {
      if ((field.flags & WEFT_FIELD_NOWRITE) == 0) AddValue(field, to);
    }
  }

 private:
  void AddMappings(FieldDescription& field) {
    const uint32_t bits = field.elem_size * 8U;
    for (uint64_t n = 1 + Below(5); n > 0; n--) {
      uint64_t begin = Bits() & (~uint64_t{0} >> (64 - bits));
      uint64_t end = begin + Below(4);
      if (Below(2) == 0) begin = end = Below(6);
      if ((field.flags & WEFT_FIELD_SIGNED) != 0 && Below(3) == 0) {
        begin = 0 - Below(4);
        end = begin + Below(3);
      }
      if (!overlapping_labels) {
        begin = n * 8;
        end = begin + Below(8);
      }
      field.mappings.push_back({Label(), begin, end});
    }
  }

  std::string Label() {
    static constexpr std::string_view kControl = "\t\n\r\x1b\x01\x7f\v\a";
    std::string label = "L" + Text(6);
    if (Below(3) == 0) label += kControl[Below(kControl.size())];
    return label + Text(2);
  }

  // Returns small integers often, so that enumerations hit their labels; floats are numbers that
  // can be printed.
  std::string Element(const FieldDescription& field) {
    const bool is_float =
        field.kind == FieldKind::kFloat || (field.flags & WEFT_FIELD_FLOAT_ELEMENTS) != 0;
    std::string bytes(field.elem_size, '\0');
    if (is_float) {
      const double wide = (static_cast<double>(Bits()) - 1e9) / 64;
      const auto narrow = static_cast<float>(wide);
      std::memcpy(bytes.data(), field.elem_size == 8 ? static_cast<const void*>(&wide) : &narrow,
                  bytes.size());
    } else {
      const uint64_t value = Below(3) == 0 ? Below(8) - 3 : Bits();
      std::memcpy(bytes.data(), &value, bytes.size());
    }
    if ((field.flags & WEFT_FIELD_NETWORK) != 0) bytes.assign(bytes.rbegin(), bytes.rend());
    return bytes;
  }

  std::string Elements(const FieldDescription& field, uint64_t count) {
    if ((field.flags & WEFT_FIELD_TEXT) != 0) {
      std::string text = Text(count);
      text.resize(count);
      return text;
    }
    std::string bytes;
    for (uint64_t i = 0; i < count; i++) bytes += Element(field);
    return bytes;
  }

  void AddValue(const FieldDescription& field, RecordBuilder& to) {
    switch (field.kind) {
      case FieldKind::kString:
        to.String(Text(20));
        break;
      case FieldKind::kSequence: {
        const bool text = (field.flags & WEFT_FIELD_TEXT) != 0;
        const auto count = static_cast<uint32_t>(text ? 1 + Below(10) : Below(10));
        to.Fixed(count).Segment(Elements(field, count));
        break;
      }
      case FieldKind::kArray:
        if ((field.flags & WEFT_FIELD_INLINE) != 0) {
          to.FixedBytes(Elements(field, field.count));
        } else {
          to.Segment(Elements(field, field.count));
        }
        break;
      default:
        to.FixedBytes(Element(field));
    }
  }

  std::mt19937_64 random_;
};

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_RECORD_BUILDER_H_
