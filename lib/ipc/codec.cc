// SPDX-License-Identifier: Apache-2.0
// Messages to JSON and back. Each struct of messages.h lists its members once, in Fields below; two
// archives walk that list. Pure functions.
#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "lib/ipc/channel.h"
#include "lib/ipc/limits.h"

namespace weft::ipc {
namespace {

using Json = nlohmann::json;

// --- the members of every message ------------------------------------------------------------

template <typename A>
void Fields(A& a, Configure& m) {
  a("journal", m.journal), a("clock", m.clock), a("slot_count", m.slot_count);
  a("realtime_offset_ns", m.realtime_offset_ns), a("clock_uuid", m.clock_uuid);
}
template <typename A>
void Fields(A& a, Context& m) {
  a("id", m.id), a("name", m.name);
}
template <typename A>
void Fields(A& a, RelayAddress& m) {
  a("host", m.host), a("control_port", m.control_port), a("data_port", m.data_port);
}
template <typename A>
void Fields(A& a, ChannelDefinition& m) {
  a("id", m.id), a("trace", m.trace), a("channel", m.channel), a("trace_path", m.trace_path);
  a("trace_uuid", m.trace_uuid), a("ctf_version", m.ctf_version), a("mode", m.mode);
  a("subbuf_shift", m.subbuf_shift), a("subbufs_shift", m.subbufs_shift);
  a("contexts", m.contexts), a("relay", m.relay), a("hostname", m.hostname), a("domain", m.domain);
  a("created", m.created), a("programs", m.programs), a("node", m.node);
  a("kubernetes_namespace", m.kubernetes_namespace), a("pod", m.pod), a("pod_uid", m.pod_uid);
  a("container", m.container);
}
template <typename A>
void Fields(A& a, Ring& m) {
  a("channel_id", m.channel_id), a("instance", m.instance), a("process", m.process);
  a("pid", m.pid), a("uid", m.uid), a("procname", m.procname), a("container", m.container);
  a("fd", m.fd);
}
template <typename A>
void Fields(A& a, ProcessGone& m) {
  a("process", m.process);
}
template <typename A>
void Fields(A& a, ForgetRing& m) {
  a("channel_id", m.channel_id), a("instance", m.instance);
}
template <typename A>
void Fields(A& a, StopChannel& m) {
  a("channel_id", m.channel_id);
}
template <typename A>
void Fields(A& a, ForgetChannel& m) {
  a("channel_id", m.channel_id);
}
template <typename A>
void Fields(A&, StateComplete&) {}
template <typename A>
void Fields(A& a, FileAnswer& m) {
  a("request", m.request), a("error", m.error), a.Optional("fd", m.fd);
}
template <typename A>
void Fields(A& a, Hello& m) {
  a("version", m.version), a("pid", m.pid);
}
template <typename A>
void Fields(A& a, ChannelReady& m) {
  a("channel_id", m.channel_id), a("error", m.error);
}
template <typename A>
void Fields(A& a, FileRequest& m) {
  a("request", m.request), a("name", m.name);
}
template <typename A>
void Fields(A& a, ConnectionRequest& m) {
  a("request", m.request), a("channel_id", m.channel_id), a("data", m.data);
}
template <typename A>
void Fields(A& a, ConnectionAnswer& m) {
  a("request", m.request), a("error", m.error), a.Optional("fd", m.fd);
}
template <typename A>
void Fields(A& a, ChannelCounts& m) {
  a("recorded", m.recorded), a("delivered", m.delivered), a("overwritten", m.overwritten);
  a("in_flight", m.in_flight), a("discarded", m.discarded), a("lost", m.lost), a("late", m.late);
  a("bytes", m.bytes), a("packets", m.packets), a("streams", m.streams), a("rings", m.rings);
  a("corrupt_rings", m.corrupt_rings), a("tail_unknown", m.tail_unknown);
  a("missed_anywhere", m.missed_anywhere);
}
template <typename A>
void Fields(A& a, Stats& m) {
  a("channel_id", m.channel_id), a("counts", m.counts);
}
template <typename A>
void Fields(A& a, RingDone& m) {
  a("channel_id", m.channel_id), a("instance", m.instance), a("corrupt", m.corrupt);
  a("refused", m.refused), a("reason", m.reason);
}
template <typename A>
void Fields(A& a, SlotWentRound& m) {
  a("channel_id", m.channel_id), a("instance", m.instance), a("slot", m.slot);
}
template <typename A>
void Fields(A& a, Drained& m) {
  a("channel_id", m.channel_id), a("counts", m.counts);
}
template <typename A>
void Fields(A& a, Notice& m) {
  a("component", m.component), a("message", m.message);
}
template <typename A>
void Fields(A& a, Heartbeat& m) {
  a("done", m.done), a("pending", m.pending);
}
template <typename A>
void Fields(A& a, Keep& m) {
  a("key", m.key), a("meta", m.meta), a.Optional("fd", m.fd);
}
template <typename A>
void Fields(A& a, Drop& m) {
  a("key", m.key);
}
template <typename A>
void Fields(A& a, ListenDoorbell& m) {
  a("name", m.name), a("fd", m.fd);
}
template <typename A>
void Fields(A& a, CloseDoorbell& m) {
  a("name", m.name);
}
template <typename A>
void Fields(A& a, StartConsumer& m) {
  a("name", m.name);
}
template <typename A>
void Fields(A& a, StopConsumer& m) {
  a("name", m.name);
}
template <typename A>
void Fields(A& a, Sync& m) {
  a("number", m.number);
}
template <typename A>
void Fields(A& a, Synced& m) {
  a("number", m.number);
}
template <typename A>
void Fields(A&, Quit&) {}
template <typename A>
void Fields(A& a, Kept& m) {
  a("key", m.key), a("meta", m.meta), a("fd", m.fd);
}
template <typename A>
void Fields(A&, KeptComplete&) {}
template <typename A>
void Fields(A& a, Arrived& m) {
  a("key", m.key), a("doorbell", m.doorbell), a("message", m.message), a("pid", m.pid);
  a("uid", m.uid), a("gid", m.gid);
  a("fd", m.fd), a.Optional("pidfd", m.pidfd);
}
template <typename A>
void Fields(A& a, Connect& m) {
  a("name", m.name), a("fd", m.fd);
}
template <typename A>
void Fields(A& a, ConsumerGone& m) {
  a("name", m.name), a("reason", m.reason), a("failures", m.failures), a("given_up", m.given_up);
  a("retry_seconds", m.retry_seconds);
}
template <typename A>
void Fields(A&, OwnerGone&) {}
template <typename A>
void Fields(A&, Exit&) {}
template <typename A>
void Fields(A& a, CreateSession& m) {
  a("traces", m.traces), a("file", m.file), a("output", m.output), a("relay", m.relay);
  a("ctf_version", m.ctf_version);
  a("programs", m.programs), a("uid", m.uid), a("attach", m.attach);
}
template <typename A>
void Fields(A&, StartSession&) {}
template <typename A>
void Fields(A&, StopSession&) {}
template <typename A>
void Fields(A&, QuerySession&) {}
template <typename A>
void Fields(A&, DumpState&) {}
template <typename A>
void Fields(A&, DestroySession&) {}
template <typename A>
void Fields(A& a, TraceState& m) {
  a("name", m.name), a("path", m.path), a("counts", m.counts);
}
template <typename A>
void Fields(A& a, SessionState& m) {
  a("phase", m.phase), a("output", m.output), a("cgroup", m.cgroup), a("programs", m.programs);
  a("traces", m.traces);
  a("processes", m.processes), a("recoveries", m.recoveries), a("notices", m.notices);
}
template <typename A>
void Fields(A& a, Refused& m) {
  a("kind", m.kind), a("message", m.message);
}

// In the order of Message's alternatives.
constexpr std::array<std::string_view, std::variant_size_v<Message>> kNames = {"Configure",
                                                                               "ChannelDefinition",
                                                                               "Ring",
                                                                               "ProcessGone",
                                                                               "ForgetRing",
                                                                               "StopChannel",
                                                                               "ForgetChannel",
                                                                               "StateComplete",
                                                                               "FileAnswer",
                                                                               "Hello",
                                                                               "ChannelReady",
                                                                               "FileRequest",
                                                                               "Stats",
                                                                               "RingDone",
                                                                               "Drained",
                                                                               "Notice",
                                                                               "Heartbeat",
                                                                               "Keep",
                                                                               "Drop",
                                                                               "ListenDoorbell",
                                                                               "StartConsumer",
                                                                               "StopConsumer",
                                                                               "Sync",
                                                                               "Synced",
                                                                               "Quit",
                                                                               "Kept",
                                                                               "KeptComplete",
                                                                               "Arrived",
                                                                               "Connect",
                                                                               "ConsumerGone",
                                                                               "OwnerGone",
                                                                               "Exit",
                                                                               "CreateSession",
                                                                               "StartSession",
                                                                               "StopSession",
                                                                               "QuerySession",
                                                                               "DestroySession",
                                                                               "SessionState",
                                                                               "Refused",
                                                                               "ConnectionRequest",
                                                                               "ConnectionAnswer",
                                                                               "CloseDoorbell",
                                                                               "DumpState",
                                                                               "SlotWentRound"};

// --- writing ---------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(std::vector<UniqueFd>& fds) : fds_(fds) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    json_[name] = Value(value);
  }
  void Optional(const char* name, UniqueFd& fd) { json_[name] = Value(fd); }
  Json Take() { return std::move(json_); }

