// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/tsdl_writer.h"

#include "lib/base/uuid.h"
#include "lib/ctf/text.h"
#include "lib/ctf/vpid_range.h"

// A fragment ends with an empty line and has none inside: that is how the store finds the end of
// the last whole one.
namespace weft::ctf {
namespace {

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      const char octal[] = {'\\', static_cast<char>('0' + (byte >> 6)),
                            static_cast<char>('0' + ((byte >> 3) & 7)),
                            static_cast<char>('0' + (byte & 7))};
      out.append(octal, sizeof(octal));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string ValidQuoted(std::string_view text) { return Quoted(ValidText(text)); }

std::string Value(uint64_t value, bool is_signed) {
  return is_signed ? std::to_string(static_cast<int64_t>(value)) : std::to_string(value);
}

std::string Indent(int depth) { return std::string(static_cast<size_t>(depth), '\t'); }

std::string Integer(const Type& type) {
  std::string out = "integer { size = " + std::to_string(type.bits) +
                    "; align = " + std::to_string(type.align) +
                    "; signed = " + (type.is_signed ? "true" : "false") + ";";
  if (type.text) out += " encoding = UTF8;";
  if (type.base != 10) out += " base = " + std::to_string(type.base) + ";";
  if (type.big_endian) out += " byte_order = be;";
  return out + " }";
}

std::string Float(const Type& type) {
  std::string out = type.bits == 32 ? "floating_point { exp_dig = 8; mant_dig = 24; align = "
                                    : "floating_point { exp_dig = 11; mant_dig = 53; align = ";
  out += std::to_string(type.align) + ";";
  if (type.big_endian) out += " byte_order = be;";
  return out + " }";
}

std::string Enum(const Type& type, int depth) {
  std::string out = "enum : " + Integer(type) + " {\n";
  for (const EnumMapping& mapping : type.mappings) {
    for (const Range& range : mapping.ranges) {
      out += Indent(depth + 1) + Quoted(mapping.label) + " = " + Value(range.begin, type.is_signed);
      if (range.end != range.begin) out += " ... " + Value(range.end, type.is_signed);
      out += ",\n";
    }
  }
  return out + Indent(depth) + "}";
}

std::string MemberText(const Member& member, int depth);

// CTF 1.8 has no BLOBs: they are arrays and sequences of bytes, as LTTng writes them, and people
// find the media type in a comment, if it is one.
std::string BlobComment(const Type& type) {
  if (!type.blob) return {};
  for (const char c : type.media_type) {
    const bool in_media_types = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                (c >= '0' && c <= '9') || std::string_view("/.+-_;= ").contains(c);
    if (!in_media_types) return {};
  }
  return "/* BLOB, media type '" + type.media_type + "' */ ";
}

std::string Compound(const Type& type, int depth) {
  std::string out =
      type.kind == TypeKind::kStruct ? "struct {" : "variant <_" + type.reference + "> {";
  if (type.members.empty()) return out + "}";
  out += "\n";
  for (const Member& member : type.members) {
    out += Indent(depth + 1) + MemberText(member, depth + 1) + ";\n";
  }
  return out + Indent(depth) + "}";
}

std::string MemberText(const Member& member, int depth) {
  const std::string name = " _" + member.name;
  const Type& type = member.type;
  switch (type.kind) {
    case TypeKind::kInteger:
      return Integer(type) + name;
    case TypeKind::kEnum:
      return Enum(type, depth) + name;
    case TypeKind::kFloat:
      return Float(type) + name;
    case TypeKind::kString:
      return "string" + name;
    case TypeKind::kStruct:
    case TypeKind::kVariant:
      return Compound(type, depth) + name;
    case TypeKind::kArray:
      return BlobComment(type) + MemberText({member.name, type.element.front(), {}}, depth) + "[" +
             std::to_string(type.length) + "]";
    case TypeKind::kSequence:
      return BlobComment(type) + MemberText({member.name, type.element.front(), {}}, depth) + "[_" +
             type.reference + "]";
    case TypeKind::kBool:
    case TypeKind::kBitMap:
    case TypeKind::kOptional:
      break;  // CTF 1.8 has none of them
  }
  return {};
}

std::string ClockText(const Clock& clock) {
  std::string out = "clock {\n\tname = " + Quoted(IdentifierName(clock.name)) + ";\n\tuuid = \"" +
                    FormatUuid(clock.uuid) + "\";\n";
  if (!clock.description.empty()) {
    out += "\tdescription = " + ValidQuoted(clock.description) + ";\n";
  }
  out += "\tfreq = 1000000000;\n";
  if (clock.precision_ns != 0) out += "\tprecision = " + std::to_string(clock.precision_ns) + ";\n";
  out += "\toffset_s = " + std::to_string(clock.offset_seconds) +
         ";\n\toffset = " + std::to_string(clock.offset_ns) + ";\n\tabsolute = true;\n};\n";
  return out;
}

std::string EnvText(const TraceInfo& trace) {
  if (trace.env.empty() && !trace.vpids) return {};
  std::string out = "env {\n";
  if (trace.vpids) out += "\t" + VpidRangeText(Version::k1_8, *trace.vpids) + "\n";
  for (const EnvEntry& entry : trace.env) {
    const auto* number = std::get_if<int64_t>(&entry.value);
    out += "\t" + IdentifierName(entry.name) + " = " +
           (number != nullptr ? std::to_string(*number)
                              : ValidQuoted(std::get<std::string>(entry.value))) +
           ";\n";
  }
  return out + "};\n";
}

// The layout that packet_writer.cc writes. Readers know a header of several forms by the names `id`
// and `v`.
constexpr const char* kPacketAndHeader = R"(struct packet_context {
	clocked_64 timestamp_begin;
	clocked_64 timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	uint64_t events_discarded;
	uint32_t cpu_id;
};
struct event_header {
	enum : integer { size = 2; align = 8; signed = false; } )"
                                         R"({ tiny = 0, small = 1, medium = 2, extended = 3 } id;
	variant <id> {
		struct {
			integer { size = 6; align = 1; signed = false; } id;
			integer { size = 16; align = 1; signed = false; map = clock.@.value; } timestamp;
		} tiny;
		struct {
			integer { size = 6; align = 1; signed = false; } id;
			integer { size = 24; align = 1; signed = false; map = clock.@.value; } timestamp;
		} small;
		struct {
			integer { size = 14; align = 1; signed = false; } id;
			integer { size = 32; align = 1; signed = false; map = clock.@.value; } timestamp;
		} medium;
		struct {
			uint32_t id;
			clocked_64 timestamp;
		} extended;
	} v;
} align(8);

)";

