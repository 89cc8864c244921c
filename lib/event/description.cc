// SPDX-License-Identifier: Apache-2.0
#include "lib/event/description.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "lib/event/text.h"

namespace weft {
namespace {

constexpr uint8_t kKnownFlags = 0x7f;

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, "event description: " + std::move(what));
}

std::unexpected<Error> Invalid(std::string what) {
  return Fail(ErrorCode::kInvalid, "event description: " + std::move(what));
}

// Takes `size` bytes, which end with a NUL and have none before.
Result<std::string> ReadText(ByteReader& reader, size_t size, const char* what) {
  const std::string_view text = reader.ReadString(size);
  if (!reader.ok() || text.empty() || text.back() != 0)
    return Corrupt(std::string(what) + " has no end");
  std::string out(text.substr(0, text.size() - 1));
  if (out.find('\0') != std::string::npos) return Corrupt(std::string("a NUL in ") + what);
  return out;
}

// A name stands in messages and file names as it is; labels and URIs are data of the program.
Result<std::string> ReadName(ByteReader& reader, size_t size, const char* what) {
  WEFT_ASSIGN(std::string out, ReadText(reader, size, what));
  if (!IsPrintableUtf8(out)) return Invalid(std::string(what) + " is no printable UTF-8");
  return out;
}

bool IsElementSize(uint8_t size, bool is_float) {
  if (is_float) return size == 4 || size == 8;
  return size == 1 || size == 2 || size == 4 || size == 8;
}

// Do kind, sizes and flags go together? `count` is the one in the bytes: mappings in an enum.
bool KindFits(const FieldDescription& f) {
  const bool has_count = f.kind == FieldKind::kArray || f.kind == FieldKind::kEnum;
  if (f.count != 0 && !has_count) return false;
  if (f.base != 0 && f.base != 2 && f.base != 8 && f.base != 10 && f.base != 16) return false;
  const bool elements_fit =
      IsElementSize(f.elem_size, f.has_float_elements()) && (!f.is_text() || f.elem_size == 1);
  switch (f.kind) {
    case FieldKind::kInteger:
    case FieldKind::kEnum:
      return IsElementSize(f.elem_size, false);
    case FieldKind::kFloat:
      return IsElementSize(f.elem_size, true);
    case FieldKind::kString:
      return f.elem_size <= 1;
    case FieldKind::kSequence:
      return elements_fit && IsElementSize(f.length_size, false);
    case FieldKind::kArray: {
      const uint64_t bytes = uint64_t{f.count} * f.elem_size;
      return elements_fit && bytes <= (f.is_inline() ? WEFT_INLINE_ARRAY_MAX
                                                     : std::numeric_limits<uint32_t>::max());
    }
  }
  return false;
}

Result<std::vector<EnumMapping>> ParseMappings(ByteReader& reader, uint32_t count) {
  std::vector<EnumMapping> mappings;
  for (uint32_t i = 0; i < count; ++i) {
    const auto head = reader.Read<weft_enum_mapping>();
    if (!reader.ok() || head.size <= sizeof(head) || head.reserved != 0)
      return Corrupt("a mapping is broken");
    WEFT_ASSIGN(std::string label, ReadText(reader, head.size - sizeof(head), "a label"));
    mappings.push_back({std::move(label), head.begin, head.end});
  }
  return mappings;
}

// Behind the name of an array or sequence of bytes may stand the media type that makes it a BLOB.
void TakeMediaType(ByteReader& reader, FieldDescription& field) {
  const std::string_view rest = reader.ReadString(reader.remaining());
  const size_t end = rest.find('\0');
  const bool bytes = field.elem_size == 1 && !field.is_text() && !field.is_signed();
  if (end == std::string_view::npos || !bytes) return;
  field.blob = true;
  field.media_type = rest.substr(0, end);
}

