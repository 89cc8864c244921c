// SPDX-License-Identifier: Apache-2.0
// See relay_client.h.
#include "cli/kubectl/relay_client.h"

#include <algorithm>
#include <thread>

#include "cli/kubectl/relay_path.h"
#include "lib/kube/resource.h"

namespace weft::kubectl {
namespace {

constexpr std::size_t kMaxFiles = 1'000'000;
constexpr std::size_t kMaxPods = 100'000;
// A relay that serves too much at once, or starts again, is asked again so often.
constexpr int kTries = 5;
constexpr std::chrono::milliseconds kWaitBetweenTries{500};

// The first line of a text/plain body, printable.
std::string FirstLine(const std::string& body) {
  std::string line = body.substr(0, std::min<std::size_t>(body.find('\n'), 300));
  std::ranges::replace_if(line, [](char c) { return c < ' ' || c == '\x7f'; }, '?');
  return line;
}

bool MayPass(const kube::HttpReply& reply) {
  return reply.status == 429 || (reply.status >= 502 && reply.status <= 504);
}

Error Refusal(const kube::HttpReply& reply) {
  const kube::Json status = kube::Json::parse(reply.body, nullptr, false);
  const std::string message = kube::TextAt(status, {"message"});
  // A Status object is the API server's, which did not pass the request on.
  if (reply.status == 403 && !message.empty()) return {ErrorCode::kPermission, 0, message};
  if (reply.status == 401 || reply.status == 403)
    return {ErrorCode::kPermission, 0, "the relay refuses the request: " + FirstLine(reply.body)};
  const std::string why = message.empty() ? FirstLine(reply.body) : message;
  const std::string what = "the relay answers with status " + std::to_string(reply.status) + ": ";
  if (reply.status == 404) return {ErrorCode::kNotFound, 0, what + why};
  return {ErrorCode::kIo, 0, what + why};
}

}  // namespace

Result<std::vector<RelayFile>> ParseFiles(std::string_view text) {
  const kube::Json answer = kube::Json::parse(text, nullptr, false);
  const kube::Json* files = kube::At(answer, {"files"});
  if (files == nullptr || !files->is_array() || files->size() > kMaxFiles)
    return Fail(ErrorCode::kCorrupt, "the relay's answer is no list of files");
  std::vector<RelayFile> out;
  for (const kube::Json& file : *files) {
    RelayFile one{.path = kube::TextAt(file, {"path"})};
    const kube::Json* size = kube::At(file, {"size"});
    if (!IsRelayPath(one.path) || size == nullptr || !size->is_number_unsigned())
      return Fail(ErrorCode::kCorrupt, "the relay's list of files has one that is none of a trace");
    one.size = size->get<std::uint64_t>();
    const auto number = [&file](const char* name) {
      const kube::Json* member = kube::At(file, {name});
      const bool is_number = member != nullptr && member->is_number_unsigned();
      return is_number ? member->get<std::uint64_t>() : 0;
    };
    one.offset = std::min(number("offset"), one.size);
    const kube::Json* live = kube::At(file, {"live"});
    one.live = live != nullptr && live->is_boolean() && live->get<bool>();
    one.kept = number("kept");
    one.safe_time = number("safe_time");
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::vector<RelayRates>> ParseRates(std::string_view text) {
  const auto fail = [] {
    return Fail(ErrorCode::kCorrupt, "the relay's answer is no list of rates");
  };
  const kube::Json answer = kube::Json::parse(text, nullptr, false);
  const kube::Json* pods = kube::At(answer, {"pods"});
  if (pods == nullptr || !pods->is_array() || pods->size() > kMaxPods) return fail();
  std::vector<RelayRates> out;
  for (const kube::Json& pod : *pods) {
    RelayRates one{.pod = kube::TextAt(pod, {"pod"})};
    const auto read = [&](std::string_view name, std::uint64_t RelayCounts::* count) {
      const kube::Json* total = kube::At(pod, {"total", name});
      const kube::Json* seconds = kube::At(pod, {name});
      if (total == nullptr || !total->is_number_unsigned() || seconds == nullptr ||
          !seconds->is_array())
        return false;
      one.total.*count = total->get<std::uint64_t>();
      for (const kube::Json& second : *seconds) {
        if (!second.is_number_unsigned()) return false;
        one.recently.*count += second.get<std::uint64_t>();
      }
      return true;
    };
    if (one.pod.empty() || !read("events", &RelayCounts::events) ||
        !read("bytes", &RelayCounts::bytes) || !read("discarded", &RelayCounts::discarded) ||
        !read("lost", &RelayCounts::lost))
      return fail();
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::vector<std::optional<std::string>>> ParseParts(std::string_view answer,
                                                           const std::vector<RelayPart>& parts) {
  constexpr std::uint32_t kNoFile = UINT32_MAX;
  const auto wrong = [] { return Fail(ErrorCode::kCorrupt, "the relay sent no parts of files"); };
  std::vector<std::optional<std::string>> out;
  for (const RelayPart& part : parts) {
    std::uint32_t length = 0;
    if (answer.size() < sizeof(length)) return wrong();
    for (std::size_t i = 0; i < sizeof(length); i++)
      length |= std::uint32_t{static_cast<unsigned char>(answer[i])} << (8 * i);
    answer.remove_prefix(sizeof(length));
    if (length == kNoFile) {
      out.emplace_back();
      continue;
    }
    if (length > part.size || length > answer.size()) return wrong();
    out.emplace_back(answer.substr(0, length));
    answer.remove_prefix(length);
  }
  if (!answer.empty()) return wrong();
  return out;
}

std::string RelayTarget(const Connection& connection) {
  return "/api/v1/namespaces/" + kube::Encode(connection.weft_namespace) +
         "/services/https:weft-relay:api/proxy/v1";
}

RelayClient::RelayClient(const Connection& connection, TraceView& view, std::string folder)
    : connection_(connection),
      view_(view),
      base_(RelayTarget(connection) + "/namespaces/" + kube::Encode(connection.name_space) +
            "/traces/" + std::move(folder)) {}

Result<std::string> RelayClient::Get(const std::string& below, const std::string& range) {
  for (int tries = 1;; ++tries) {
    WEFT_ASSIGN(const std::string token, view_.Token());
    kube::HttpRequest request{.method = "GET",
                              .target = base_ + below,
                              .headers = {{"X-Weft-Token", token}, {"Accept", "*/*"}}};
    if (!range.empty()) request.headers.emplace_back("Range", range);
    kube::HttpReply reply = connection_.client->Exchange(request);
    if (reply.failure != kube::TransportFailure::kNone)
      return Fail(ErrorCode::kIo, "the relay cannot be asked: " + reply.problem);
    if (reply.status == 200 || reply.status == 206) return std::move(reply.body);
    if (reply.status == 416) return "";
    if (!MayPass(reply) || tries == kTries) return std::unexpected(Refusal(reply));
    std::this_thread::sleep_for(kWaitBetweenTries);
  }
}

Result<std::vector<RelayFile>> RelayClient::Files(const TimeRange& range) {
  std::string query;
  if (range.since > 0) query += "?since=" + std::to_string(range.since);
  if (range.until < UINT64_MAX)
    query += (query.empty() ? "?until=" : "&until=") + std::to_string(range.until);
  WEFT_ASSIGN(const std::string body, Get("/files" + query, ""));
  return ParseFiles(body);
}

Result<std::vector<RelayRates>> RelayClient::Rates(int seconds) {
  WEFT_ASSIGN(const std::string body, Get("/rates?seconds=" + std::to_string(seconds), ""));
  return ParseRates(body);
}

Result<std::string> RelayClient::Read(const std::string& path, std::uint64_t offset,
                                      std::uint64_t size) {
  if (size == 0) return "";
  WEFT_ASSIGN(std::string body, Get("/files/" + path, "bytes=" + std::to_string(offset) + "-" +
                                                          std::to_string(offset + size - 1)));
  if (body.size() > size)
    return Fail(ErrorCode::kCorrupt, "the relay sent more bytes than it was asked for");
  return body;
}

Result<std::vector<std::optional<std::string>>> RelayClient::ReadParts(
    const std::vector<RelayPart>& parts) {
  std::string query;
  for (const RelayPart& part : parts) {
    query += (query.empty() ? "?part=" : "&part=") + std::to_string(part.offset) + ":" +
             std::to_string(part.size) + ":" + part.path;
  }
  WEFT_ASSIGN(const std::string body, Get("/parts" + query, ""));
  return ParseParts(body, parts);
}

}  // namespace weft::kubectl
