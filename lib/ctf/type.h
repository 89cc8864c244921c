// SPDX-License-Identifier: Apache-2.0
// The type of a field of a CTF trace: one model for writing metadata (TSDL
// and CTF 2), for parsing it, and for decoding packets. Invariants: a Type
// owns its children; copies are deep. Names are those that people see: the
// TSDL writer adds the leading underscore, the TSDL parser removes it.
// Only ResolveReferences sets `saved` indexes, `constant_bits`, `plain` and `printable`.
// Thread-safety: plain values.
#ifndef WEFT_LIB_CTF_TYPE_H_
#define WEFT_LIB_CTF_TYPE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft::ctf {

enum class TypeKind : uint8_t {
  kInteger,
  kEnum,  // an integer with mappings
  kFloat,
  kString,  // bytes up to a NUL
  kStruct,
  kVariant,
  kArray,
  kSequence,
  kBool,      // CTF 2: `bits` bits, false where all are 0
  kBitMap,    // CTF 2: `bits` bits; mappings name ranges of them
  kOptional,  // CTF 2: one member, which is there where `reference` selects it
};

// The purpose for which the format itself uses a field. Fields with a role are not shown with an
// event.
enum class Role : uint8_t {
  kNone,
  kMagic,
  kUuid,
  kStreamClass,
  kStreamInstance,
  kBegin,
  kEnd,
  kContentSize,
  kPacketSize,
  kSequenceNumber,
  kDiscarded,
  kEventClass,
  kClock,  // an event's time
};

// A range that includes both ends. They are compared as int64_t if the integer is signed.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct EnumMapping {
  std::string label;
  std::vector<Range> ranges;
};

inline constexpr uint32_t kNotSaved = UINT32_MAX;

struct Member;

struct Type {
  TypeKind kind = TypeKind::kInteger;
  Role role = Role::kNone;
  bool is_signed = false;
  bool big_endian = false;
  bool text = false;      // an 8-bit integer, array or sequence of such that holds UTF-8
  bool blob = false;      // an array or sequence of bytes that CTF 2 calls a BLOB
  bool clocked = false;   // its value updates the stream's clock
  bool variable = false;  // kInteger, kEnum: LEB128 (CTF 2); `bits` is 64
  bool reversed = false;  // the value's bits stand in the other order (CTF 2's bit-order)
  // A decimal kInteger of whole little-endian bytes whose value a decoder need not remember: most
  // fields are such ones, and readers have a short way for them.
  bool plain = false;
  uint8_t unit = 1;     // text: bytes of a code unit: 1 UTF-8, 2 UTF-16, 4 UTF-32
  uint8_t base = 10;    // 2, 8, 10 or 16
  uint8_t bits = 8;     // kInteger, kEnum: 1 to 64; kFloat: 32 or 64
  uint32_t align = 8;   // bits; a power of two
  uint64_t length = 0;  // kArray: elements
  // kVariant, kSequence, kOptional: the integer that selects the option or counts the elements, as
  // the metadata names it ("len", "a.b", "stream.event.context.n"); kNotSaved until resolved. A
  // kInteger that is clocked: the name of its clock, or nothing.
  std::string reference;
  uint32_t reference_saved = kNotSaved;
  uint32_t saved = kNotSaved;  // an integer that is referred to: where a decoder keeps its value
  // Bits of every value of it, padding included. 0: one of its fields has a size or meaning that
  // depends on another one, or a value that the decoder remembers, or it is not resolved.
  uint64_t constant_bits = 0;
  std::string media_type;             // of a BLOB
  std::vector<EnumMapping> mappings;  // kEnum, kBitMap
  std::vector<Member> members;        // kStruct: members; kVariant: options; kOptional: one
  std::vector<Type> element;          // kArray, kSequence: exactly one
};

struct Member {
  std::string name;
  Type type;
  std::vector<Range> selectors;  // of an option: the values that choose it
  bool printable = false;        // the name has printable ASCII only
};

// Whether only the format itself uses the field. Such a field is not shown, unless another field
// refers to it.
inline bool IsInternal(const Type& type) {
  return (type.role != Role::kNone || type.clocked) && type.saved == kNotSaved;
}

inline Type IntegerType(uint8_t bits, bool is_signed, uint8_t base = 10, bool big_endian = false) {
  Type type;
  type.bits = bits;
  type.is_signed = is_signed;
  type.base = base;
  type.big_endian = big_endian;
  return type;
}

inline Type FloatType(uint8_t bits, bool big_endian = false) {
  Type type;
  type.kind = TypeKind::kFloat;
  type.bits = bits;
  type.big_endian = big_endian;
  return type;
}

inline Type StringType() {
  Type type;
  type.kind = TypeKind::kString;
  type.text = true;
  return type;
}

// Returns a BLOB of a constant length (`kind` kArray) or of a length that another field holds
// (kSequence).
inline Type BlobType(TypeKind kind, std::string media_type) {
  Type type;
  type.kind = kind;
  type.blob = true;
  type.media_type = std::move(media_type);
  type.element.push_back(IntegerType(8, false, 16));
  return type;
}

inline Type StructType() {
  Type type;
  type.kind = TypeKind::kStruct;
  return type;
}

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TYPE_H_
