// SPDX-License-Identifier: Apache-2.0
// Requests and answers of the Kubernetes API.
#include "lib/kube/client.h"

#include <optional>

namespace weft::kube {
namespace {

constexpr int kGone = 410;

ErrorCode CodeOf(int status) {
  if (status == 404) return ErrorCode::kNotFound;
  if (status == 409) return ErrorCode::kConflict;
  if (status == 401 || status == 403) return ErrorCode::kPermission;
  if (status == 429) return ErrorCode::kLimit;
  return status >= 500 ? ErrorCode::kIo : ErrorCode::kInvalid;
}

ErrorCode CodeOf(TransportFailure failure) {
  switch (failure) {
    case TransportFailure::kNone:
    case TransportFailure::kConnection:
      return ErrorCode::kIo;
    case TransportFailure::kConfig:
      return ErrorCode::kInvalid;
    case TransportFailure::kTimeout:
      return ErrorCode::kTimeout;
    case TransportFailure::kCancelled:
      return ErrorCode::kClosed;
    case TransportFailure::kTooLarge:
      return ErrorCode::kLimit;
  }
  return ErrorCode::kIo;
}

std::string What(const HttpRequest& request) {
  return request.method + " " + request.target.substr(0, request.target.find('?'));
}

// The Status object of a refusal says what is wrong; other bodies are not for people.
Error Refused(const HttpRequest& request, const HttpReply& reply) {
  const Json status = Json::parse(reply.body, nullptr, false);
  std::string message = TextAt(status, {"message"});
  if (message.empty()) message = "HTTP status " + std::to_string(reply.status);
  return Error{CodeOf(reply.status), 0, What(request) + ": " + message};
}

std::optional<Error> Problem(const HttpRequest& request, const HttpReply& reply) {
  if (reply.failure != TransportFailure::kNone)
    return Error{CodeOf(reply.failure), 0, What(request) + ": " + reply.problem};
  if (reply.status < 200 || reply.status > 299) return Refused(request, reply);
  return std::nullopt;
}

Result<Json> ParseAnswer(const HttpRequest& request, const std::string& body) {
  Json answer = Json::parse(body, nullptr, false);
  if (!answer.is_object()) return Fail(ErrorCode::kCorrupt, What(request) + ": no JSON object");
  return answer;
}

Query SelectionQuery(const Selection& selection) {
  Query query;
  if (!selection.fields.empty()) query.emplace_back("fieldSelector", selection.fields);
  if (!selection.labels.empty()) query.emplace_back("labelSelector", selection.labels);
  return query;
}

}  // namespace

HttpReply Client::Ask(const HttpRequest& request, const std::stop_token& stop) {
  HttpReply reply = transport_->Send(request, stop);
  if (reply.date) {
    const std::lock_guard lock(mutex_);
    time_ = {.server = *reply.date, .here = std::chrono::steady_clock::now()};
  }
  return reply;
}

WallTime Client::ServerTime() const {
  const std::lock_guard lock(mutex_);
  if (!time_) return std::chrono::system_clock::now();
  return time_->server + (std::chrono::steady_clock::now() - time_->here);
}

Result<Json> Client::Send(const HttpRequest& request, const std::stop_token& stop) {
  const HttpReply reply = Ask(request, stop);
  if (auto problem = Problem(request, reply)) return std::unexpected(std::move(*problem));
  return ParseAnswer(request, reply.body);
}

Result<Json> Client::Get(const Address& object) {
  return Send({.method = "GET", .target = Target(object)});
}

Result<ObjectList> Client::List(const Address& collection, const Selection& selection,
                                const std::stop_token& stop) {
  ObjectList list;
  std::string next;
  for (int tries = 1;;) {
    Query query = SelectionQuery(selection);
    query.emplace_back("limit", std::to_string(kPageSize));
    if (!next.empty()) query.emplace_back("continue", next);
    const HttpRequest request{.method = "GET", .target = Target(collection, query)};
    const HttpReply reply = Ask(request, stop);
    if (reply.status == kGone && tries++ < kListTries) {
      list = {};
      next.clear();
      continue;
    }
    if (auto problem = Problem(request, reply)) return std::unexpected(std::move(*problem));
    WEFT_ASSIGN(Json page, ParseAnswer(request, reply.body));
    const Json* items = At(page, {"items"});
    if (items != nullptr && items->is_array()) {
      for (Json& item : page["items"]) list.items.push_back(std::move(item));
    }
    list.resource_version = TextAt(page, {"metadata", "resourceVersion"});
    next = TextAt(page, {"metadata", "continue"});
    if (next.empty()) return list;
  }
}

// Source: the Kubernetes API conventions, ListMeta.remainingItemCount.
Result<std::size_t> Client::Count(const Address& collection, std::chrono::seconds limit) {
  WEFT_ASSIGN(const Json page, Send({.method = "GET",
                                     .target = Target(collection, {{"limit", "1"}}),
                                     .answer_limit = limit}));
  const Json* items = At(page, {"items"});
  const std::size_t shown = items != nullptr && items->is_array() ? items->size() : 0;
  if (TextAt(page, {"metadata", "continue"}).empty()) return shown;
  const Json* rest = At(page, {"metadata", "remainingItemCount"});
  if (rest == nullptr || !rest->is_number_unsigned())
    return Fail(ErrorCode::kUnsupported, "the API server does not count what it has");
  return shown + rest->get<std::size_t>();
}

Result<WatchEnd> Client::Watch(const Address& collection, const Selection& selection,
                               std::string& version, const std::stop_token& stop,
                               const std::function<void(WatchEvent)>& on_event) {
  Query query = SelectionQuery(selection);
  query.emplace_back("watch", "true");
  query.emplace_back("allowWatchBookmarks", "true");
  query.emplace_back("timeoutSeconds", std::to_string(kWatchSeconds));
  query.emplace_back("resourceVersion", version);
  const HttpRequest request{.method = "GET", .target = Target(collection, query)};

  WatchDecoder decoder;
  Status decoded;
  std::optional<Json> error;
  const auto take = [&](WatchEvent event) {
    if (event.type == WatchType::kError) {
      error = std::move(event.object);
      return false;
    }
    if (std::string at = TextAt(event.object, {"metadata", "resourceVersion"}); !at.empty())
      version = std::move(at);
    if (event.type != WatchType::kBookmark) on_event(std::move(event));
    return true;
  };
  const HttpReply reply = transport_->Stream(request, stop, [&](std::string_view bytes) {
    decoded = decoder.Feed(bytes, take);
    return decoded.has_value();
  });
  if (error) {
    const Json* code = At(*error, {"code"});
    if (code != nullptr && *code == kGone) return WatchEnd::kExpired;
    return Fail(ErrorCode::kIo, What(request) + ": " + TextAt(*error, {"message"}));
  }
  if (reply.status == kGone) return WatchEnd::kExpired;
  if (!decoded) return std::unexpected(std::move(decoded.error()).Context(What(request)));
  if (auto problem = Problem(request, reply)) return std::unexpected(std::move(*problem));
  return WatchEnd::kOver;
}

Result<Json> Client::Create(const Address& collection, const Json& object) {
  return Send({.method = "POST",
               .target = Target(collection, {{"fieldManager", manager_}}),
               .content_type = "application/json",
               .body = object.dump()});
}

Result<Json> Client::Apply(const Address& object, const Json& body) {
  return Send({.method = "PATCH",
               .target = Target(object, {{"fieldManager", manager_}, {"force", "true"}}),
               .content_type = "application/apply-patch+yaml",  // JSON is YAML
               .body = body.dump()});
}

Result<Json> Client::MergePatch(const Address& object, const Json& body) {
  return Send({.method = "PATCH",
               .target = Target(object, {{"fieldManager", manager_}}),
               .content_type = "application/merge-patch+json",
               .body = body.dump()});
}

Status Client::Delete(const Address& object, const std::string& uid) {
  Json options = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  const Result<Json> answer = Send({.method = "DELETE",
                                    .target = Target(object),
                                    .content_type = "application/json",
                                    .body = options.dump()});
  if (!answer) return std::unexpected(answer.error());
  return {};
}

}  // namespace weft::kube
