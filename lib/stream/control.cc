// SPDX-License-Identifier: Apache-2.0
// Messages to JSON and back. Each struct of control.h lists its members once, in Fields below; two
// archives walk that list.
#include "lib/stream/control.h"

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "lib/stream/limits.h"

namespace weft::stream {
namespace {

using Json = nlohmann::json;

constexpr size_t kLengthBytes = sizeof(uint32_t);

// --- the members of every message ------------------------------------------------------------

template <typename A>
void Fields(A& a, Offer& m) {
  a("versions", m.versions);
}
template <typename A>
void Fields(A& a, Hello& m) {
  a("node", m.node), a("namespace", m.kubernetes_namespace), a("trace", m.trace);
  a("trace_uid", m.trace_uid), a("ticket", m.ticket);
}
template <typename A>
void Fields(A& a, OpenTrace& m) {
  a("trace", m.trace), a("pod", m.pod), a("pod_uid", m.pod_uid), a("container", m.container);
  a("uuid", m.uuid), a("path", m.path), a("metadata", m.metadata);
}
template <typename A>
void Fields(A& a, Metadata& m) {
  a("trace", m.trace), a("offset", m.offset), a("text", m.text);
}
template <typename A>
void Fields(A& a, OpenStream& m) {
  a("trace", m.trace), a("stream", m.stream), a("channel", m.channel), a("cpu", m.cpu);
  a("next", m.next), a("events", m.events);
}
template <typename A>
void Fields(A& a, StreamBeacon& m) {
  a("handle", m.handle), a("last", m.last), a("time", m.time);
}
template <typename A>
void Fields(A& a, Beacon& m) {
  a("streams", m.streams);
}
template <typename A>
void Fields(A& a, Losses& m) {
  a("trace", m.trace), a("discarded", m.discarded), a("lost", m.lost);
}
template <typename A>
void Fields(A& a, PacketsLost& m) {
  a("handle", m.handle), a("first", m.first), a("last", m.last);
  a("stage", m.stage), a("reason", m.reason);
}
template <typename A>
void Fields(A& a, EndTrace& m) {
  a("trace", m.trace);
}
template <typename A>
void Fields(A& a, Chosen& m) {
  a("version", m.version);
}
template <typename A>
void Fields(A& a, Welcome& m) {
  a("session", m.session);
}
template <typename A>
void Fields(A& a, TraceOpened& m) {
  a("trace", m.trace), a("metadata", m.metadata);
}
template <typename A>
void Fields(A& a, MetadataStored& m) {
  a("trace", m.trace), a("offset", m.offset), a("bytes", m.bytes);
}
template <typename A>
void Fields(A& a, StreamOpened& m) {
  a("stream", m.stream), a("handle", m.handle), a("next", m.next);
}
template <typename A>
void Fields(A& a, Stored& m) {
  a("handle", m.handle), a("seq", m.seq);
}
template <typename A>
void Fields(A& a, Gap& m) {
  a("handle", m.handle), a("first", m.first), a("last", m.last);
}
template <typename A>
void Fields(A& a, TraceEnded& m) {
  a("trace", m.trace), a("packets", m.packets), a("bytes", m.bytes);
}
template <typename A>
void Fields(A& a, Refusal& m) {
  a("reason", m.reason);
}

// In the order of Message's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {
    "offer",           "hello",         "open-trace", "metadata", "open-stream", "beacon",
    "losses",          "packets-lost",  "end-trace",  "chosen",   "welcome",     "trace-opened",
    "metadata-stored", "stream-opened", "stored",     "gap",      "trace-ended", "refusal"};

// --- writing ---------------------------------------------------------------------------------

class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    if constexpr (std::is_same_v<T, std::vector<StreamBeacon>>) {
      Json list = Json::array();
      for (StreamBeacon& entry : value) {
        Writer inner;
        Fields(inner, entry);
        list.push_back(std::move(inner.json));
      }
      json[name] = std::move(list);
    } else {
      json[name] = value;
    }
  }
  Json json = Json::object();
};

