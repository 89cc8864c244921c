// SPDX-License-Identifier: Apache-2.0
// Event descriptions (lib/abi/event.h) for C++: consumers parse what they find in a ring set, which
// a traced program can write; agents and tests encode. docs/formats/event.md has an example.
//
// A parsed EventDescription obeys, whatever the bytes were:
//   1. names of fields are identifiers (or, if asked for, paths), and differ from each other;
//   2. the event's name is printable UTF-8 without control characters. The URI and labels are any
//      bytes but NUL: a writer of text escapes them;
//   3. kinds, sizes and flags go together as lib/abi/event.h says; the layout is computed, not
//      read.
// Thread-safety: they are plain values.
#ifndef WEFT_LIB_EVENT_DESCRIPTION_H_
#define WEFT_LIB_EVENT_DESCRIPTION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/abi/event.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft {

enum class FieldKind : uint8_t {
  kInteger = WEFT_FIELD_KIND_INTEGER,
  kFloat = WEFT_FIELD_KIND_FLOAT,
  kString = WEFT_FIELD_KIND_STRING,
  kArray = WEFT_FIELD_KIND_ARRAY,
  kSequence = WEFT_FIELD_KIND_SEQUENCE,
  kEnum = WEFT_FIELD_KIND_ENUM,
};

struct EnumMapping {
  std::string label;
  uint64_t begin = 0;  // both included; int64 bits in a signed enum
  uint64_t end = 0;

  bool operator==(const EnumMapping&) const = default;
};

struct FieldDescription {
  std::string name;
  FieldKind kind = FieldKind::kInteger;
  uint8_t flags = 0;      // enum weft_field_flag
  uint8_t elem_size = 4;  // bytes of the value or of one element
  uint8_t base = 10;      // 2, 8, 10 or 16
  uint32_t count = 0;     // elements of an array
  uint8_t length_size = 0;
  uint8_t length_flags = 0;
  std::vector<EnumMapping> mappings;
  bool blob = false;       // an array or sequence of unsigned bytes that has a media type
  std::string media_type;  // may be empty

  // The layout of the image, set by EventDescription::ComputeLayout. fixed_offset counts from the
  // start of the fixed part, also for nowrite fields.
  uint32_t fixed_offset = 0;
  uint32_t fixed_bytes = 0;
  std::optional<uint32_t> segment;

  [[nodiscard]] bool is_signed() const { return (flags & WEFT_FIELD_SIGNED) != 0; }
  [[nodiscard]] bool is_network_order() const { return (flags & WEFT_FIELD_NETWORK) != 0; }
  [[nodiscard]] bool is_text() const { return (flags & WEFT_FIELD_TEXT) != 0; }
  [[nodiscard]] bool is_nowrite() const { return (flags & WEFT_FIELD_NOWRITE) != 0; }
  [[nodiscard]] bool is_inline() const { return (flags & WEFT_FIELD_INLINE) != 0; }
  [[nodiscard]] bool has_float_elements() const { return (flags & WEFT_FIELD_FLOAT_ELEMENTS) != 0; }
  [[nodiscard]] bool is_pointer() const { return (flags & WEFT_FIELD_POINTER) != 0; }

  bool operator==(const FieldDescription&) const = default;
};

enum class FieldNames {
  kIdentifiers,
  kPaths,  // also "a.b[2].c", members of nested structures (kernel events)
};

struct EventDescription {
  std::string name;  // "provider:event"
  std::string uri;   // model.emf.uri, may be empty
  int32_t loglevel = 13;
  std::vector<FieldDescription> fields;

  uint32_t fixed_size = 0;     // bytes of the recorded fixed part
  uint32_t nowrite_size = 0;   // bytes of the nowrite fixed part behind it
  uint32_t segment_count = 0;  // recorded segments
  uint32_t nowrite_segments = 0;

  // Foreign bytes; what stands behind the description is not looked at. kCorrupt: the bytes break
  // the format; kInvalid: well-formed, but breaks rule 1 or 2; kUnsupported: a later version.
  static Result<EventDescription> Parse(Bytes bytes, FieldNames names = FieldNames::kIdentifiers);

  // Sets the layout of all fields and the sums above from kinds, flags and counts.
  void ComputeLayout();

  // Returns the bytes that Parse reads. kLimit: too large for the format; no other rule is checked.
  [[nodiscard]] Result<std::vector<uint8_t>> Encode() const;

  [[nodiscard]] const FieldDescription* FindField(std::string_view field_name) const;

  bool operator==(const EventDescription&) const = default;
};

}  // namespace weft

#endif  // WEFT_LIB_EVENT_DESCRIPTION_H_
