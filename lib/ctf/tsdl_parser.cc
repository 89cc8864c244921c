// SPDX-License-Identifier: Apache-2.0
// The half of the TSDL parser that reads blocks; tsdl_types.cc reads the types in them.
#include "lib/ctf/tsdl_parser.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/uuid.h"
#include "lib/ctf/resolve.h"
#include "lib/ctf/tsdl_types.h"

namespace weft::ctf {
namespace {

// One "name.name = value;" that is not a type.
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
      const size_t start = tokens_.position();
      Status status = Statement();
      if (status) {
        lost_ = false;
        continue;
      }
      types_.CloseAllScopes();
      WEFT_TRY(PassOver(start, status.error()));
    }
    AddEvents();
    SetClocks();
    return std::move(trace_);
  }

 private:
  // The native byte order must be known before the first integer, which may come before "trace".
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

  Status Statement() {
    WEFT_ASSIGN(const bool defined, types_.Definition());
    return defined ? Status() : Block();
  }

  // Skips a statement that cannot be read, from `start` on, and notes what is lost. An error:
  // nothing else can be read without it.
  Status PassOver(size_t start, const Error& error) {
    tokens_.set_position(start);
    const std::string kind = tokens_.Peek().text;
    const bool is_class = kind == "event" || kind == "stream";
    const bool is_block = is_class || kind == "env" || kind == "clock" || kind == "callsite";
    const bool is_name = kind == "typealias" || kind == "typedef" || kind == "struct" ||
                         kind == "variant" || kind == "enum";
    const Broken broken = FindEnd(is_block ? "}" : ";");
    const bool is_known = is_block || is_name;
    if (!is_class && error.code == ErrorCode::kLimit) return std::unexpected<Error>(error);
    if (kind == "trace" || (!is_known && trace_.streams.empty())) {
      return std::unexpected<Error>(error);
    }
    if (!is_class || !broken.ends) {
      // One line covers all that follows an error until a statement can be read again.
      if (is_known || !std::exchange(lost_, true)) trace_.AddProblem(error.message);
    } else if (kind == "event") {
      PendingEvent event{.stream = broken.stream, .id = broken.id, .reason = error.message};
      event.event.name = broken.name;
      events_.push_back(std::move(event));
    } else {
      DataStreamClass stream{.id = broken.id.value_or(0)};
      MarkUnreadable(trace_, stream, error.message);
      trace_.streams.emplace(stream.id, std::move(stream));
    }
    return {};
  }

  // What a block that cannot be read says about itself in words that need no parser.
  struct Broken {
    bool ends = false;
    std::optional<uint64_t> id, stream;
    std::string name;
  };

  // Goes behind the statement that begins here, to the first `end` outside of braces.
  Broken FindEnd(std::string_view end) {
    Broken broken;
    for (int depth = 0; !tokens_.AtEnd();) {
      const Token& token = tokens_.Take();
      if (token.Is("{")) depth++;
      if (token.Is("}")) depth--;
      if (depth <= 0 && token.Is(end)) {
        broken.ends = true;
        return broken;
      }
      if (depth != 1 || !tokens_.At("=")) continue;
      const Token& value = tokens_.Peek(1);
      const bool number = value.kind == TokenKind::kNumber;
      if (token.Is("id") && number) broken.id = value.number;
      if (token.Is("stream_id") && number) broken.stream = value.number;
      if (token.Is("name")) broken.name = value.text;
    }
    return broken;
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
    clocks_.push_back(std::move(clock));
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

  struct PendingEvent {
    std::optional<uint64_t> stream, id;
    std::string reason;  // why it cannot be read; empty: it can
    EventRecordClass event;
  };

  // Events are added at the end: their streams may stand behind them.
  Status Event() {
    PendingEvent pending;
    EventRecordClass& event = pending.event;
    WEFT_TRY(Body(
        [&event](const std::string& name, Type type) {
          if (name == "context") {
            event.context = std::move(type);
          } else if (name == "fields") {
            event.payload = std::move(type);
          }
        },
        [&](const std::string& name, const Assignment& value) -> Status {
          if (name == "stream_id") pending.stream = value.number;
          if (name == "id") pending.id = value.number;
          if (name == "name") event.name = value.text;
          if (name == "loglevel") event.loglevel = static_cast<int64_t>(value.number);
          if (name == "model.emf.uri") event.uri = value.text;
          return {};
        }));
    events_.push_back(std::move(pending));
    return {};
  }

  // An event without a stream belongs to the only one, which need not be written down.
  void AddEvents() {
    if (trace_.streams.empty()) {
      const bool implied = std::ranges::any_of(
          events_, [](const PendingEvent& pending) { return !pending.stream.has_value(); });
      if (implied) trace_.streams.emplace(0, DataStreamClass{});
    }
    for (PendingEvent& pending : events_) {
      EventRecordClass& event = pending.event;
      event.id = pending.id.value_or(0);
      const std::string where = "metadata: event '" + event.name + "'";
      if (!pending.stream && trace_.streams.size() > 1) {
        trace_.AddProblem(where + " does not say which of the streams it belongs to");
        continue;
      }
      const auto stream =
          pending.stream ? trace_.streams.find(*pending.stream) : trace_.streams.begin();
      if (stream == trace_.streams.end()) {
        trace_.AddProblem(where + " belongs to a stream that is not there");
        continue;
      }
      if (!pending.reason.empty()) MarkUnreadable(trace_, event, pending.reason);
      if (!stream->second.events.emplace(event.id, std::move(event)).second) {
        trace_.AddProblem(where + " has the id of another one");
      }
    }
  }

  // A stream's clock is the one that its fields are mapped to.
  void SetClocks() {
    for (auto& [id, stream] : trace_.streams) {
      MapTimestamps(stream);
      std::set<std::string> names;
      for (const auto* type :
           {&stream.packet_context, &stream.event_header, &stream.event_context}) {
        if (*type) FindClocks(**type, names);
      }
      for (const auto& [event_id, event] : stream.events) {
        if (event.context) FindClocks(*event.context, names);
        if (event.payload) FindClocks(*event.payload, names);
      }
      if (names.empty()) continue;
      const std::string where = "metadata: stream " + std::to_string(id);
      if (names.size() > 1) {
        trace_.AddProblem(where + " has times of several clocks: those of '" + *names.begin() +
                          "' are taken for all");
      }
      const auto clock = std::ranges::find(clocks_, *names.begin(), &ClockClass::name);
      if (clock != clocks_.end()) {
        stream.clock = *clock;
      } else {
        trace_.AddProblem(where + " has times of a clock '" + *names.begin() +
                          "' that is not there: its times are not shown");
      }
    }
  }

  // A time that is mapped to no clock belongs to the only one, which need not be written down.
  void MapTimestamps(DataStreamClass& stream) {
    std::vector<Type*> times;
    if (stream.packet_context) {
      FindTimes(*stream.packet_context, "timestamp_begin", times);
      FindTimes(*stream.packet_context, "timestamp_end", times);
    }
    if (stream.event_header) FindTimes(*stream.event_header, "timestamp", times);
    if (times.empty() || clocks_.size() > 1) return;
    if (clocks_.empty()) clocks_.push_back({.name = "default"});
    for (Type* time : times) {
      time->clocked = true;
      time->reference = clocks_.front().name;
    }
  }

  // Collects integers of that name that are mapped to no clock.
  static void FindTimes(Type& type, std::string_view name, std::vector<Type*>& times) {
    for (Member& member : type.members) {
      const bool integer =
          member.type.kind == TypeKind::kInteger || member.type.kind == TypeKind::kEnum;
      if (integer && member.name == name && !member.type.clocked) times.push_back(&member.type);
      FindTimes(member.type, name, times);
    }
  }

  static void FindClocks(const Type& type, std::set<std::string>& names) {
    if (type.clocked) names.insert(type.reference);
    for (const Member& member : type.members) FindClocks(member.type, names);
    for (const Type& element : type.element) FindClocks(element, names);
  }

  TsdlTokens& tokens_;
  TsdlTypes types_;
  TraceClass trace_;
  bool lost_ = false;
  std::vector<ClockClass> clocks_;
  std::vector<PendingEvent> events_;
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
    if (member.type.role == Role::kEnd) member.type.clocked = false;  // the time of no event
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
  TsdlTokens tokens = TsdlTokens::Lex(text);
  WEFT_ASSIGN(TraceClass trace, TsdlParser(tokens).Parse());
  WEFT_TRY(ResolveReferences(trace));
  Finish(trace);
  return trace;
}

}  // namespace weft::ctf
