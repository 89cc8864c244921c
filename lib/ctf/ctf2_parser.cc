// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/ctf2_parser.h"

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "lib/ctf/ctf2_names.h"
#include "lib/ctf/resolve.h"

namespace weft::ctf {
namespace {

using Json = nlohmann::ordered_json;

std::unexpected<Error> Bad(std::string what) {
  return Fail(ErrorCode::kCorrupt, "metadata: " + std::move(what));
}

// Returns the member `name` of an object, nullptr if there is none.
const Json* Find(const Json& json, const char* name) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(name);
  return found == json.end() ? nullptr : &*found;
}

std::string Text(const Json& json, const char* name) {
  const Json* text = Find(json, name);
  return text != nullptr && text->is_string() ? text->get<std::string>() : std::string();
}

// Returns an integer as two's complement.
uint64_t Bits(const Json& json) {
  if (json.is_number_unsigned()) return json.get<uint64_t>();
  return json.is_number_integer() ? static_cast<uint64_t>(json.get<int64_t>()) : 0;
}

uint64_t Number(const Json& json, const char* name, uint64_t otherwise) {
  const Json* number = Find(json, name);
  return number != nullptr && number->is_number_integer() ? Bits(*number) : otherwise;
}

Result<std::vector<Range>> Ranges(const Json& json) {
  std::vector<Range> ranges;
  if (!json.is_array()) return Bad("ranges are no array");
  for (const Json& range : json) {
    if (!range.is_array() || range.size() != 2) return Bad("a range has not two ends");
    ranges.push_back({Bits(range[0]), Bits(range[1])});
  }
  return ranges;
}

class Ctf2Parser {
 public:
  Result<TraceClass> Parse(std::string_view text) {
    for (size_t number = 1; !text.empty(); number++) {
      if (text.front() != kRecordSeparator) return Bad("a record does not begin with RS");
      const size_t next = std::min(text.find(kRecordSeparator, 1), text.size());
      const Json json = Json::parse(text.substr(1, next - 1), nullptr, false);
      text.remove_prefix(next);
      if (json.is_discarded()) {
        const std::string what = "record " + std::to_string(number) + " is no JSON";
        if (!has_preamble_) return Bad(what);
        trace_.AddProblem("metadata: " + what);
        continue;
      }
      WEFT_TRY(Fragment(json));
    }
    if (!has_preamble_) return Bad("there is no preamble");
    return std::move(trace_);
  }

 private:
  Status Fragment(const Json& json) {
    const std::string type = Text(json, "type");
    if (type == "preamble") return Preamble(json);
    if (type == "trace-class") return Trace(json);
    Status status;
    if (type == "clock-class") {
      status = Clock(json);
    } else if (type == "data-stream-class") {
      status = Stream(json);
    } else if (type == "event-record-class") {
      status = Event(json);
    } else if (type == "field-class-alias") {
      status = Alias(json);
    } else {
      status = Bad("unknown fragment '" + type + "'");
    }
    if (!status) trace_.AddProblem(status.error().message);
    return {};
  }

  Status Preamble(const Json& json) {
    if (Number(json, "version", 0) != 2) return Bad("it is not of version 2");
    has_preamble_ = true;
    const Json* uuid = Find(json, "uuid");
    if (uuid == nullptr) return {};
    if (!uuid->is_array() || uuid->size() != 16) return Bad("the UUID has not 16 bytes");
    trace_.uuid.emplace();
    for (size_t i = 0; i < 16; i++) (*trace_.uuid)[i] = static_cast<uint8_t>(Bits((*uuid)[i]));
    return {};
  }

  Status Trace(const Json& json) {
    if (const Json* env = Find(json, "environment"); env != nullptr && env->is_object()) {
      for (const auto& [name, value] : env->items()) {
        if (value.is_string()) {
          trace_.env.push_back({name, value.get<std::string>()});
        } else {
          trace_.env.push_back({name, static_cast<int64_t>(Bits(value))});
        }
      }
    }
    return Scope(json, "packet-header-field-class", trace_.packet_header, Role::kNone);
  }