Result<FieldDescription> ParseField(ByteReader& reader, FieldNames names) {
  const size_t begin = reader.offset();
  const auto head = reader.Read<weft_field_desc>();
  if (!reader.ok() || head.size < sizeof(head) || head.size - sizeof(head) > reader.remaining())
    return Corrupt("a field is cut off");
  ByteReader body(reader.ReadBytes(head.size - sizeof(head)));
  FieldDescription field{.kind = static_cast<FieldKind>(head.kind),
                         .flags = head.flags,
                         .elem_size = head.elem_size,
                         .base = head.base,
                         .count = head.count,
                         .length_size = head.length_size,
                         .length_flags = head.length_flags};
  if (head.name_size < 2 || head.name_size > WEFT_EVENT_NAME_MAX)
    return Corrupt("a field's name has a wrong size");
  WEFT_ASSIGN(field.name, ReadName(body, head.name_size, "a field's name"));
  const bool name_fits =
      IsIdentifier(field.name) || (names == FieldNames::kPaths && IsFieldPath(field.name));
  if (!name_fits) return Invalid("a field's name is no identifier: '" + field.name + "'");
  if ((head.flags & ~kKnownFlags) != 0 || !KindFits(field))
    return Corrupt("field '" + field.name + "' at byte " + std::to_string(begin) +
                   " contradicts itself");
  if (field.kind == FieldKind::kEnum) {
    WEFT_ASSIGN(field.mappings, ParseMappings(body, head.count));
    field.count = 0;
  }
  if (field.kind == FieldKind::kArray || field.kind == FieldKind::kSequence) {
    TakeMediaType(body, field);
  }
  return field;
}

template <typename T>
void Append(std::vector<uint8_t>& out, const T& value) {
  const auto* p = reinterpret_cast<const uint8_t*>(&value);
  out.insert(out.end(), p, p + sizeof(T));
}

void AppendText(std::vector<uint8_t>& out, std::string_view text) {
  out.insert(out.end(), text.begin(), text.end());
  out.push_back(0);
}

std::vector<uint8_t> EncodeField(const FieldDescription& field) {
  std::vector<uint8_t> behind_name;
  for (const EnumMapping& mapping : field.mappings) {
    Append(behind_name, weft_enum_mapping{.size = static_cast<uint32_t>(sizeof(weft_enum_mapping) +
                                                                        mapping.label.size() + 1),
                                          .reserved = 0,
                                          .begin = mapping.begin,
                                          .end = mapping.end});
    AppendText(behind_name, mapping.label);
  }
  if (field.blob) AppendText(behind_name, field.media_type);
  const bool is_enum = field.kind == FieldKind::kEnum;
  std::vector<uint8_t> out;
  Append(out, weft_field_desc{
                  .size = static_cast<uint32_t>(sizeof(weft_field_desc) + field.name.size() + 1 +
                                                behind_name.size()),
                  .kind = static_cast<uint8_t>(field.kind),
                  .flags = field.flags,
                  .elem_size = field.elem_size,
                  .base = field.base,
                  .count = is_enum ? static_cast<uint32_t>(field.mappings.size()) : field.count,
                  .name_size = static_cast<uint16_t>(field.name.size() + 1),
                  .length_size = field.length_size,
                  .length_flags = field.length_flags});
  AppendText(out, field.name);
  out.insert(out.end(), behind_name.begin(), behind_name.end());
  return out;
}

}  // namespace

