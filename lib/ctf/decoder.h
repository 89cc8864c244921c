// SPDX-License-Identifier: Apache-2.0
// Walks over the bits of a packet as a Type describes them and passes each value to a visitor.
// Foreign bytes: nothing outside the packet is read, and work is bounded by the packet's size.
// Thread-safety: one thread per decoder; the bytes must not change.
#ifndef WEFT_LIB_CTF_DECODER_H_
#define WEFT_LIB_CTF_DECODER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ctf/type.h"

namespace weft::ctf {

// What a decoder finds, in order. Values of compounds come between their Begin and End. The default
// does nothing: so a visitor may want only some.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // Integers and enumerations; signed ones are sign-extended.
  virtual void Integer(const Type&, uint64_t) {}
  virtual void Float(const Type&, double) {}
  virtual void Bool(const Type&, bool) {}
  virtual void BitMap(const Type&, uint64_t) {}
  // A string, or an array or sequence of text; without its NUL. Bytes as they are, which should be
  // UTF-8.
  virtual void Text(const Type&, std::string_view) {}
  virtual void Blob(const Type&, std::span<const uint8_t>) {}
  virtual void BeginStruct(const Type&) {}
  virtual void BeginMember(const Type&, const Member&) {}
  virtual void EndStruct(const Type&) {}
  virtual void BeginVariant(const Type&, const Member&) {}
  virtual void EndVariant(const Type&) {}
  virtual void BeginArray(const Type&, uint64_t) {}
  virtual void BeginElement(const Type&, uint64_t) {}
  virtual void EndArray(const Type&) {}
  virtual void BeginOption(const Type&) {}  // an optional field that is there
  virtual void EndOption(const Type&) {}
  virtual void NoOption(const Type&) {}  // ... that is not
};

class Decoder {
 public:
  // Starts at bit 0 of `bytes`. Values kept for references survive, the clock too.
  void SetPacket(std::span<const uint8_t> bytes);
  // Bits of it that hold something; at most the packet's size.
  void SetContentBits(uint64_t bits) { end_ = bits; }
  void SetSavedValues(uint32_t count) { saved_.assign(count, 0); }

  // False: the bytes contradict the type; position and clock then mean nothing.
  [[nodiscard]] bool Decode(const Type& type, Visitor& visitor);

  // A clocked integer moves the clock to the next time that ends in its bits.
  [[nodiscard]] uint64_t clock() const { return clock_; }
  void set_clock(uint64_t clock) { clock_ = clock; }

  [[nodiscard]] uint64_t position() const { return at_; }  // bits
  void set_position(uint64_t bits) { at_ = bits; }
  [[nodiscard]] uint64_t end() const { return end_; }
  [[nodiscard]] bool AtEnd() const { return at_ >= end_; }

 private:
  bool Walk(const Type& type, Visitor& visitor);
  bool Integer(const Type& type, Visitor& visitor);
  bool Variable(const Type& type, uint64_t& value);
  bool Fixed(const Type& type, uint64_t& value);
  bool Float(const Type& type, Visitor& visitor);
  bool BitArray(const Type& type, Visitor& visitor);
  bool Optional(const Type& type, Visitor& visitor);
  bool String(const Type& type, Visitor& visitor);
  bool Struct(const Type& type, Visitor& visitor);
  bool Variant(const Type& type, Visitor& visitor);
  bool Array(const Type& type, uint64_t length, Visitor& visitor);
  bool Bytes(const Type& type, uint64_t length, Visitor& visitor);
  bool Align(uint32_t bits);
  bool Bits(uint32_t count, bool big_endian, uint64_t& value);

  std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
  uint64_t end_ = 0;
  uint64_t clock_ = 0;
  uint64_t steps_ = 0;  // left for the current Decode
  std::vector<uint64_t> saved_;
  std::string utf8_;  // of the current text, where the packet has another encoding
};

// The labels whose ranges hold `value`, by calling on_label(label) for each, in order.
template <typename OnLabel>
void ForEachLabel(const Type& type, uint64_t value, OnLabel on_label) {
  for (const EnumMapping& mapping : type.mappings) {
    for (const Range& range : mapping.ranges) {
      const bool in = type.is_signed
                          ? static_cast<int64_t>(range.begin) <= static_cast<int64_t>(value) &&
                                static_cast<int64_t>(value) <= static_cast<int64_t>(range.end)
                          : range.begin <= value && value <= range.end;
      if (!in) continue;
      on_label(mapping.label);
      break;
    }
  }
}

// The flags of a bit map with a bit of theirs set, as ForEachLabel does for enumerations.
template <typename OnLabel>
void ForEachFlag(const Type& type, uint64_t value, OnLabel on_label) {
  for (const EnumMapping& mapping : type.mappings) {
    for (const Range& range : mapping.ranges) {
      uint64_t bit = range.begin;
      while (bit <= range.end && bit < type.bits && ((value >> bit) & 1) == 0) bit++;
      if (bit > range.end || bit >= type.bits) continue;
      on_label(mapping.label);
      break;
    }
  }
}

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_DECODER_H_
