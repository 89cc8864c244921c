// SPDX-License-Identifier: Apache-2.0
// The half of the TSDL parser that reads blocks; tsdl_types.cc reads the types in them.
#include "lib/ctf/tsdl_parser.h"

#include <utility>

#include "lib/ctf/resolve.h"
#include "lib/ctf/text.h"
#include "lib/ctf/tsdl_types.h"
#include "lib/ctf/uuid.h"

namespace weft::ctf {
namespace {

// One "name.name = value;" that is no type.
struct Assignment {
  std::string text;
  uint64_t number = 0;
  bool is_number = false;
};

class TsdlParser {
 public:
  explicit TsdlParser(TsdlTokens& tokens)
      : tokens_(tokens), types_(tokens, FindBigEndian(tokens)) {}

  Result<TraceClass> Parse() {
    while (!tokens_.AtEnd()) {
      if (tokens_.Accept(";")) continue;
      WEFT_ASSIGN(const bool defined, types_.Definition());
      if (!defined) WEFT_TRY(Block());
    }
    WEFT_TRY(AddEvents());
    return std::move(trace_);
  }

 private:
  // The native byte order must be known before the first integer, which may stand before "trace".
  static bool FindBigEndian(TsdlTokens& tokens) {
    const size_t start = tokens.position();
    bool found = false;
    bool big_endian = false;
    while (!found && !tokens.AtEnd()) {
      const bool trace = tokens.Take().Is("trace") && tokens.At("{");
      for (int depth = 0; trace && !tokens.AtEnd();) {
        const Token& token = tokens.Take();
        if (token.Is("{")) depth++;
        if (token.Is("}") && --depth == 0) break;
        if (depth == 1 && token.Is("byte_order") && tokens.Accept("=")) {
          big_endian = tokens.At("be") || tokens.At("network");
          found = true;
        }
      }
    }
    tokens.set_position(start);
    return big_endian;
  }

  // Calls on_type(name) at each ":=" and on_value(name, assignment) for each "=".
  template <typename OnType, typename OnValue>
  Status Body(OnType on_type, OnValue on_value) {
    WEFT_TRY(tokens_.Expect("{"));
    types_.OpenScope();
    while (!tokens_.Accept("}")) {
      if (tokens_.AtEnd()) return tokens_.Bad("a block does not end");
      if (tokens_.At("typealias") || tokens_.At("typedef") || tokens_.At("struct") ||
          tokens_.At("variant") || tokens_.At("enum")) {
        WEFT_TRY(types_.Definition());
        continue;
      }
      WEFT_ASSIGN(std::string name, tokens_.Word());
      while (tokens_.Accept(".")) {
        WEFT_ASSIGN(const std::string part, tokens_.Word());
        name += "." + part;
      }
      if (tokens_.Accept(":=")) {
        WEFT_ASSIGN(Type type, types_.TypeOnly());
        on_type(name, std::move(type));
      } else {
        WEFT_TRY(tokens_.Expect("="));
        WEFT_ASSIGN(Assignment value, Value());
        WEFT_TRY(on_value(name, value));
      }
      WEFT_TRY(tokens_.Expect(";"));
    }
    types_.CloseScope();
    tokens_.Accept(";");
    return {};
  }

  static void IgnoreType(const std::string&, const Type&) {}

  Result<Assignment> Value() {
    Assignment value;
    if (tokens_.Peek().kind == TokenKind::kString) {
      value.text = tokens_.Take().text;
    } else if (tokens_.Peek().kind == TokenKind::kWord) {
      value.text = tokens_.Take().text;
      while (tokens_.Accept(".")) {
        WEFT_ASSIGN(const std::string part, tokens_.Word());
        value.text += "." + part;
      }
    } else {
      WEFT_ASSIGN(value.number, types_.SignedNumber());
      value.is_number = true;
    }
    return value;
  }

  Status Block() {
    if (tokens_.Accept("trace")) return Trace();
    if (tokens_.Accept("env")) return Env();
    if (tokens_.Accept("clock")) return Clock();
    if (tokens_.Accept("stream")) return Stream();
    if (tokens_.Accept("event")) return Event();
    if (tokens_.Accept("callsite")) {
      return Body(IgnoreType, [](const std::string&, const Assignment&) { return Status(); });
    }
    return tokens_.Bad("unknown block '" + tokens_.Peek().text + "'");
  }

  Status Trace() {
    return Body(
        [this](const std::string& name, Type type) {
          if (name == "packet.header") trace_.packet_header = std::move(type);
        },
        [this](const std::string& name, const Assignment& value) -> Status {
          if (name == "uuid") {
            WEFT_ASSIGN(trace_.uuid, ParseUuid(value.text));
          }
          if (name == "major" && value.number != 1) {
            return Fail(ErrorCode::kUnsupported, "metadata is not of CTF 1");
          }
          return {};
        });
  }

  Status Env() {
    return Body(IgnoreType, [this](const std::string& name, const Assignment& value) -> Status {
      if (value.is_number) {
        trace_.env.push_back({name, static_cast<int64_t>(value.number)});
      } else {
        trace_.env.push_back({name, value.text});
      }
      return {};
    });
  }

