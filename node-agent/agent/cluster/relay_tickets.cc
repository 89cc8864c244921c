// SPDX-License-Identifier: Apache-2.0
// See relay_tickets.h.
#include "node-agent/agent/cluster/relay_tickets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lib/base/log_text.h"
#include "lib/kube/transport.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

using kube::Json;

Result<RelayTicket> Ask(const kube::TransportConfig& relay, const std::string& name_space) {
  const kube::HttpReply reply = kube::MakeTransport(relay)->Send(
      {.method = "GET", .target = "/v1/tickets/" + name_space}, std::stop_token());
  if (reply.status == 0) return Fail(ErrorCode::kIo, "no ticket from the relay: " + reply.problem);
  if (reply.status != 200) {
    return Fail(ErrorCode::kPermission,
                "no ticket from the relay: " + std::to_string(reply.status) + " " +
                    ForLog(reply.body.substr(0, reply.body.find('\n'))));
  }
  return ParseRelayTicket(reply.body);
}

}  // namespace

Result<RelayTicket> ParseRelayTicket(const std::string& json) {
  const Json answer = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto wrong = [] {
    return Fail(ErrorCode::kCorrupt, "no ticket from the relay: its answer is none");
  };
  if (!answer.is_object()) return wrong();
  const Json* seconds = kube::At(answer, {"seconds"});
  const std::string text = kube::TextAt(answer, {"ticket"});
  if (seconds == nullptr || !seconds->is_number_unsigned() || text.empty() ||
      text.size() > kMaxTicketBytes) {
    return wrong();
  }
  const auto lifetime = std::min<uint64_t>(seconds->get<uint64_t>(), kMaxTicketSeconds);
  return RelayTicket{text, std::chrono::seconds(lifetime)};
}

RelayTickets::RelayTickets(kube::Client& client, ipc::Loop& loop, RelayTicketOptions options)
    : options_(std::move(options)), calls_(loop, kMaxTicketRequests) {
  informer_ = std::make_unique<kube::Informer>(
      client, kube::Address{.resource = kube::kConfigMaps, .name_space = options_.own_namespace},
      kube::Selection{.fields = "metadata.name=" + options_.authorities_map, .labels = ""},
      kube::InformerHandlers{.on_list =
                                 [this](const std::vector<Json>& all) {
                                   for (const Json& map : all) UseMap(map);
                                 },
                             .on_event =
                                 [this](const kube::WatchEvent& event) {
                                   // A map that was deleted is written anew; trust stays.
                                   if (event.type != kube::WatchType::kDeleted)
                                     UseMap(event.object);
                                 },
                             .on_error =
                                 [this](const Error& error) {
                                   const std::lock_guard lock(mutex_);
                                   problem_ = error.message;
                                 }});
}

void RelayTickets::UseMap(const Json& map) {
  std::string bundle = kube::TextAt(map, {"data", "ca.crt"});
  const std::lock_guard lock(mutex_);
  if (!bundle.empty()) authorities_ = std::move(bundle);
}

Result<std::string> RelayTickets::authorities() const {
  const std::lock_guard lock(mutex_);
  if (!authorities_.empty()) return authorities_;
  return Fail(ErrorCode::kNotFound, "the CA of the relay's certificate (ConfigMap " +
                                        options_.own_namespace + "/" + options_.authorities_map +
                                        ", which weft-controller writes): " + problem_);
}

void RelayTickets::GetPass(const std::string& relay_host, const std::string& kubernetes_namespace,
                           bool was_refused, Done done) {
  auto trusted = authorities();
  if (!trusted) return done(std::unexpected(trusted.error()));
  const Key key{relay_host, kubernetes_namespace};
  Entry& entry = entries_[key];
  const auto now = options_.now();
  // A consumer that claims refusals does not make the agent ask without a pause.
  if (was_refused && now - entry.made >= kTicketPause) entry.was_refused = true;
  const bool is_good = !entry.was_refused && now < entry.expires;
  const bool is_due = !is_good || now >= entry.renew;
  if (is_good) {
    done(RelayPass{*trusted, entry.ticket});
  } else {
    entry.waiting.push_back(std::move(done));
  }
  if (!is_due || entry.is_asked_for) return;
  entry.is_asked_for = true;
  calls_.Start([relay = kube::TransportConfig{.server = "https://" + relay_host + ":" +
                                                        std::to_string(options_.api_port),
                                              .token_file = options_.token_file,
                                              .ca = std::move(*trusted)},
                name_space = kubernetes_namespace] { return Ask(relay, name_space); },
               [this, key](const Result<RelayTicket>& result) { Finish(key, result); });
}

void RelayTickets::Finish(const Key& key, const Result<RelayTicket>& result) {
  Entry& entry = entries_[key];
  entry.is_asked_for = false;
  entry.renew = options_.now() + kTicketPause;
  if (result) {
    entry.made = options_.now();
    entry.ticket = result->text;
    entry.renew = entry.made + result->lifetime / 2;
    entry.expires = entry.made + result->lifetime;
    entry.was_refused = false;
  }
  const std::vector<Done> waiting = std::exchange(entry.waiting, {});
  const auto trusted = authorities();
  // A session that goes on needs no ticket, so one that has expired is no reason to end anything.
  for (const Done& done : waiting) {
    if (!result) {
      done(std::unexpected(result.error()));
    } else if (!trusted) {
      done(std::unexpected(trusted.error()));
    } else {
      done(RelayPass{*trusted, entry.ticket});
    }
  }
  // Tickets of namespaces without Traces.
  if (entries_.size() > kMaxTickets) {
    std::erase_if(entries_, [now = options_.now()](const auto& each) {
      return !each.second.is_asked_for && now >= each.second.expires;
    });
  }
}

}  // namespace weft::agent