  Status Clock(const Json& json) {
    ClockClass clock;
    clock.name = Text(json, "id");
    if (clock.name.empty()) clock.name = Text(json, "name");
    clock.frequency = Number(json, "frequency", 0);
    if (clock.frequency == 0) return Bad("clock '" + clock.name + "' has no frequency");
    if (const Json* offset = Find(json, "offset-from-origin")) {
      clock.offset_seconds = static_cast<int64_t>(Number(*offset, "seconds", 0));
      clock.offset_cycles = Number(*offset, "cycles", 0);
    }
    clocks_.emplace(clock.name, std::move(clock));
    return {};
  }

  Status Stream(const Json& json) {
    DataStreamClass stream{.id = Number(json, "id", 0)};
    const std::string where = "stream " + std::to_string(stream.id);
    if (trace_.streams.contains(stream.id)) return Bad(where + " is there twice");
    if (const std::string clock = Text(json, "default-clock-class-id"); !clock.empty()) {
      const auto found = clocks_.find(clock);
      if (found != clocks_.end()) {
        stream.clock = found->second;
      } else {
        trace_.AddProblem("metadata: " + where + " has times of a clock '" + clock +
                          "' that is not there: its times are not shown");
      }
    }
    const Status status = StreamScopes(json, stream);
    if (!status) MarkUnreadable(trace_, stream, status.error().message);
    trace_.streams.emplace(stream.id, std::move(stream));
    return {};
  }

  Status StreamScopes(const Json& json, DataStreamClass& stream) {
    WEFT_TRY(Scope(json, "packet-context-field-class", stream.packet_context, Role::kBegin));
    WEFT_TRY(Scope(json, "event-record-header-field-class", stream.event_header, Role::kClock));
    return Scope(json, "event-record-common-context-field-class", stream.event_context,
                 Role::kNone);
  }

  Status Event(const Json& json) {
    EventRecordClass event{.id = Number(json, "id", 0), .name = Text(json, "name")};
    const std::string where = "event '" + event.name + "'";
    const auto stream = trace_.streams.find(Number(json, "data-stream-class-id", 0));
    if (stream == trace_.streams.end()) {
      return Bad(where + " belongs to a stream that is not there");
    }
    if (stream->second.events.contains(event.id)) return Bad(where + " has the id of another one");
    if (const Json* attributes = Find(json, "attributes")) Attributes(*attributes, event);
    Status status = Scope(json, "specific-context-field-class", event.context, Role::kNone);
    if (status) status = Scope(json, "payload-field-class", event.payload, Role::kNone);
    if (!status) MarkUnreadable(trace_, event, status.error().message);
    stream->second.events.emplace(event.id, std::move(event));
    return {};
  }

  static void Attributes(const Json& json, EventRecordClass& event) {
    for (const std::string_view space : {kAttributeNamespace, std::string_view("lttng.org,2009")}) {
      const Json* known = Find(json, std::string(space).c_str());
      if (known == nullptr) continue;
      event.uri = Text(*known, "emf-uri");
      const std::string level = Text(*known, "log-level");
      const auto found = std::find(kLogLevelNames.begin(), kLogLevelNames.end(), level);
      event.loglevel = found != kLogLevelNames.end()
                           ? static_cast<int64_t>(found - kLogLevelNames.begin())
                           : static_cast<int64_t>(Number(*known, "log-level", ~uint64_t{0}));
    }
  }

  Status Alias(const Json& json) {
    const Json* field = Find(json, "field-class");
    if (field == nullptr) return Bad("an alias has no field class");
    WEFT_ASSIGN(Type type, FieldClass(*field, Role::kNone, 0));
    aliases_.insert_or_assign(Text(json, "name"), std::move(type));
    return {};
  }

  // `timestamp`: the meaning of the role default-clock-timestamp in this scope.
  Status Scope(const Json& json, const char* name, std::optional<Type>& to, Role timestamp) {
    const Json* field = Find(json, name);
    if (field == nullptr) return {};
    WEFT_ASSIGN(to, FieldClass(*field, timestamp, 0));
    if (to->kind != TypeKind::kStruct) return Bad(std::string(name) + " is no structure");
    return {};
  }