Result<EventDescription> EventDescription::Parse(Bytes bytes, FieldNames names) {
  ByteReader start(bytes);
  const auto head = start.Read<weft_event_desc>();
  if (!start.ok()) return Corrupt("shorter than its header");
  if (head.version != WEFT_EVENT_DESC_VERSION)
    return Fail(ErrorCode::kUnsupported,
                "event description: version " + std::to_string(head.version));
  if (head.size < sizeof(head) || head.size > bytes.size() || head.size > WEFT_EVENT_DESC_MAX_BYTES)
    return Corrupt("wrong size");
  if (head.reserved[0] != 0 || head.reserved[1] != 0) return Corrupt("reserved is not zero");
  if (head.name_size < 2 || head.name_size > WEFT_EVENT_NAME_MAX ||
      head.field_count > WEFT_EVENT_MAX_FIELDS)
    return Corrupt("over a limit");
  ByteReader reader(bytes.subspan(sizeof(head), head.size - sizeof(head)));
  EventDescription event{.loglevel = head.loglevel};
  WEFT_ASSIGN(event.name, ReadName(reader, head.name_size, "the event's name"));
  if (head.uri_size != 0) {
    WEFT_ASSIGN(event.uri, ReadText(reader, head.uri_size, "the URI"));
  }
  std::unordered_set<std::string> seen;
  for (uint32_t i = 0; i < head.field_count; ++i) {
    WEFT_ASSIGN(FieldDescription field, ParseField(reader, names));
    if (!seen.insert(field.name).second) return Invalid("two fields '" + field.name + "'");
    event.fields.push_back(std::move(field));
  }
  event.ComputeLayout();
  return event;
}

void EventDescription::ComputeLayout() {
  uint32_t fixed[2] = {0, 0};
  uint32_t segments[2] = {0, 0};
  for (FieldDescription& f : fields) {
    const size_t part = f.is_nowrite() ? 1 : 0;
    f.fixed_offset = fixed[part];
    f.fixed_bytes = f.elem_size;
    f.segment.reset();
    const bool counted = f.kind == FieldKind::kString || f.kind == FieldKind::kSequence;
    const bool far = counted || (f.kind == FieldKind::kArray && !f.is_inline());
    if (counted) f.fixed_bytes = sizeof(uint32_t);
    if (f.kind == FieldKind::kArray) f.fixed_bytes = far ? 0 : f.count * f.elem_size;
    if (far) f.segment = segments[part]++;
    fixed[part] += f.fixed_bytes;
  }
  fixed_size = fixed[0];
  nowrite_size = fixed[1];
  segment_count = segments[0];
  nowrite_segments = segments[1];
  for (FieldDescription& f : fields) {
    if (!f.is_nowrite()) continue;
    f.fixed_offset += fixed_size;
    if (f.segment) *f.segment += segment_count;
  }
}

Result<std::vector<uint8_t>> EventDescription::Encode() const {
  const size_t longest = std::numeric_limits<uint16_t>::max();
  std::vector<uint8_t> out;
  Append(out, weft_event_desc{.size = 0,
                              .version = WEFT_EVENT_DESC_VERSION,
                              .field_count = static_cast<uint16_t>(fields.size()),
                              .loglevel = loglevel,
                              .name_size = static_cast<uint16_t>(name.size() + 1),
                              .uri_size = static_cast<uint16_t>(uri.empty() ? 0 : uri.size() + 1),
                              .reserved = {0, 0}});
  AppendText(out, name);
  if (!uri.empty()) AppendText(out, uri);
  bool fits = name.size() < WEFT_EVENT_NAME_MAX && uri.size() < longest &&
              fields.size() <= WEFT_EVENT_MAX_FIELDS;
  for (const FieldDescription& field : fields) {
    fits = fits && field.name.size() < WEFT_EVENT_NAME_MAX;
    const std::vector<uint8_t> bytes = EncodeField(field);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  if (!fits || out.size() > WEFT_EVENT_DESC_MAX_BYTES)
    return Fail(ErrorCode::kLimit, "event '" + name + "': its description is too large");
  const auto size = static_cast<uint32_t>(out.size());
  std::memcpy(out.data(), &size, sizeof(size));
  return out;
}

const FieldDescription* EventDescription::FindField(std::string_view field_name) const {
  const auto it = std::ranges::find(fields, field_name, &FieldDescription::name);
  return it == fields.end() ? nullptr : &*it;
}

}  // namespace weft
