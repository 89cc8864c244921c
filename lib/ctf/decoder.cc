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

uint64_t ReverseBits(uint64_t value, uint32_t bits) {
  uint64_t reversed = 0;
  for (uint32_t i = 0; i < bits; i++) reversed |= ((value >> i) & 1) << (bits - 1 - i);
  return reversed;
}

void AppendUtf8(std::string& out, uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// UTF-16 or UTF-32 as UTF-8, up to a NUL. What is no code point becomes U+FFFD. Returns the bytes
// before the NUL; `size` is a multiple of the code unit.
uint64_t ToUtf8(const Type& type, const uint8_t* bytes, uint64_t size, std::string& out) {
  constexpr uint32_t kReplacement = 0xfffd;
  const auto unit = [&](uint64_t at) {
    uint32_t value = 0;
    for (uint32_t i = 0; i < type.unit; i++) {
      const uint32_t byte = bytes[at + (type.big_endian ? type.unit - 1 - i : i)];
      value |= byte << (8 * i);
    }
    return value;
  };
  out.clear();
  uint64_t at = 0;
  for (; at + type.unit <= size; at += type.unit) {
    uint32_t code = unit(at);
    if (code == 0) break;
    const bool high = code >= 0xd800 && code < 0xdc00;
    if (type.unit == 2 && high && at + 4 <= size) {
      const uint32_t low = unit(at + 2);
      if (low >= 0xdc00 && low < 0xe000) {
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        at += 2;
      }
    }
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) code = kReplacement;
    AppendUtf8(out, code);
  }
  return at;
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
    case TypeKind::kBool:
    case TypeKind::kBitMap:
      return BitArray(type, visitor);
    case TypeKind::kOptional:
      return Optional(type, visitor);
  }
  return false;
}

bool Decoder::Fixed(const Type& type, uint64_t& value) {
  if (!Bits(type.bits, type.big_endian, value)) return false;
  if (type.reversed) value = ReverseBits(value, type.bits);
  return true;
}

// LEB128: seven bits a byte, the lowest first; the highest bit tells that another byte follows.
bool Decoder::Variable(const Type& type, uint64_t& value) {
  value = 0;
  uint64_t byte = 0x80;
  for (uint32_t shift = 0; (byte & 0x80) != 0; shift += 7) {
    if (shift >= 70 || !Bits(8, false, byte)) return false;
    const uint64_t bits = byte & 0x7f;
    value |= shift < 64 ? bits << shift : 0;
    const bool last = (byte & 0x80) == 0;
    const bool negative = type.is_signed && (byte & 0x40) != 0;
    // The tenth byte has one bit of the value; its others repeat the sign.
    if (shift == 63 && bits != (negative ? 0x7f : type.is_signed ? 0 : bits & 1)) return false;
    if (last && negative && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
  }
  return true;
}

bool Decoder::Integer(const Type& type, Visitor& visitor) {
  uint64_t value;
  if (!(type.variable ? Variable(type, value) : Fixed(type, value))) return false;
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
  if (!Fixed(type, bits)) return false;
  visitor.Float(type, type.bits == 32 ? double{std::bit_cast<float>(static_cast<uint32_t>(bits))}
                                      : std::bit_cast<double>(bits));
  return true;
}

bool Decoder::BitArray(const Type& type, Visitor& visitor) {
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

bool Decoder::Optional(const Type& type, Visitor& visitor) {
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

bool Decoder::String(const Type& type, Visitor& visitor) {
  if (at_ % 8 != 0) return false;
  if (type.unit > 1) {
    const uint64_t left = (end_ - at_) / 8 / type.unit * type.unit;
    const uint64_t used = ToUtf8(type, bytes_.data() + at_ / 8, left, utf8_);
    if (used >= left) return false;
    at_ += (used + type.unit) * 8;
    visitor.Text(type, utf8_);
    return true;
  }
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
bool Decoder::Bytes(const Type& type, uint64_t length, Visitor& visitor) {
  if (at_ % 8 != 0 || length > (end_ - at_) / 8) return false;
  const std::span<const uint8_t> bytes = bytes_.subspan(at_ / 8, length);
  at_ += length * 8;
  if (type.blob) {
    visitor.Blob(type, bytes);
  } else if (type.unit > 1) {
    ToUtf8(type, bytes.data(), length, utf8_);
    visitor.Text(type, utf8_);
  } else {
    const auto* begin = reinterpret_cast<const char*>(bytes.data());
    visitor.Text(type, {begin, ::strnlen(begin, length)});
  }
  return true;
}

}  // namespace weft::ctf