  Result<Type> FieldClass(const Json& json, Role timestamp, int depth) {
    if (depth > kMaxTypeDepth) return Fail(ErrorCode::kLimit, "types are nested too deeply");
    if (json.is_string()) {
      const auto found = aliases_.find(json.get<std::string>());
      if (found == aliases_.end()) return Bad("unknown alias");
      WEFT_TRY(TakeNodes(found->second, budget_));
      return found->second;
    }
    if (budget_ == 0) return Fail(ErrorCode::kLimit, "too many fields in the metadata");
    budget_--;
    const std::string type = Text(json, "type");
    if (type == "fixed-length-unsigned-integer") return Integer(json, false, timestamp);
    if (type == "fixed-length-signed-integer") return Integer(json, true, timestamp);
    if (type == "variable-length-unsigned-integer") return Variable(json, false, timestamp);
    if (type == "variable-length-signed-integer") return Variable(json, true, timestamp);
    if (type == "fixed-length-floating-point-number") return Float(json);
    if (type == "fixed-length-boolean") return BitArray(json, TypeKind::kBool);
    if (type == "fixed-length-bit-array") return BitArray(json, TypeKind::kBitMap);
    if (type == "fixed-length-bit-map") return BitArray(json, TypeKind::kBitMap);
    if (type == "null-terminated-string") return String(json);
    if (type == "structure") return Structure(json, timestamp, depth);
    if (type == "variant") return Variant(json, timestamp, depth);
    if (type == "optional") return Optional(json, timestamp, depth);
    const bool fixed = type.starts_with("static-length-");
    if (type == "static-length-array" || type == "dynamic-length-array") {
      return Array(json, fixed, timestamp, depth);
    }
    if (type == "static-length-string" || type == "dynamic-length-string") {
      return Bytes(json, fixed, true);
    }
    if (type == "static-length-blob" || type == "dynamic-length-blob") {
      return Bytes(json, fixed, false);
    }
    return Fail(ErrorCode::kUnsupported, "metadata: field class '" + type + "' is not supported");
  }

  static Status Alignment(const Json& json, const char* name, uint32_t& align) {
    const uint64_t value = Number(json, name, 1);
    if (value > 4096 || !std::has_single_bit(value)) return Bad("no alignment");
    align = static_cast<uint32_t>(value);
    return {};
  }

  static Result<Type> Integer(const Json& json, bool is_signed, Role timestamp) {
    const uint64_t bits = Number(json, "length", 0);
    const uint64_t base = Number(json, "preferred-display-base", 10);
    if (bits == 0 || bits > 64) return Bad("integers have 1 to 64 bits");
    if (base != 2 && base != 8 && base != 10 && base != 16) return Bad("no base");
    Type type = IntegerType(static_cast<uint8_t>(bits), is_signed, static_cast<uint8_t>(base));
    WEFT_TRY(BitOrder(json, type));
    WEFT_TRY(Mappings(json, type));
    SetRole(json, timestamp, type);
    return type;
  }

  // LEB128.
  static Result<Type> Variable(const Json& json, bool is_signed, Role timestamp) {
    const uint64_t base = Number(json, "preferred-display-base", 10);
    if (base != 2 && base != 8 && base != 10 && base != 16) return Bad("no base");
    Type type = IntegerType(64, is_signed, static_cast<uint8_t>(base));
    type.variable = true;
    WEFT_TRY(Mappings(json, type));
    SetRole(json, timestamp, type);
    return type;
  }

  static Result<Type> BitArray(const Json& json, TypeKind kind) {
    const uint64_t bits = Number(json, "length", 0);
    if (bits == 0 || bits > 64) return Bad("bit arrays have 1 to 64 bits");
    Type type = IntegerType(static_cast<uint8_t>(bits), false);
    WEFT_TRY(BitOrder(json, type));
    if (const Json* flags = Find(json, "flags"); flags != nullptr && flags->is_object()) {
      for (const auto& [label, ranges] : flags->items()) {
        WEFT_ASSIGN(std::vector<Range> parsed, Ranges(ranges));
        type.mappings.push_back({label, std::move(parsed)});
      }
    }
    type.kind = kind;
    return type;
  }

