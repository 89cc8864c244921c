// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/ctf2_writer.h"

#include <nlohmann/json.hpp>

#include "lib/base/uuid.h"
#include "lib/ctf/ctf2_names.h"
#include "lib/ctf/text.h"
#include "lib/ctf/vpid_range.h"

namespace weft::ctf {
namespace {

using Json = nlohmann::ordered_json;

// Returns one JSON text of the sequence. JSON allows an unescaped DEL in a string; babeltrace2 2.1
// refuses it.
std::string Record(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (size_t at = 0; (at = text.find('\x7f', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u007f");
  }
  return kRecordSeparator + text + "\n";
}

Json RangeJson(const Range& range, bool is_signed) {
  if (is_signed) {
    return Json::array({static_cast<int64_t>(range.begin), static_cast<int64_t>(range.end)});
  }
  return Json::array({range.begin, range.end});
}

Json Ranges(const std::vector<Range>& ranges, bool is_signed) {
  Json json = Json::array();
  for (const Range& range : ranges) json.push_back(RangeJson(range, is_signed));
  return json;
}

Json Number(const Type& type, const char* name) {
  return {{"type", name},
          {"length", type.bits},
          {"byte-order", type.big_endian ? "big-endian" : "little-endian"},
          {"alignment", type.align}};
}

Json Integer(const Type& type) {
  Json json = Number(
      type, type.is_signed ? "fixed-length-signed-integer" : "fixed-length-unsigned-integer");
  if (type.base != 10) json["preferred-display-base"] = type.base;
  if (type.kind == TypeKind::kEnum) {
    Json mappings = Json::object();
    for (const EnumMapping& mapping : type.mappings) {
      // Labels that are no UTF-8 may become the same one.
      Json& ranges = mappings[ValidText(mapping.label)];
      for (Json& range : Ranges(mapping.ranges, type.is_signed)) ranges.push_back(std::move(range));
    }
    json["mappings"] = std::move(mappings);
  }
  for (const auto& [role, name] : kRoleNames) {
    if (role == type.role) json["roles"] = Json::array({name});
  }
  return json;
}

// A reference in weft's traces names a member of the scope's own structure.
Json Location(const Type& type, std::string_view origin) {
  return {{"origin", origin}, {"path", Json::array({type.reference})}};
}

Json FieldClass(const Type& type, std::string_view origin);

Json Compound(const Type& type, std::string_view origin) {
  Json members = Json::array();
  const bool is_struct = type.kind == TypeKind::kStruct;
  for (const Member& member : type.members) {
    Json json = {{"name", member.name}};
    if (!is_struct) json["selector-field-ranges"] = Ranges(member.selectors, true);
    json["field-class"] = FieldClass(member.type, origin);
    members.push_back(std::move(json));
  }
  if (is_struct) {
    return {{"type", "structure"},
            {"minimum-alignment", type.align},
            {"member-classes", std::move(members)}};
  }
  return {{"type", "variant"},
          {"selector-field-location", Location(type, origin)},
          {"options", std::move(members)}};
}

Json Array(const Type& type, std::string_view origin) {
  const bool fixed = type.kind == TypeKind::kArray;
  if (type.role == Role::kUuid) {
    return {{"type", "static-length-blob"},
            {"length", type.length},
            {"roles", Json::array({"metadata-stream-uuid"})}};
  }
  Json json = Json::object();
  if (type.blob) {
    json["type"] = fixed ? "static-length-blob" : "dynamic-length-blob";
    if (!type.media_type.empty()) json["media-type"] = type.media_type;
  } else if (type.text) {
    json["type"] = fixed ? "static-length-string" : "dynamic-length-string";
  } else {
    json["type"] = fixed ? "static-length-array" : "dynamic-length-array";
    json["element-field-class"] = FieldClass(type.element.front(), origin);
  }
  if (fixed) {
    json["length"] = type.length;
  } else {
    json["length-field-location"] = Location(type, origin);
  }
  return json;
}

Json FieldClass(const Type& type, std::string_view origin) {
  switch (type.kind) {
    case TypeKind::kInteger:
    case TypeKind::kEnum:
      return Integer(type);
    case TypeKind::kFloat:
      return Number(type, "fixed-length-floating-point-number");
    case TypeKind::kString:
      return {{"type", "null-terminated-string"}};
    case TypeKind::kStruct:
    case TypeKind::kVariant:
      return Compound(type, origin);
    case TypeKind::kArray:
    case TypeKind::kSequence:
      return Array(type, origin);
    case TypeKind::kBool:
    case TypeKind::kBitMap:
    case TypeKind::kOptional:
      break;  // read only: weft records none of them
  }
  return {};
}

Member Field(const char* name, uint8_t bits, Role role, uint32_t align = 8) {
  Type type = IntegerType(bits, false);
  type.role = role;
  type.align = align;
  return {name, std::move(type), {}};
}

Type PacketHeader() {
  Type header = StructType();
  Type uuid;
  uuid.kind = TypeKind::kArray;
  uuid.length = 16;
  uuid.role = Role::kUuid;
  header.members = {Field("magic", 32, Role::kMagic),
                    {"uuid", std::move(uuid), {}},
                    Field("stream_id", 32, Role::kStreamClass),
                    Field("stream_instance_id", 64, Role::kStreamInstance)};
  return header;
}

Type PacketContext() {
  Type context = StructType();
  context.members = {Field("timestamp_begin", 64, Role::kBegin),
                     Field("timestamp_end", 64, Role::kEnd),
                     Field("content_size", 64, Role::kContentSize),
                     Field("packet_size", 64, Role::kPacketSize),
                     Field("packet_seq_num", 64, Role::kSequenceNumber),
                     Field("events_discarded", 64, Role::kDiscarded),
                     Field("cpu_id", 32, Role::kNone)};
  return context;
}

// Returns the forms of an event header that packet_writer.cc writes.
Type EventHeader() {
  struct Form {
    const char* name;
    uint8_t id_bits, time_bits;
    uint32_t align;
  };
  static constexpr Form kForms[] = {
      {"tiny", 6, 16, 1}, {"small", 6, 24, 1}, {"medium", 14, 32, 1}, {"extended", 32, 64, 8}};
  Type header = StructType();
  Type variant;
  variant.kind = TypeKind::kVariant;
  variant.reference = "form";
  uint64_t number = 0;
  for (const Form& form : kForms) {
    Type option = StructType();
    option.align = form.align;
    option.members = {Field("id", form.id_bits, Role::kEventClass, form.align),
                      Field("timestamp", form.time_bits, Role::kClock, form.align)};
    variant.members.push_back({form.name, std::move(option), {{number, number}}});
    number++;
  }
  header.members = {Field("form", 2, Role::kNone), {"v", std::move(variant), {}}};
  return header;
}

Json UuidBytes(const Uuid& uuid) {
  Json json = Json::array();
  for (const uint8_t byte : uuid) json.push_back(byte);
  return json;
}

}  // namespace

std::string Ctf2Trace(const TraceInfo& trace) {
  Json env = Json::object();
  if (trace.vpids) {  // of the shortest form; made as wide as they have to be below
    env["vpid_min"] = 0;
    env["vpid_max"] = 0;
  }
  for (const EnvEntry& entry : trace.env) {
    const auto* number = std::get_if<int64_t>(&entry.value);
    const std::string name = IdentifierName(entry.name);
    if (number != nullptr) {
      env[name] = *number;
    } else {
      env[name] = ValidText(std::get<std::string>(entry.value));
    }
  }
  std::string out = Record({{"type", "preamble"}, {"version", 2}, {"uuid", UuidBytes(trace.uuid)}});
  out += Record({{"type", "trace-class"},
                 {"uid", FormatUuid(trace.uuid)},
                 {"environment", std::move(env)},
                 {"packet-header-field-class", FieldClass(PacketHeader(), "packet-header")}});
  if (trace.vpids) {
    constexpr std::string_view kShort = R"("vpid_min":0,"vpid_max":0)";
    out.replace(out.find(kShort), kShort.size(), VpidRangeText(Version::k2, *trace.vpids));
  }
  const Clock& clock = trace.clock;
  Json json = {
      {"type", "clock-class"},
      {"id", IdentifierName(clock.name)},
      {"name", IdentifierName(clock.name)},
      {"uid", FormatUuid(clock.uuid)},
      {"frequency", 1'000'000'000},
      {"origin", "unix-epoch"},
      {"offset-from-origin", {{"seconds", clock.offset_seconds}, {"cycles", clock.offset_ns}}}};
  if (!clock.description.empty()) json["description"] = ValidText(clock.description);
  if (clock.precision_ns != 0) json["precision"] = clock.precision_ns;
  return out + Record(json) + "\n";
}

std::string Ctf2Channel(const TraceInfo& trace, const Channel& channel) {
  Json json = {
      {"type", "data-stream-class"},
      {"id", channel.id},
      {"name", PrintableName(channel.name)},
      {"default-clock-class-id", IdentifierName(trace.clock.name)},
      {"packet-context-field-class", FieldClass(PacketContext(), "packet-context")},
      {"event-record-header-field-class", FieldClass(EventHeader(), "event-record-header")}};
  if (!channel.context.members.empty()) {
    json["event-record-common-context-field-class"] =
        FieldClass(channel.context, "event-record-common-context");
  }
  return Record(json) + "\n";
}

std::string Ctf2Event(const EventClass& event) {
  Json json = {{"type", "event-record-class"},
               {"data-stream-class-id", event.channel},
               {"id", event.id},
               {"name", event.name}};
  Json attributes = Json::object();
  if (event.loglevel >= 0 && static_cast<size_t>(event.loglevel) < kLogLevelNames.size()) {
    attributes["log-level"] = kLogLevelNames[static_cast<size_t>(event.loglevel)];
  }
  if (!event.uri.empty()) attributes["emf-uri"] = event.uri;
  if (!attributes.empty()) {
    json["attributes"][std::string(kAttributeNamespace)] = std::move(attributes);
  }
  json["payload-field-class"] = FieldClass(event.payload, "event-record-payload");
  return Record(json) + "\n";
}

}  // namespace weft::ctf