  Status Clock() {
    ClockClass clock;
    WEFT_TRY(Body(IgnoreType, [&clock](const std::string& name, const Assignment& value) -> Status {
      if (name == "name") clock.name = value.text;
      if (name == "freq") clock.frequency = value.number;
      if (name == "offset_s") clock.offset_seconds = static_cast<int64_t>(value.number);
      if (name == "offset") clock.offset_cycles = value.number;
      return {};
    }));
    if (clock.frequency == 0) return tokens_.Bad("a clock's frequency is 0");
    if (!has_clock_) trace_.clock = std::move(clock);
    has_clock_ = true;
    return {};
  }

  Status Stream() {
    DataStreamClass stream;
    WEFT_TRY(Body(
        [&stream](const std::string& name, Type type) {
          if (name == "packet.context") {
            stream.packet_context = std::move(type);
          } else if (name == "event.header") {
            stream.event_header = std::move(type);
          } else if (name == "event.context") {
            stream.event_context = std::move(type);
          }
        },
        [&stream](const std::string& name, const Assignment& value) -> Status {
          if (name == "id") stream.id = value.number;
          return {};
        }));
    const uint64_t id = stream.id;
    if (!trace_.streams.emplace(id, std::move(stream)).second) {
      return tokens_.Bad("stream " + std::to_string(id) + " is there twice");
    }
    return {};
  }

  // Events are added at the end: their streams may stand behind them.
  Status Event() {
    std::pair<uint64_t, EventRecordClass> event{0, {}};
    WEFT_TRY(Body(
        [&event](const std::string& name, Type type) {
          if (name == "context") {
            event.second.context = std::move(type);
          } else if (name == "fields") {
            event.second.payload = std::move(type);
          }
        },
        [&event](const std::string& name, const Assignment& value) -> Status {
          if (name == "stream_id") event.first = value.number;
          if (name == "id") event.second.id = value.number;
          if (name == "name") event.second.name = PrintableName(value.text);
          if (name == "loglevel") event.second.loglevel = static_cast<int64_t>(value.number);
          if (name == "model.emf.uri") event.second.uri = PrintableName(value.text);
          return {};
        }));
    events_.push_back(std::move(event));
    return {};
  }

  Status AddEvents() {
    for (auto& [stream_id, event] : events_) {
      auto stream = trace_.streams.find(stream_id);
      const uint64_t id = event.id;
      const std::string where = "metadata: event '" + event.name + "'";
      if (stream == trace_.streams.end()) {
        return Fail(ErrorCode::kCorrupt, where + " belongs to a stream that is not there");
      }
      if (!stream->second.events.emplace(id, std::move(event)).second) {
        return Fail(ErrorCode::kCorrupt, where + " has the id of another one");
      }
    }
    return {};
  }

  TsdlTokens& tokens_;
  TsdlTypes types_;
  TraceClass trace_;
  bool has_clock_ = false;
  std::vector<std::pair<uint64_t, EventRecordClass>> events_;
};

// Names as people gave them.
void StripUnderscores(Type& type) {
  for (Member& member : type.members) {
    if (member.name.starts_with('_')) member.name.erase(0, 1);
    StripUnderscores(member.type);
  }
  for (Type& element : type.element) StripUnderscores(element);
}

void SetHeaderRoles(Type& type) {
  for (Member& member : type.members) {
    if (member.name == "magic") member.type.role = Role::kMagic;
    if (member.name == "stream_id") member.type.role = Role::kStreamClass;
    if (member.name == "stream_instance_id") member.type.role = Role::kStreamInstance;
    if (member.name == "uuid" && member.type.kind == TypeKind::kArray && member.type.length == 16) {
      member.type.role = Role::kUuid;
    }
  }
}

void SetContextRoles(Type& type) {
  static constexpr std::pair<std::string_view, Role> kRoles[] = {
      {"timestamp_begin", Role::kBegin},         {"timestamp_end", Role::kEnd},
      {"content_size", Role::kContentSize},      {"packet_size", Role::kPacketSize},
      {"packet_seq_num", Role::kSequenceNumber}, {"events_discarded", Role::kDiscarded}};
  for (Member& member : type.members) {
    for (const auto& [name, role] : kRoles) {
      if (member.name == name) member.type.role = role;
    }
  }
}

void SetEventHeaderRoles(Type& type) {
  for (Member& member : type.members) {
    const bool integer =
        member.type.kind == TypeKind::kInteger || member.type.kind == TypeKind::kEnum;
    if (integer && member.name == "id" && type.kind == TypeKind::kStruct) {
      member.type.role = Role::kEventClass;
    } else if (integer && member.type.clocked) {
      member.type.role = Role::kClock;
    }
    SetEventHeaderRoles(member.type);
  }
}

void Finish(TraceClass& trace) {
  if (trace.packet_header) SetHeaderRoles(*trace.packet_header);
  for (auto& [id, stream] : trace.streams) {
    if (stream.packet_context) SetContextRoles(*stream.packet_context);
    if (stream.event_header) SetEventHeaderRoles(*stream.event_header);
    for (auto* type : {&stream.packet_context, &stream.event_context}) {
      if (*type) StripUnderscores(**type);
    }
    for (auto& [event_id, event] : stream.events) {
      if (event.context) StripUnderscores(*event.context);
      if (event.payload) StripUnderscores(*event.payload);
    }
  }
}

}  // namespace

Result<TraceClass> ParseTsdl(std::string_view text) {
  WEFT_ASSIGN(TsdlTokens tokens, TsdlTokens::Lex(text));
  WEFT_ASSIGN(TraceClass trace, TsdlParser(tokens).Parse());
  WEFT_TRY(ResolveReferences(trace));
  Finish(trace);
  return trace;
}

}  // namespace weft::ctf