// --- reading ---------------------------------------------------------------------------------

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    const auto it = json_.find(name);
    if ((it == json_.end() || !Value(*it, value)) && wrong.empty()) wrong = name;
  }

  std::string wrong;  // the first member that is

 private:
  template <typename T>
    requires std::is_unsigned_v<T>
  static bool Value(const Json& json, T& value) {
    if (!json.is_number_unsigned()) return false;
    const auto number = json.get<uint64_t>();
    value = static_cast<T>(number);
    return std::in_range<T>(number);
  }
  static bool Value(const Json& json, std::string& value) {
    if (!json.is_string()) return false;
    value = json.get<std::string>();
    return true;
  }
  static bool Value(const Json& json, std::map<std::string, uint64_t>& value) {
    if (!json.is_object() || json.size() > kMaxReasons) return false;
    for (const auto& [key, entry] : json.items()) {
      if (key.size() > kMaxNameBytes || !Value(entry, value[key])) return false;
    }
    return true;
  }
  template <typename T>
  static bool Value(const Json& json, std::vector<T>& value) {
    if (!json.is_array() || json.size() > kMaxBeaconStreams) return false;
    for (const Json& entry : json) {
      if (!Value(entry, value.emplace_back())) return false;
    }
    return true;
  }
  static bool Value(const Json& json, StreamBeacon& value) {
    if (!json.is_object()) return false;
    Reader inner(json);
    Fields(inner, value);
    return inner.wrong.empty();
  }

  const Json& json_;
};

template <size_t I = 0>
Result<Message> DecodeNamed(std::string_view name, const Json& json) {
  if constexpr (I == std::variant_size_v<Message>) {
    return Fail(ErrorCode::kCorrupt, "unknown message");
  } else {
    if (name != kNames[I]) return DecodeNamed<I + 1>(name, json);
    std::variant_alternative_t<I, Message> message;
    Reader reader(json);
    Fields(reader, message);
    if (!reader.wrong.empty()) {
      return Fail(ErrorCode::kCorrupt, std::string(name) + ": wrong or missing: " + reader.wrong);
    }
    return Message(std::move(message));
  }
}

// A peer may nest as deep as its message is long, a parser should not.
constexpr int kMaxDepth = 4;

}  // namespace

std::string_view MessageName(const Message& message) { return kNames[message.index()]; }

Status Append(const Message& message, std::string& out) {
  Message copy = message;
  Writer writer;
  std::visit([&](auto& m) { Fields(writer, m); }, copy);
  writer.json["type"] = MessageName(message);
  std::string text;
  try {
    text = writer.json.dump();
  } catch (const Json::exception&) {
    return Fail(ErrorCode::kInvalid, std::string(MessageName(message)) + ": text is no UTF-8");
  }
  if (text.size() > kMaxControlBytes) {
    return Fail(ErrorCode::kLimit, std::string(MessageName(message)) + ": message is too long");
  }
  const auto length = static_cast<uint32_t>(text.size());
  char bytes[kLengthBytes];
  std::memcpy(bytes, &length, sizeof(bytes));
  out.append(bytes, sizeof(bytes));
  out += text;
  return {};
}

Result<Message> Decode(std::string_view json_text) {
  bool deep = false;
  const auto shallow = [&deep](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxDepth;
    return !deep;
  };
  const Json json = Json::parse(json_text, shallow, false);
  if (deep || !json.is_object()) return Fail(ErrorCode::kCorrupt, "message is no JSON object");
  const auto name = json.find("type");
  if (name == json.end() || !name->is_string()) {
    return Fail(ErrorCode::kCorrupt, "message without a type");
  }
  return DecodeNamed(name->get<std::string>(), json);
}

void MessageReader::Push(Bytes bytes) {
  if (at_ > 0) buffer_.erase(0, std::exchange(at_, 0));
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::optional<Message>> MessageReader::Next() {
  const size_t there = buffer_.size() - at_;
  if (there < kLengthBytes) return std::nullopt;
  uint32_t length = 0;
  std::memcpy(&length, buffer_.data() + at_, sizeof(length));
  if (length > kMaxControlBytes) return Fail(ErrorCode::kCorrupt, "message is too long");
  if (there - kLengthBytes < length) return std::nullopt;
  auto message = Decode(std::string_view(buffer_).substr(at_ + kLengthBytes, length));
  if (!message) return std::unexpected(std::move(message).error());
  at_ += kLengthBytes + length;
  return std::optional<Message>(std::move(*message));
}

}  // namespace weft::stream
