// SPDX-License-Identifier: Apache-2.0
// Walks over the bits of a packet as a Type describes them and passes each value to a visitor.
// Foreign bytes: nothing outside the packet is read, and work is bounded by the packet's size.
// Thread-safety: one thread per decoder; the bytes must not change.
#ifndef WEFT_LIB_CTF_DECODER_H_
#define WEFT_LIB_CTF_DECODER_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/ctf/type.h"

namespace weft::ctf {

// Is called with what a decoder finds, in order. Values of compounds come between their Begin and
// End. By default, each function does nothing, so that a visitor may want only some.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // Integers and enumerations; signed ones are sign-extended.
  virtual void Integer(const Type&, uint64_t) {}
  virtual void Float(const Type&, double) {}
  virtual void Bool(const Type&, bool) {}
  virtual void BitMap(const Type&, uint64_t) {}
  // Visits a string, or an array or sequence of text; without its NUL. The bytes are unchanged;
  // they should be UTF-8.
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
  // Sets how many bits of the packet have content; at most the packet's size.
  void SetContentBits(uint64_t bits) { end_ = bits; }
  void SetSavedValues(uint32_t count) { saved_.assign(count, 0); }

  // False: the bytes contradict the type; position and clock then mean nothing. `AnyVisitor` is
  // Visitor, or a final class with its functions, which the compiler then calls directly, since
  // a reader of a whole trace spends its time here. If the class has PlainMember(const Member&,
  // uint64_t), the decoder calls that in place of BeginMember and Integer for each member that is
  // Type::plain.
  template <typename AnyVisitor>
  [[nodiscard]] bool Decode(const Type& type, AnyVisitor& visitor) {
    // Elements without bits are the only ones that the packet's size does not bound.
    steps_ = (end_ > at_ ? end_ - at_ : 0) + 100'000;
    return Walk(type, visitor);
  }

  // Like Decode, for a caller that wants no values: a type of constant size costs one addition.
  [[nodiscard]] bool Skip(const Type& type);

  // Returns the clock. A clocked integer moves it to the next time that ends in the integer's bits.
  [[nodiscard]] uint64_t clock() const { return clock_; }
  void set_clock(uint64_t clock) { clock_ = clock; }

  // `value`: the clock's lowest bits.
  void MoveClock(uint64_t value, uint32_t bits) {
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    const uint64_t carry = value < (clock_ & mask) ? mask + 1 : 0;
    clock_ = (clock_ & ~mask) + carry + value;
  }

  // Keeps the value of an integer that is referred to (Type::saved).
  void Save(uint32_t index, uint64_t value) { saved_[index] = value; }

  // Sets `word` to the 64 bits from bit `at` on, which is a multiple of 8. Returns false if the
  // content ends before that.
  [[nodiscard]] bool Peek(uint64_t at, uint64_t& word) const {
    if (at > end_ || end_ - at < 64) return false;
    std::memcpy(&word, bytes_.data() + at / 8, sizeof(word));
    return true;
  }

  // Does the value of the integer that an option depends on select it?
  static bool Selects(const Member& option, uint64_t value);

  [[nodiscard]] uint64_t position() const { return at_; }  // bits
  void set_position(uint64_t bits) { at_ = bits; }
  [[nodiscard]] uint64_t end() const { return end_; }
  [[nodiscard]] bool AtEnd() const { return at_ >= end_; }