  // Reads byte order, bit order and alignment of a field class with a length in bits.
  static Status BitOrder(const Json& json, Type& type) {
    const std::string bytes = Text(json, "byte-order");
    if (!bytes.empty() && bytes != "big-endian" && bytes != "little-endian") {
      return Bad("no byte order");
    }
    type.big_endian = bytes == "big-endian";
    const std::string bits = Text(json, "bit-order");
    if (!bits.empty() && bits != "first-to-last" && bits != "last-to-first") {
      return Bad("no bit order");
    }
    type.reversed = !bits.empty() && (bits == "last-to-first") != type.big_endian;
    return Alignment(json, "alignment", type.align);
  }

  static Status Mappings(const Json& json, Type& type) {
    if (const Json* mappings = Find(json, "mappings");
        mappings != nullptr && mappings->is_object()) {
      type.kind = TypeKind::kEnum;
      for (const auto& [label, ranges] : mappings->items()) {
        WEFT_ASSIGN(std::vector<Range> parsed, Ranges(ranges));
        type.mappings.push_back({label, std::move(parsed)});
      }
    }
    return {};
  }

  static void SetRole(const Json& json, Role timestamp, Type& type) {
    const Json* roles = Find(json, "roles");
    if (roles == nullptr || !roles->is_array()) return;
    for (const Json& role : *roles) {
      if (!role.is_string()) continue;
      for (const auto& [known, name] : kRoleNames) {
        if (role.get<std::string>() == name) type.role = known;
      }
    }
    if (type.role == Role::kClock) type.role = timestamp;
    type.clocked = type.role == Role::kBegin || type.role == Role::kClock;
  }

  static Result<Type> Float(const Json& json) {
    const uint64_t bits = Number(json, "length", 0);
    if (bits != 32 && bits != 64) return Bad("floats have 32 or 64 bits");
    Type type = FloatType(static_cast<uint8_t>(bits));
    WEFT_TRY(BitOrder(json, type));
    return type;
  }

  // "utf-8" is what is not said.
  static Status Encoding(const Json& json, Type& type) {
    const std::string encoding = Text(json, "encoding");
    if (encoding.empty() || encoding == "utf-8") return {};
    if (encoding != "utf-16le" && encoding != "utf-16be" && encoding != "utf-32le" &&
        encoding != "utf-32be") {
      return Bad("no encoding of text: '" + encoding + "'");
    }
    type.unit = encoding.starts_with("utf-16") ? 2 : 4;
    type.big_endian = encoding.ends_with("be");
    return {};
  }

  static Result<Type> String(const Json& json) {
    Type type = StringType();
    WEFT_TRY(Encoding(json, type));
    return type;
  }

  Result<Type> Structure(const Json& json, Role timestamp, int depth) {
    Type type = StructType();
    WEFT_TRY(Alignment(json, "minimum-alignment", type.align));
    const Json* members = Find(json, "member-classes");
    if (members == nullptr) return type;
    for (const Json& member : *members) {
      const Json* field = Find(member, "field-class");
      if (field == nullptr) return Bad("a member has no field class");
      WEFT_ASSIGN(Type parsed, FieldClass(*field, timestamp, depth + 1));
      type.align = std::max(type.align, parsed.align);
      type.members.push_back({Text(member, "name"), std::move(parsed), {}});
    }
    return type;
  }

