// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/decoder.h"

#include <cstring>

namespace weft::ctf {
namespace {

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

// Converts UTF-16 or UTF-32 to UTF-8, up to a NUL. Units that are no code point become U+FFFD.
// Returns the bytes before the NUL; `size` is a multiple of the code unit.
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

// For Decoder::Skip.
class Ignore final : public Visitor {};

}  // namespace

void Decoder::SetPacket(std::span<const uint8_t> bytes) {
  bytes_ = bytes;
  at_ = 0;
  end_ = uint64_t{bytes.size()} * 8;
}

// The kinds of variant tags are not known here; ranges of signed tags are stored sign-extended, so
// comparing as signed is right for them and for unsigned ones below 2^63.
bool Decoder::Selects(const Member& option, uint64_t value) {
  for (const Range& range : option.selectors) {
    const bool as_unsigned = range.begin <= value && value <= range.end;
    const bool as_signed = static_cast<int64_t>(range.begin) <= static_cast<int64_t>(value) &&
                           static_cast<int64_t>(value) <= static_cast<int64_t>(range.end);
    if (as_unsigned || as_signed) return true;
  }
  return false;
}

uint64_t Decoder::ReverseBits(uint64_t value, uint32_t bits) {
  uint64_t reversed = 0;
  for (uint32_t i = 0; i < bits; i++) reversed |= ((value >> i) & 1) << (bits - 1 - i);
  return reversed;
}

bool Decoder::Skip(const Type& type) {
  if (type.constant_bits == 0) {
    Ignore ignore;
    return Decode(type, ignore);
  }
  if (!Align(type.align) || type.constant_bits > end_ - at_) return false;
  at_ += type.constant_bits;
  return true;
}

bool Decoder::BitByBit(uint32_t count, bool big_endian, uint64_t& value) {
  value = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t bit = at_ + i;
    const uint8_t byte = bytes_[bit / 8];
    const uint64_t one = big_endian ? (byte >> (7 - bit % 8)) & 1 : (byte >> (bit % 8)) & 1;
    value = big_endian ? value << 1 | one : value | one << i;
  }
  at_ += count;
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

// Reads the text up to the NUL that ends it.
bool Decoder::Text(const Type& type, std::string_view& text) {
  if (at_ % 8 != 0) return false;
  if (type.unit > 1) {
    const uint64_t left = (end_ - at_) / 8 / type.unit * type.unit;
    const uint64_t used = ToUtf8(type, bytes_.data() + at_ / 8, left, utf8_);
    if (used >= left) return false;
    at_ += (used + type.unit) * 8;
    text = utf8_;
    return true;
  }
  const auto* begin = reinterpret_cast<const char*>(bytes_.data()) + at_ / 8;
  const uint64_t left = (end_ - at_) / 8;
  const void* nul = left == 0 ? nullptr : std::memchr(begin, 0, left);
  if (nul == nullptr) return false;
  const auto size = static_cast<size_t>(static_cast<const char*>(nul) - begin);
  at_ += (uint64_t{size} + 1) * 8;
  text = {begin, size};
  return true;
}

bool Decoder::ArrayBytes(uint64_t length, std::span<const uint8_t>& bytes) {
  if (at_ % 8 != 0 || length > (end_ - at_) / 8) return false;
  bytes = bytes_.subspan(at_ / 8, length);
  at_ += length * 8;
  return true;
}

std::string_view Decoder::TextOf(const Type& type, std::span<const uint8_t> bytes) {
  if (type.unit > 1) {
    ToUtf8(type, bytes.data(), bytes.size(), utf8_);
    return utf8_;
  }
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  return {begin, ::strnlen(begin, bytes.size())};
}

}  // namespace weft::ctf
