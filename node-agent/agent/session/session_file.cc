// SPDX-License-Identifier: Apache-2.0
// A session on disk: JSON with the Traces' text and what cannot be made of it again (ids, phases,
// counts). Written whole beside the old one, synced, renamed.
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <ranges>

#include "lib/base/kill_point.h"
#include "lib/base/unique_fd.h"
#include "lib/fields/json.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/session/session.h"

namespace weft::agent {
namespace {

using fields::Json;

constexpr uint32_t kFileVersion = 5;

Json CountsToJson(const ipc::ChannelCounts& counts) { return fields::JsonWriter().Value(counts); }

ipc::ChannelCounts CountsFromJson(const Json& j) {
  ipc::ChannelCounts counts;
  ForEachField(counts, [&j](const auto& field, auto& count) {
    if (!field.optional || j.contains(field.name)) j.at(field.name).get_to(count);
  });
  return counts;
}

Json ContainerToJson(const SessionChannel& channel) {
  const ipc::ChannelDefinition& of = channel.definition;
  return {{"key", channel.container},
          {"namespace", of.kubernetes_namespace},
          {"pod", of.pod},
          {"pod_uid", of.pod_uid},
          {"name", of.container},
          {"memory_limit", channel.memory_limit}};
}

Session::Container ContainerFromJson(const Json& j) {
  return {.key = j.at("key").get<std::string>(),
          .name_space = j.at("namespace").get<std::string>(),
          .pod = j.at("pod").get<std::string>(),
          .pod_uid = j.at("pod_uid").get<std::string>(),
          .name = j.at("name").get<std::string>(),
          // Absent in a file of an earlier version.
          .memory_limit = j.value("memory_limit", uint64_t{0})};
}

Json ChannelToJson(const SessionChannel& channel) {
  const auto missing = channel.missing | std::views::keys;
  return {{"id", channel.definition.id},
          {"container", ContainerToJson(channel)},
          {"uuid", channel.definition.trace_uuid},
          {"phase", static_cast<uint8_t>(channel.phase)},
          {"stop_at_ns", channel.stop_at_ns},
          {"reported", CountsToJson(channel.reported)},
          {"own", CountsToJson(channel.own)},
          {"accounted", channel.accounted},
          {"missing", std::vector<uint64_t>(missing.begin(), missing.end())},
          {"kernel", channel.of_kernel()},
          {"scope", channel.scope},
          {"outdated", channel.outdated}};
}

void ChannelFromJson(const Json& j, SessionChannel& channel) {
  channel.definition.id = channel.spec.id = j.at("id").get<uint64_t>();
  j.at("uuid").get_to(channel.definition.trace_uuid);
  channel.phase = static_cast<ChannelPhase>(j.at("phase").get<uint8_t>());
  j.at("stop_at_ns").get_to(channel.stop_at_ns);
  channel.reported = CountsFromJson(j.at("reported"));
  channel.own = CountsFromJson(j.at("own"));
  j.at("accounted").get_to(channel.accounted);
  // Absent in a file of an earlier version.
  for (const Json& instance : j.value("missing", Json::array()))
    channel.missing[instance.get<uint64_t>()] = kLooksForMissing;
  j.at("scope").get_to(channel.scope);
  j.at("outdated").get_to(channel.outdated);
}

Status WriteSynced(const std::string& path, const std::string& text) {
  UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return FailErrno(path);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd.get(), text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno(path);
    done += static_cast<size_t>(n);
  }
  if (fsync(fd.get()) != 0) return FailErrno(path);
  return {};
}

}  // namespace

Status Session::Save(const std::string& path) const {
  Json json = {{"version", kFileVersion},
               {"traces", traces_},
               {"file", file_},
               {"output", output},
               {"cgroup", cgroup},
               {"relay",
                {{"host", relay.host},
                 {"control_port", relay.control_port},
                 {"data_port", relay.data_port}}},
               {"ctf_version", ctf_version_},
               {"programs", programs_},
               {"created", created_},
               {"uid", uid_},
               {"retired", CountsToJson(retired)},
               {"retired_ids", retired_ids},
               {"absences", absences},
               {"channels", Json::array()}};
  if (order) json["order"] = api::ToJson(*order);
  for (const SessionChannel& channel : channels) json["channels"].push_back(ChannelToJson(channel));
  const std::string unfinished = path + ".new";
  KillPoint("before_session");
  WEFT_TRY(WriteSynced(unfinished, json.dump(1, ' ', false, Json::error_handler_t::replace)));
  KillPoint("session_written");
  if (rename(unfinished.c_str(), path.c_str()) != 0) return FailErrno(path);
  KillPoint("session_renamed");
  return {};
}

// nlohmann's exceptions end here: the file is ours, so one that cannot be read is refused as a
// whole.
Result<Session> Session::Load(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Fail(ErrorCode::kNotFound, path + ": no session");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  try {
    auto session = FromJson(text);
    if (!session) session.error().message = path + ": " + session.error().message;
    return session;
  } catch (const Json::exception& e) {
    return Fail(ErrorCode::kCorrupt, path + ": " + e.what());
  }
}

Result<Session> Session::FromJson(const std::string& text) {
  const Json json = Json::parse(text);
  if (json.at("version").get<uint32_t>() != kFileVersion)
    return Fail(ErrorCode::kUnsupported, "of another version of weft");
  const Json& channels = json.at("channels");
  if (json.contains("order")) {
    auto order = api::ParseSession(json.at("order").get<std::string>());
    if (!order) return Fail(ErrorCode::kCorrupt, api::ToString(order.error()));
    WEFT_ASSIGN(Session session, FromOrder(std::move(*order)));
    json.at("created").get_to(session.created_);
    session.prototype_.definition.created = session.created_;
    session.retired = CountsFromJson(json.at("retired"));
    json.at("retired_ids").get_to(session.retired_ids);
    // Absent in a file of an earlier version.
    session.absences = json.value("absences", std::vector<std::string>());
    for (const Json& channel : channels) {
      const bool of_kernel = channel.at("kernel").get<bool>();
      ChannelFromJson(channel,
                      of_kernel ? session.AddEmptyKernelChannel()
                                : session.AddChannel(ContainerFromJson(channel.at("container"))));
    }
    return session;
  }
  ipc::CreateSession command;
  json.at("file").get_to(command.file);
  json.at("output").get_to(command.output);
  const Json& relay = json.at("relay");
  relay.at("host").get_to(command.relay.host);
  relay.at("control_port").get_to(command.relay.control_port);
  relay.at("data_port").get_to(command.relay.data_port);
  json.at("ctf_version").get_to(command.ctf_version);
  json.at("programs").get_to(command.programs);
  json.at("uid").get_to(command.uid);
  // Does not load the module now: if it was not available before, it has no channel.
  const auto probe_kernel = [] { return kernel::ThisBackend().Probe(); };
  WEFT_ASSIGN(Session session, Compile(command, json.at("traces").get<std::string>(),
                                       json.at("created").get<std::string>(), probe_kernel));
  json.at("cgroup").get_to(session.cgroup);
  if (channels.size() != session.channels.size())
    return Fail(ErrorCode::kCorrupt, "channels do not match the Traces");
  for (size_t i = 0; i < session.channels.size(); ++i)
    ChannelFromJson(channels[i], session.channels[i]);
  return session;
}

}  // namespace weft::agent