  Result<Type> Variant(const Json& json, Role timestamp, int depth) {
    Type type;
    type.kind = TypeKind::kVariant;
    type.align = 1;
    WEFT_ASSIGN(type.reference, Location(json, "selector-field-location"));
    const Json* options = Find(json, "options");
    if (options == nullptr) return Bad("a variant has no options");
    for (const Json& option : *options) {
      const Json* field = Find(option, "field-class");
      const Json* ranges = Find(option, "selector-field-ranges");
      if (field == nullptr || ranges == nullptr) return Bad("an option is not complete");
      WEFT_ASSIGN(Type parsed, FieldClass(*field, timestamp, depth + 1));
      WEFT_ASSIGN(std::vector<Range> selectors, Ranges(*ranges));
      type.members.push_back({Text(option, "name"), std::move(parsed), std::move(selectors)});
    }
    return type;
  }

  // Without ranges, the selector is a boolean, and true selects.
  Result<Type> Optional(const Json& json, Role timestamp, int depth) {
    Type type;
    type.kind = TypeKind::kOptional;
    type.align = 1;
    WEFT_ASSIGN(type.reference, Location(json, "selector-field-location"));
    const Json* field = Find(json, "field-class");
    if (field == nullptr) return Bad("an optional field has no field class");
    WEFT_ASSIGN(Type parsed, FieldClass(*field, timestamp, depth + 1));
    std::vector<Range> selectors{{1, ~uint64_t{0}}};
    if (const Json* ranges = Find(json, "selector-field-ranges")) {
      WEFT_ASSIGN(selectors, Ranges(*ranges));
    }
    type.members.push_back({"", std::move(parsed), std::move(selectors)});
    return type;
  }

  static Result<std::string> Location(const Json& json, const char* name) {
    const Json* location = Find(json, name);
    const Json* path = location == nullptr ? nullptr : Find(*location, "path");
    if (path == nullptr || !path->is_array() || path->empty()) return Bad("a location has no path");
    std::string out;
    const std::string origin = Text(*location, "origin");
    for (const auto& [ours, tsdl] : kOrigins) {
      if (origin == ours) out = tsdl;
    }
    for (const Json& part : *path) {
      if (!part.is_string()) return Fail(ErrorCode::kUnsupported, "metadata: a location climbs");
      if (!out.empty()) out += ".";
      out += part.get<std::string>();
    }
    return out;
  }

  static Status Length(const Json& json, bool fixed, Type& type) {
    type.kind = fixed ? TypeKind::kArray : TypeKind::kSequence;
    if (fixed) {
      type.length = Number(json, "length", 0);
    } else {
      WEFT_ASSIGN(type.reference, Location(json, "length-field-location"));
    }
    return {};
  }

  Result<Type> Array(const Json& json, bool fixed, Role timestamp, int depth) {
    Type type;
    WEFT_TRY(Length(json, fixed, type));
    const Json* element = Find(json, "element-field-class");
    if (element == nullptr) return Bad("an array has no element");
    WEFT_ASSIGN(Type parsed, FieldClass(*element, timestamp, depth + 1));
    WEFT_TRY(Alignment(json, "minimum-alignment", type.align));
    type.align = std::max(type.align, parsed.align);
    type.element.push_back(std::move(parsed));
    return type;
  }

  // Reads strings of known length, and BLOBs.
  static Result<Type> Bytes(const Json& json, bool fixed, bool text) {
    const TypeKind kind = fixed ? TypeKind::kArray : TypeKind::kSequence;
    Type type = BlobType(kind, text ? "" : Text(json, "media-type"));
    type.blob = !text;
    type.text = text;
    WEFT_TRY(Length(json, fixed, type));
    if (text) WEFT_TRY(Encoding(json, type));
    if (text) return type;
    if (const Json* roles = Find(json, "roles"); roles != nullptr && !roles->empty()) {
      type.role = Role::kUuid;
    }
    return type;
  }

  TraceClass trace_{.version = Version::k2};
  bool has_preamble_ = false;
  std::map<std::string, ClockClass> clocks_;
  uint32_t budget_ = kMaxTypeNodes;
  std::map<std::string, Type> aliases_;
};

}  // namespace

Result<TraceClass> ParseCtf2(std::string_view text) {
  WEFT_ASSIGN(TraceClass trace, Ctf2Parser().Parse(text));
  WEFT_TRY(ResolveReferences(trace));
  return trace;
}

}  // namespace weft::ctf
