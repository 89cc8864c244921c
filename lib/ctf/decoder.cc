// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/decoder.h"

#include <bit>
#include <cstring>

namespace weft::ctf {
namespace {

// The kinds of variant tags are not known here; ranges of signed tags are stored sign-extended, so
// comparing as signed is right for them and for unsigned ones below 2^63.
bool Selects(const Member& option, uint64_t value) {
  for (const Range& range : option.selectors) {
    const bool as_unsigned = range.begin <= value && value <= range.end;
    const bool as_signed = static_cast<int64_t>(range.begin) <= static_cast<int64_t>(value) &&
                           static_cast<int64_t>(value) <= static_cast<int64_t>(range.end);
    if (as_unsigned || as_signed) return true;
  }
  return false;
}

uint64_t SignExtend(uint64_t value, uint32_t bits) {
  if (bits == 64) return value;
  const uint64_t sign = uint64_t{1} << (bits - 1);
  return (value ^ sign) - sign;
}

}  // namespace

void Decoder::SetPacket(std::span<const uint8_t> bytes) {
  bytes_ = bytes;
  at_ = 0;
  end_ = uint64_t{bytes.size()} * 8;
}

bool Decoder::Decode(const Type& type, Visitor& visitor) {
  // Elements without bits are the only ones that the packet's size does not bound.
  steps_ = (end_ > at_ ? end_ - at_ : 0) + 100'000;
  return Walk(type, visitor);
}

bool Decoder::Align(uint32_t bits) {
  at_ = (at_ + bits - 1) & ~uint64_t{bits - 1};
  return at_ <= end_;
}

bool Decoder::Bits(uint32_t count, bool big_endian, uint64_t& value) {
  if (count > end_ - at_) return false;
  value = 0;
  if (at_ % 8 == 0 && count % 8 == 0) {
    const uint8_t* from = bytes_.data() + at_ / 8;
    std::memcpy(&value, from, count / 8);
    if (big_endian) value = std::byteswap(value) >> (64 - count);
  } else {
    for (uint32_t i = 0; i < count; i++) {
      const uint64_t bit = at_ + i;
      const uint8_t byte = bytes_[bit / 8];
      const uint64_t one = big_endian ? (byte >> (7 - bit % 8)) & 1 : (byte >> (bit % 8)) & 1;
      value = big_endian ? value << 1 | one : value | one << i;
    }
  }
  at_ += count;
  return true;
}

bool Decoder::Walk(const Type& type, Visitor& visitor) {
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
  }
  return false;
}

bool Decoder::Integer(const Type& type, Visitor& visitor) {
  uint64_t value;
  if (!Bits(type.bits, type.big_endian, value)) return false;
  if (type.clocked) {
    const uint64_t mask = type.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << type.bits) - 1;
    const uint64_t carry = value < (clock_ & mask) ? mask + 1 : 0;
    clock_ = (clock_ & ~mask) + carry + value;
  }
  if (type.is_signed) value = SignExtend(value, type.bits);
  if (type.saved != kNotSaved) saved_[type.saved] = value;
  visitor.Integer(type, value);
  return true;
}

bool Decoder::Float(const Type& type, Visitor& visitor) {
  uint64_t bits;
  if (!Bits(type.bits, type.big_endian, bits)) return false;
  visitor.Float(type, type.bits == 32 ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                                      : std::bit_cast<double>(bits));
  return true;
}

bool Decoder::String(const Type& type, Visitor& visitor) {
  if (at_ % 8 != 0) return false;
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_ / 8;
  const uint64_t left = (end_ - at_) / 8;
  const void* nul = left == 0 ? nullptr : std::memchr(begin, 0, left);
  if (nul == nullptr) return false;
  const auto size = static_cast<size_t>(static_cast<const char*>(nul) - begin);
  at_ += (uint64_t{size} + 1) * 8;
  visitor.Text(type, {begin, size});
  return true;
}

bool Decoder::Struct(const Type& type, Visitor& visitor) {
  visitor.BeginStruct(type);
  for (const Member& member : type.members) {
    visitor.BeginMember(type, member);
    if (!Walk(member.type, visitor)) return false;
  }
  visitor.EndStruct(type);
  return true;
}

bool Decoder::Variant(const Type& type, Visitor& visitor) {
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

bool Decoder::Array(const Type& type, uint64_t length, Visitor& visitor) {
  const Type& element = type.element.front();
  if (type.text) {
    const uint64_t left = (end_ - at_) / 8;
    if (at_ % 8 != 0 || length > left) return false;
    const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_ / 8;
    const size_t used = ::strnlen(begin, length);
    at_ += length * 8;
    visitor.Text(type, {begin, used});
    return true;
  }
  visitor.BeginArray(type, length);
  for (uint64_t i = 0; i < length; i++) {
    visitor.BeginElement(type, i);
    if (!Walk(element, visitor)) return false;
  }
  visitor.EndArray(type);
  return true;
}

}  // namespace weft::ctf
