// SPDX-License-Identifier: Apache-2.0
// See service.h.
#include "relay/api/service.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/log_text.h"
#include "lib/kube/digest.h"
#include "relay/api/archive_source.h"
#include "relay/api/request.h"
#include "relay/api/zstd_source.h"

namespace weft::relay_api {
namespace {

using kube::Json;

http::Response Say(int status, std::string line) {
  http::Response response{.status = status, .body = std::move(line) + "\n"};
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

http::Response SayJson(const Json& body) {
  return {.content_type = "application/json", .body = body.dump() + "\n"};
}

bool IsMetadata(std::string_view path) { return path == "metadata" || path.ends_with("/metadata"); }

// Appends up to `most` bytes of a file to `body`; fewer if it is shorter by now.
Result<uint64_t> ReadInto(int fd, uint64_t at, uint64_t most, std::string& body) {
  const size_t place = body.size();
  body.resize(place + most);
  uint64_t done = 0;
  while (done < most) {
    const ssize_t got =
        ::pread(fd, body.data() + place + done, most - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FailErrno("pread");
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  body.resize(place + done);
  return done;
}

std::string FolderOf(const Route& route) {
  return store::TraceFolder(route.kubernetes_namespace, route.trace, route.uid);
}

Result<Selection> SelectionIn(std::string_view query) {
  const auto number = [query](const char* name) {
    auto found = NumberIn(query, name);
    if (!found) found.error().message += " of nanoseconds since 1970";
    return found;
  };
  WEFT_ASSIGN(const auto since, number("since"));
  WEFT_ASSIGN(const auto until, number("until"));
  WEFT_ASSIGN(auto pods, PodsIn(query));
  return Selection{.range = {.since = since.value_or(0), .until = until.value_or(UINT64_MAX)},
                   .pods = std::move(pods)};
}

// Returns the entity tag of an archive: it is another one if the archive may have other bytes. The
// kept bytes of a live stream never change; metadata may, without becoming longer. A stream that is
// not live has no bytes that its node said to be kept: the node may come back and cut some off.
// Empty: there is no SHA-256.
std::string TagOf(const std::vector<StoredFile>& files, const store::SafeReads::Snapshot& look,
                  const std::string& folder) {
  std::string list;
  for (const StoredFile& file : files) {
    const store::SafeRead safe = look.Find(folder + "/" + file.path, file.size);
    const bool stays = !IsMetadata(file.path) && safe.live && safe.kept == file.size;
    const auto written = stays ? 0 : file.written.time_since_epoch().count();
    list += file.path;
    for (const auto number : {file.offset, file.size, static_cast<uint64_t>(written)}) {
      list += " " + std::to_string(number);
    }
    list += "\n";
  }
  const auto digest = Sha256(list);
  return digest ? "\"" + *digest + "\"" : "";
}

// Makes `response` an answer with the bytes from `first` to before `end` of `size`.
void SayRange(http::Response& response, uint64_t first, uint64_t end, uint64_t size) {
  response.status = 206;
  response.headers.emplace_back("Content-Range", "bytes " + std::to_string(first) + "-" +
                                                     std::to_string(end - 1) + "/" +
                                                     std::to_string(size));
}

// Where a range ends: behind its last byte that there is.
uint64_t EndOf(const Range& range, uint64_t size) {
  return range.last && *range.last < size ? *range.last + 1 : size;
}

}  // namespace

// One of the kMaxDownloads places of a credential.
class Service::Download {
 public:
  Download(Service& service, std::string credential)
      : service_(service), credential_(std::move(credential)) {}
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;
  ~Download() { service_.EndDownload(credential_); }

 private:
  Service& service_;
  const std::string credential_;
};

class Service::FileSource : public http::BodySource {
 public:
  FileSource(UniqueFd fd, uint64_t begin, uint64_t bytes, std::shared_ptr<Download> download,
             metrics::Registry& metrics)
      : fd_(std::move(fd)),
        at_(begin),
        bytes_(bytes),
        download_(std::move(download)),
        metrics_(metrics) {}

  [[nodiscard]] std::optional<uint64_t> bytes() const override { return bytes_; }

  Result<size_t> Read(std::span<char> block) override {
    ssize_t got = 0;
    do {
      got = ::pread(fd_.get(), block.data(), block.size(), static_cast<off_t>(at_));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return FailErrno("pread");
    at_ += static_cast<uint64_t>(got);
    metrics_.Add(metrics::Id::kRelayApiBytes, {}, static_cast<double>(got));
    return static_cast<size_t>(got);
  }

 private:
  const UniqueFd fd_;
  uint64_t at_;
  const uint64_t bytes_;
  const std::shared_ptr<Download> download_;
  metrics::Registry& metrics_;
};

http::Response Service::Answer(const http::Request& request) {
  Outcome outcome = Decide(request);
  metrics_.Add(metrics::Id::kRelayApiRequests, {outcome.result});
  Audit(request, outcome);
  outcome.response.headers.emplace_back("Cache-Control", "no-store");
  return std::move(outcome.response);
}

Service::Outcome Service::Decide(const http::Request& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    return {.response = Say(405, "GET and HEAD only"), .result = "bad_request"};
  }
  const auto route = ParseRoute(request.path);
  const bool knows_trace = route && !route->uid.empty() && files_.Has(FolderOf(*route));
  // All users share the API server's address. Strangers do not use up what is left for those who
  // know a Trace, nor do tenants of one namespace that of another.
  const std::string about = knows_trace ? "/" + route->kubernetes_namespace : "";
  if (!TakePeer(request.peer + about)) {
    return {.response = Say(429, "too many requests from this address: try again"),
            .result = "limited"};
  }
  const auto token = ParseToken(request.Header("x-weft-token"), request.Header("authorization"));
  if (!token) return {.response = Say(401, token.error().message), .result = "no_token"};
  if (!route) return {.response = Say(404, route.error().message), .result = "not_found"};
  const Judgement judgement = route->verb == Verb::kGetTicket
                                  ? judge_.DecideAgent(*token, request.peer)
                                  : judge_.Decide(*token, *route, request.peer, knows_trace);
  Outcome outcome;
  switch (judgement.verdict) {
    case Verdict::kAllowed:
      outcome = Deliver(request, *route, judgement);
      break;
    case Verdict::kUnknown:
      outcome.response =
          Say(401, "this token opens nothing: it is wrong or has expired; make a new TraceView");
      outcome.result = "unknown_token";
      break;
    case Verdict::kForbidden:
      outcome.response = Say(403,
                             "this token does not open that: it takes `get traces` in that "
                             "namespace, or a TraceView of that Trace");
      outcome.result = "forbidden";
      break;
    case Verdict::kLimited:
      outcome.response = Say(429, "too many tokens to look at: try again");
      outcome.result = "limited";
      break;
    case Verdict::kUnavailable:
      outcome.response =
          Say(503, "the relay cannot ask the API server about this token: try again");
      outcome.result = "unavailable";
      break;
  }
  outcome.who = judgement.who;
  outcome.credential = judgement.credential;
  if (!judgement.problem.empty()) outcome.note = judgement.problem;
  return outcome;
}

Service::Outcome Service::Deliver(const http::Request& request, const Route& route,
                                  const Judgement& judgement) {
  if (!TakeCredential(judgement.credential)) {
    return {.response = Say(429, "too many requests with this token: try again"),
            .result = "limited"};
  }
  switch (route.verb) {
    case Verb::kListTraces:
      return ListTraces(route, judgement);
    case Verb::kListFiles:
      return ListFiles(request, route);
    case Verb::kGetFile:
      return GetFile(request, route, judgement.credential);
    case Verb::kGetParts:
      return GetParts(request, route, judgement.credential);
    case Verb::kGetArchive:
      return GetArchive(request, route, judgement.credential);
    case Verb::kGetRates:
      return GetRates(request, route);
    case Verb::kGetTicket:
      return GetTicket(route, judgement);
  }
  return {};
}

Service::Outcome Service::ListTraces(const Route& route, const Judgement& judgement) {
  const auto share = long_reads_.Begin(route.kubernetes_namespace);
  if (share == nullptr) return TooManyReads();
  const auto traces = files_.ListTraces(route.kubernetes_namespace, judgement.only_trace);
  if (!traces) {
    return {.response = Say(503, "the relay cannot read its folder"),
            .result = "unavailable",
            .note = traces.error().message};
  }
  Json list = Json::array();
  for (const StoredTrace& trace : *traces) {
    list.push_back({{"name", trace.name},
                    {"uid", trace.uid},
                    {"folder", trace.name + "/" + trace.uid},
                    {"bytes", trace.bytes},
                    {"files", trace.files}});
  }
  return {.response = SayJson({{"traces", std::move(list)}})};
}

Service::Outcome Service::FailedList(const Error& error) {
  if (error.code == ErrorCode::kNotFound) {
    return {.response = Say(404, error.message), .result = "not_found"};
  }
  return {.response = Say(503, "the relay cannot list these files"),
          .result = "unavailable",
          .note = error.message};
}

Service::Outcome Service::BadRequest(const Error& error) {
  return {.response = Say(400, error.message), .result = "bad_request"};
}

Service::Outcome Service::BeyondEnd(const char* what, uint64_t size) {
  const std::string bytes = std::to_string(size);
  Outcome outcome{.response = Say(416, std::string("the ") + what + " has " + bytes + " bytes"),
                  .result = "bad_request"};
  outcome.response.headers.emplace_back("Content-Range", "bytes */" + bytes);
  return outcome;
}

Service::Outcome Service::TooManyDownloads() {
  return {.response = Say(429, "too many files at a time with this token: end one first"),
          .result = "limited"};
}

Service::Outcome Service::TooManyReads() {
  return {
      .response = Say(429,
                      "the relay is reading many files for others, of this namespace or of all: "
                      "try again after a second"),
      .result = "limited"};
}

Service::Outcome Service::ListFiles(const http::Request& request, const Route& route) {
  const auto selection = SelectionIn(request.query);
  if (!selection) return BadRequest(selection.error());
  auto share = long_reads_.Begin(route.kubernetes_namespace);
  if (share == nullptr) return TooManyReads();
  const auto look = safe_.Look(FolderOf(route));
  const auto files = files_.ListFiles(FolderOf(route), *selection);
  if (!files) return FailedList(files.error());
  Json list = Json::array();
  for (const StoredFile& file : *files) {
    Json entry = {{"path", file.path}, {"size", file.size}};
    if (file.offset > 0) entry["offset"] = file.offset;
    if (!IsMetadata(file.path)) {
      const store::SafeRead safe = look.Find(FolderOf(route) + "/" + file.path, file.size);
      entry["live"] = safe.live;
      entry["kept"] = safe.kept;
      if (safe.time_ns != 0) entry["safe_time"] = safe.time_ns;
    }
    list.push_back(std::move(entry));
  }
  return {.response = SayJson({{"files", std::move(list)}})};
}

Service::Outcome Service::GetRates(const http::Request& request, const Route& route) {
  const auto seconds = NumberIn(request.query, "seconds");
  if (!seconds || seconds->value_or(1) == 0) {
    return {.response = Say(400, "seconds must be a whole number above 0"),
            .result = "bad_request"};
  }
  const uint64_t asked = std::min<uint64_t>(seconds->value_or(kRateSeconds), relay_rates::kSeconds);
  Json list = Json::array();
  for (const relay_rates::PodRates& pod : rates_.Of(FolderOf(route), asked)) {
    Json one = {{"pod", pod.pod}};
    const auto add = [&](const char* name, uint64_t relay_rates::Counts::* count) {
      one["total"][name] = pod.total.*count;
      for (const relay_rates::Counts& second : pod.seconds) one[name].push_back(second.*count);
    };
    add("events", &relay_rates::Counts::events);
    add("bytes", &relay_rates::Counts::bytes);
    add("discarded", &relay_rates::Counts::discarded);
    add("lost", &relay_rates::Counts::lost);
    list.push_back(std::move(one));
  }
  return {.response = SayJson({{"seconds", asked}, {"pods", std::move(list)}})};
}

Service::Outcome Service::GetArchive(const http::Request& request, const Route& route,
                                     const std::string& credential) {
  const auto selection = SelectionIn(request.query);
  if (!selection) return BadRequest(selection.error());
  auto share = long_reads_.Begin(route.kubernetes_namespace);
  if (share == nullptr) return TooManyReads();
  const auto look = safe_.Look(FolderOf(route));
  auto files = files_.ListFiles(FolderOf(route), *selection);
  if (!files) return FailedList(files.error());
  const auto is_stream = [](const StoredFile& file) { return !IsMetadata(file.path); };
  if (!selection->is_all() && std::ranges::none_of(*files, is_stream)) {
    return {.response = Say(404, "the relay has no events of this time and these pods"),
            .result = "not_found"};
  }
  const std::string tag = route.is_compressed ? "" : TagOf(*files, look, FolderOf(route));
  // A range of an archive that has other bytes by now would be of no use: the whole one comes.
  const std::string asked = request.Header("range");
  const bool is_range = !asked.empty() && !tag.empty() && request.Header("if-range") == tag;
  const auto range = is_range ? ParseRange(asked) : Range{};
  if (!range) return BadRequest(range.error());
  auto download = BeginDownload(credential);
  if (download == nullptr) return TooManyDownloads();
  auto compression =
      route.is_compressed ? compressions_.Begin(route.kubernetes_namespace) : nullptr;
  if (route.is_compressed && compression == nullptr) {
    return {.response = Say(429, "too many archives are being compressed: ask for archive.tar"),
            .result = "limited"};
  }
  Outcome outcome{.response = {.content_type = "application/x-tar"}};
  auto source = std::make_shared<ArchiveSource>(
      files_, FolderOf(route), route.trace + "/" + route.uid + "/", std::move(*files),
      [this, download = std::move(download)](size_t bytes) {
        metrics_.Add(metrics::Id::kRelayApiBytes, {}, static_cast<double>(bytes));
      });
  const uint64_t size = source->bytes().value_or(0);
  if (is_range && range->first >= size) return BeyondEnd("archive", size);
  if (!tag.empty()) {
    outcome.response.headers.emplace_back("Accept-Ranges", "bytes");
    outcome.response.headers.emplace_back("ETag", tag);
  }
  if (is_range) {
    const uint64_t end = EndOf(*range, size);
    SayRange(outcome.response, range->first, end, size);
    source->Narrow(range->first, end);
  }
  outcome.note = "bytes " + std::to_string(source->bytes().value_or(0));
  outcome.response.source = std::move(source);
  if (route.is_compressed) {
    outcome.response.content_type = "application/zstd";
    outcome.response.source =
        std::make_shared<ZstdSource>(std::move(outcome.response.source), std::move(compression));
  }
  return outcome;
}

Service::Outcome Service::GetFile(const http::Request& request, const Route& route,
                                  const std::string& credential) {
  const std::string asked = request.Header("range");
  const auto range = asked.empty() ? Range{} : ParseRange(asked);
  if (!range) return BadRequest(range.error());
  auto file = files_.OpenFile(FolderOf(route) + "/" + route.path);
  if (!file && file.error().code == ErrorCode::kNotFound) {
    return {.response = Say(404, file.error().message), .result = "not_found"};
  }
  if (!file) {
    return {.response = Say(503, "the relay cannot read this file"),
            .result = "unavailable",
            .note = file.error().message};
  }
  if (!asked.empty() && range->first >= file->size) return BeyondEnd("file", file->size);
  auto download = BeginDownload(credential);
  if (download == nullptr) return TooManyDownloads();
  const uint64_t end = EndOf(*range, file->size);
  Outcome outcome{.response = {.content_type = "application/octet-stream"}};
  outcome.response.headers.emplace_back("Accept-Ranges", "bytes");
  if (!asked.empty()) SayRange(outcome.response, range->first, end, file->size);
  outcome.note = "bytes " + std::to_string(end - range->first);
  outcome.response.source = std::make_shared<FileSource>(
      std::move(file->fd), range->first, end - range->first, std::move(download), metrics_);
  return outcome;
}

// Each part is its length as a u32 (little-endian), kNoFile if there is no such file, then its
// bytes.
Service::Outcome Service::GetParts(const http::Request& request, const Route& route,
                                   const std::string& credential) {
  constexpr uint32_t kNoFile = UINT32_MAX;
  const auto parts = PartsIn(request.query);
  if (!parts) return BadRequest(parts.error());
  const auto share = long_reads_.Begin(route.kubernetes_namespace);
  if (share == nullptr) return TooManyReads();
  const auto download = BeginDownload(credential);
  if (download == nullptr) return TooManyDownloads();
  Outcome outcome{.response = {.content_type = "application/octet-stream"}};
  std::string& body = outcome.response.body;
  uint64_t sent = 0;
  size_t found = 0;
  for (const Part& part : *parts) {
    const size_t place = body.size();
    body.append(sizeof(kNoFile), '\xff');
    auto file = files_.OpenFile(FolderOf(route) + "/" + part.path);
    if (!file && file.error().code == ErrorCode::kNotFound) continue;
    if (!file) {
      return {.response = Say(503, "the relay cannot read these files"),
              .result = "unavailable",
              .note = file.error().message};
    }
    found++;
    const uint64_t there = part.first < file->size ? file->size - part.first : 0;
    const uint64_t most = std::min({part.size, there, kMaxPartsBytes - sent});
    const auto length = ReadInto(file->fd.get(), part.first, most, body);
    if (!length) {
      return {.response = Say(503, "the relay cannot read these files"),
              .result = "unavailable",
              .note = length.error().message};
    }
    for (size_t i = 0; i < sizeof(uint32_t); i++)
      body[place + i] = static_cast<char>(*length >> (8 * i));
    sent += *length;
  }
  if (found == 0) {
    const auto others = files_.ListFiles(FolderOf(route));
    if (!others) return FailedList(others.error());
  }
  metrics_.Add(metrics::Id::kRelayApiBytes, {}, static_cast<double>(sent));
  outcome.note = std::to_string(found) + " parts, bytes " + std::to_string(sent);
  return outcome;
}

Service::Outcome Service::GetTicket(const Route& route, const Judgement& judgement) {
  if (gate_ == nullptr) {
    return {.response = Say(404, "this relay gives no tickets"), .result = "not_found"};
  }
  const auto ticket = gate_->IssueTicket(judgement.node, route.kubernetes_namespace);
  if (!ticket) {
    return {.response = Say(503, "the relay cannot make tickets"),
            .result = "unavailable",
            .note = ticket.error().message};
  }
  return {.response = SayJson({{"ticket", *ticket},
                               {"node", judgement.node},
                               {"seconds", relay_trust::kTicketLifetime.count()}})};
}

bool Service::TakePeer(const std::string& peer) {
  const std::lock_guard lock(mutex_);
  return peers_.Take(peer, now_());
}

bool Service::TakeCredential(const std::string& credential) {
  const std::lock_guard lock(mutex_);
  return credentials_.Take(credential, now_());
}

std::shared_ptr<Service::Download> Service::BeginDownload(const std::string& credential) {
  const std::lock_guard lock(mutex_);
  int& count = downloads_[credential];
  if (count >= kMaxDownloads) return nullptr;
  count++;
  return std::make_shared<Download>(*this, credential);
}

void Service::EndDownload(const std::string& credential) {
  const std::lock_guard lock(mutex_);
  if (--downloads_[credential] == 0) downloads_.erase(credential);
}

void Service::Audit(const http::Request& request, const Outcome& outcome) {
  std::optional<std::string> left_out;
  {
    const std::lock_guard lock(mutex_);
    const std::string key =
        outcome.credential.empty() ? "from " + request.peer : outcome.credential;
    left_out = lines_.Take(key, now_());
  }
  if (!left_out) return;
  std::string line = "api: " + std::to_string(outcome.response.status) + " " + outcome.result +
                     ": " + ForLog(request.method) + " \"" + ForLog(request.path) + "\" by " +
                     (outcome.who.empty() ? "unknown" : ForLog(outcome.who)) + " from " +
                     ForLog(request.peer);
  // The API server's proxy adds the address of its client; others may send what they like.
  if (const std::string forwarded = request.Header("x-forwarded-for"); !forwarded.empty()) {
    line += " for " + ForLog(forwarded);
  }
  if (!outcome.note.empty()) line += ": " + ForLog(outcome.note);
  log_(line + *left_out);
}

}  // namespace weft::relay_api