std::string Replace(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
  return text;
}

}  // namespace

std::string TsdlTrace(const TraceInfo& trace) {
  std::string out = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
	major = 1;
	minor = 8;
	uuid = ")" + FormatUuid(trace.uuid) +
                    R"(";
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint8_t uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	};
};
)";
  const std::string clock = IdentifierName(trace.clock.name);
  out += EnvText(trace) + ClockText(trace.clock);
  out += "typealias integer { size = 64; align = 8; signed = false; map = clock." + clock +
         ".value; } := clocked_64;\n";
  return out + Replace(kPacketAndHeader, "@", clock);
}

std::string TsdlChannel(const Channel& channel) {
  std::string out = "stream {\n\tid = " + std::to_string(channel.id) +
                    ";\n\tevent.header := struct event_header;\n"
                    "\tpacket.context := struct packet_context;\n";
  if (!channel.context.members.empty()) {
    out += "\tevent.context := " + Compound(channel.context, 1) + ";\n";
  }
  return out + "};\n\n";
}

std::string TsdlEvent(const EventClass& event) {
  std::string out = "event {\n\tname = " + Quoted(event.name) +
                    ";\n\tid = " + std::to_string(event.id) +
                    ";\n\tstream_id = " + std::to_string(event.channel) + ";\n";
  if (event.loglevel >= 0) out += "\tloglevel = " + std::to_string(event.loglevel) + ";\n";
  if (!event.uri.empty()) out += "\tmodel.emf.uri = " + Quoted(event.uri) + ";\n";
  return out + "\tfields := " + Compound(event.payload, 1) + ";\n};\n\n";
}

}  // namespace weft::ctf