 private:
  template <typename AnyVisitor>
  bool Walk(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Integer(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Float(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool BitArray(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Optional(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool String(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Struct(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Variant(const Type& type, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Array(const Type& type, uint64_t length, AnyVisitor& visitor);
  template <typename AnyVisitor>
  bool Bytes(const Type& type, uint64_t length, AnyVisitor& visitor);

  bool Align(uint32_t bits) {
    at_ = (at_ + bits - 1) & ~uint64_t{bits - 1};
    return at_ <= end_;
  }
  bool Bits(uint32_t count, bool big_endian, uint64_t& value) {
    if (count > end_ - at_) return false;
    const uint64_t from = at_ / 8;
    const auto skipped = static_cast<uint32_t>(at_ % 8);
    if (bytes_.size() - from < sizeof(value) || skipped + count > 64) {
      return BitByBit(count, big_endian, value);
    }
    std::memcpy(&value, bytes_.data() + from, sizeof(value));
    value = big_endian ? std::byteswap(value) << skipped >> (64 - count)
                       : value << (64 - skipped - count) >> (64 - count);
    at_ += count;
    return true;
  }
  // Bits() near the packet's end, or over nine bytes.
  bool BitByBit(uint32_t count, bool big_endian, uint64_t& value);
  bool Fixed(const Type& type, uint64_t& value) {
    if (!Bits(type.bits, type.big_endian, value)) return false;
    if (type.reversed) value = ReverseBits(value, type.bits);
    return true;
  }
  // Reads an integer that is Type::plain.
  bool Plain(const Type& type, uint64_t& value) {
    if (!Align(type.align) || !Bits(type.bits, false, value)) return false;
    const uint32_t unused = 64 - type.bits;
    if (type.is_signed) {
      value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
    }
    return true;
  }
  bool Variable(const Type& type, uint64_t& value);
  bool Text(const Type& type, std::string_view& text);
  bool ArrayBytes(uint64_t length, std::span<const uint8_t>& bytes);
  std::string_view TextOf(const Type& type, std::span<const uint8_t> bytes);
  static uint64_t ReverseBits(uint64_t value, uint32_t bits);

  std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
  uint64_t end_ = 0;
  uint64_t clock_ = 0;
  uint64_t steps_ = 0;  // left for the current Decode
  std::vector<uint64_t> saved_;
  std::string utf8_;  // of the current text, where the packet has another encoding
};

template <typename AnyVisitor>
bool Decoder::Walk(const Type& type, AnyVisitor& visitor) {
  if (steps_-- == 0) return false;
  if (!Align(type.align)) return false;
  switch (type.kind) {
    case TypeKind::kInteger:
    case TypeKind::kEnum:
      return Integer(type, visitor);
    case TypeKind::kFloat:
      return Float(type, visitor);
    case TypeKind::kString:
      return String(type, visitor);
    case TypeKind::kStruct:
      return Struct(type, visitor);
    case TypeKind::kVariant:
      return Variant(type, visitor);
    case TypeKind::kArray:
      return Array(type, type.length, visitor);
    case TypeKind::kSequence:
      return Array(type, saved_[type.reference_saved], visitor);
    case TypeKind::kBool:
    case TypeKind::kBitMap:
      return BitArray(type, visitor);
    case TypeKind::kOptional:
      return Optional(type, visitor);
  }
  return false;
}

template <typename AnyVisitor>
bool Decoder::Integer(const Type& type, AnyVisitor& visitor) {
  uint64_t value;
  if (!(type.variable ? Variable(type, value) : Fixed(type, value))) return false;
  if (type.clocked) MoveClock(value, type.bits);
  if (type.is_signed && type.bits < 64) {
    const uint64_t sign = uint64_t{1} << (type.bits - 1);
    value = (value ^ sign) - sign;
  }
  if (type.saved != kNotSaved) saved_[type.saved] = value;
  visitor.Integer(type, value);
  return true;
}

template <typename AnyVisitor>
bool Decoder::Float(const Type& type, AnyVisitor& visitor) {
  uint64_t bits;
  if (!Fixed(type, bits)) return false;
  visitor.Float(type, type.bits == 32 ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                                      : std::bit_cast<double>(bits));
  return true;
}

template <typename AnyVisitor>
bool Decoder::BitArray(const Type& type, AnyVisitor& visitor) {
  uint64_t value;
  if (!Fixed(type, value)) return false;
  if (type.saved != kNotSaved) saved_[type.saved] = value;
  if (type.kind == TypeKind::kBool) {
    visitor.Bool(type, value != 0);
  } else {
    visitor.BitMap(type, value);
  }
  return true;
}

template <typename AnyVisitor>
bool Decoder::Optional(const Type& type, AnyVisitor& visitor) {
  const Member& option = type.members.front();
  if (!Selects(option, saved_[type.reference_saved])) {
    visitor.NoOption(type);
    return true;
  }
  visitor.BeginOption(type);
  if (!Walk(option.type, visitor)) return false;
  visitor.EndOption(type);
  return true;
}

template <typename AnyVisitor>
bool Decoder::String(const Type& type, AnyVisitor& visitor) {
  std::string_view text;
  if (!Text(type, text)) return false;
  visitor.Text(type, text);
  return true;
}

template <typename AnyVisitor>
bool Decoder::Struct(const Type& type, AnyVisitor& visitor) {
  visitor.BeginStruct(type);
  for (const Member& member : type.members) {
    if constexpr (requires { visitor.PlainMember(member, uint64_t{}); }) {
      if (member.type.plain) {
        uint64_t value;
        if (!Plain(member.type, value)) return false;
        visitor.PlainMember(member, value);
        continue;
      }
    }
    visitor.BeginMember(type, member);
    if (!Walk(member.type, visitor)) return false;
  }
  visitor.EndStruct(type);
  return true;
}

template <typename AnyVisitor>
bool Decoder::Variant(const Type& type, AnyVisitor& visitor) {
  const uint64_t tag = saved_[type.reference_saved];
  for (const Member& option : type.members) {
    if (!Selects(option, tag)) continue;
    visitor.BeginVariant(type, option);
    if (!Walk(option.type, visitor)) return false;
    visitor.EndVariant(type);
    return true;
  }
  return false;
}

template <typename AnyVisitor>
bool Decoder::Array(const Type& type, uint64_t length, AnyVisitor& visitor) {
  if (type.text || type.blob) return Bytes(type, length, visitor);
  const Type& element = type.element.front();
  visitor.BeginArray(type, length);
  for (uint64_t i = 0; i < length; i++) {
    visitor.BeginElement(type, i);
    if (!Walk(element, visitor)) return false;
  }
  visitor.EndArray(type);
  return true;
}

// Text and BLOBs: `length` counts bytes.
template <typename AnyVisitor>
bool Decoder::Bytes(const Type& type, uint64_t length, AnyVisitor& visitor) {
  std::span<const uint8_t> bytes;
  if (!ArrayBytes(length, bytes)) return false;
  if (type.blob) {
    visitor.Blob(type, bytes);
  } else {
    visitor.Text(type, TextOf(type, bytes));
  }
  return true;
}

// Calls on_label(label) for each label whose ranges have `value`, in order.
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