 private:
  template <typename T>
  Json Value(T& value) {
    if constexpr (std::is_same_v<T, UniqueFd>) {
      if (!value.valid()) return nullptr;
      fds_.push_back(std::move(value));
      return fds_.size() - 1;
    } else if constexpr (std::is_same_v<T, Phase>) {
      return static_cast<uint8_t>(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string> ||
                         std::is_same_v<T, Uuid> ||
                         std::is_same_v<T, std::map<std::string, uint64_t>> ||
                         std::is_same_v<T, std::vector<std::string>>) {
      return value;
    } else if constexpr (requires { value.begin(); }) {
      Json list = Json::array();
      for (auto& entry : value) list.push_back(Value(entry));
      return list;
    } else {
      Writer inner(fds_);
      Fields(inner, value);
      return inner.Take();
    }
  }

  std::vector<UniqueFd>& fds_;
  Json json_ = Json::object();
};

// --- reading ---------------------------------------------------------------------------------

class Reader {
 public:
  Reader(const Json& json, std::vector<UniqueFd>& fds) : json_(json), fds_(fds) {}

  template <typename T>
  void operator()(const char* name, T& value) {
    auto it = json_.find(name);
    if (it == json_.end() || !Value(*it, value)) Complain(name);
  }
  void Optional(const char* name, UniqueFd& fd) {
    auto it = json_.find(name);
    if (it != json_.end() && !it->is_null() && !Value(*it, fd)) Complain(name);
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  void Complain(const char* name) {
    if (wrong_.empty()) wrong_ = name;
  }

  template <typename T>
  bool Value(const Json& json, T& value) {
    if constexpr (std::is_same_v<T, UniqueFd>) {
      uint64_t index = 0;
      if (!Value(json, index) || index >= fds_.size() || !fds_[index].valid()) return false;
      value = std::move(fds_[index]);
      return true;
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return false;
      value = json.get<bool>();
      return true;
    } else if constexpr (std::is_same_v<T, Phase>) {
      uint8_t number = 0;
      if (!Value(json, number) || number > static_cast<uint8_t>(Phase::kStopped)) return false;
      value = static_cast<Phase>(number);
      return true;
    } else if constexpr (std::is_integral_v<T>) {
      return Integer(json, value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return false;
      value = json.get<std::string>();
      return true;
    } else if constexpr (std::is_same_v<T, Uuid>) {
      if (!json.is_array() || json.size() != value.size()) return false;
      for (size_t i = 0; i < value.size(); ++i)
        if (!Integer(json[i], value[i])) return false;
      return true;
    } else {
      return Compound(json, value);
    }
  }

  template <typename T>
  static bool Integer(const Json& json, T& value) {
    if (json.is_number_unsigned()) {
      const auto number = json.get<uint64_t>();
      value = static_cast<T>(number);
      return std::in_range<T>(number);
    }
    if (!json.is_number_integer()) return false;
    const auto number = json.get<int64_t>();
    value = static_cast<T>(number);
    return std::in_range<T>(number);
  }

  template <typename T>
  bool Compound(const Json& json, T& value) {
    if constexpr (std::is_same_v<T, std::map<std::string, uint64_t>>) {
      if (!json.is_object()) return false;
      for (const auto& [key, entry] : json.items())
        if (!Integer(entry, value[key])) return false;
      return true;
    } else if constexpr (requires { value.emplace_back(); }) {
      if (!json.is_array()) return false;
      for (const Json& entry : json)
        if (!Value(entry, value.emplace_back())) return false;
      return true;
    } else {
      if (!json.is_object()) return false;
      Reader inner(json, fds_);
      Fields(inner, value);
      return inner.wrong().empty();
    }
  }

  const Json& json_;
  std::vector<UniqueFd>& fds_;
  std::string wrong_;
};

template <size_t I = 0>
Result<Message> DecodeNamed(std::string_view name, const Json& json, std::vector<UniqueFd>& fds) {
  if constexpr (I == std::variant_size_v<Message>) {
    return Fail(ErrorCode::kCorrupt, "unknown message");
  } else {
    if (name != kNames[I]) return DecodeNamed<I + 1>(name, json, fds);
    std::variant_alternative_t<I, Message> message;
    Reader reader(json, fds);
    Fields(reader, message);
    if (!reader.wrong().empty())
      return Fail(ErrorCode::kCorrupt, std::string(name) + ": wrong or missing: " + reader.wrong());
    return Message(std::move(message));
  }
}

}  // namespace

std::string_view MessageName(const Message& message) { return kNames[message.index()]; }

Result<Wire> Encode(Message message) {
  Wire wire;
  Writer writer(wire.fds);
  std::visit([&](auto& m) { Fields(writer, m); }, message);
  Json json = writer.Take();
  json["type"] = MessageName(message);
  // Names of processes and files are any bytes: what is no UTF-8 is replaced.
  wire.text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (wire.text.size() > kMaxMessageBytes || wire.fds.size() > kMaxMessageFds)
    return Fail(ErrorCode::kLimit, std::string(MessageName(message)) + ": message is too large");
  return wire;
}

Result<Message> Decode(Wire wire) {
  if (wire.text.size() > kMaxMessageBytes) return Fail(ErrorCode::kCorrupt, "message too large");
  const Json json = Json::parse(wire.text, nullptr, false);
  if (!json.is_object()) return Fail(ErrorCode::kCorrupt, "message is no JSON object");
  const auto name = json.find("type");
  if (name == json.end() || !name->is_string())
    return Fail(ErrorCode::kCorrupt, "message without a name");
  return DecodeNamed(name->get<std::string>(), json, wire.fds);
}

}  // namespace weft::ipc
