// SPDX-License-Identifier: Apache-2.0
#include "relay/api/service.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lib/api/document.h"
#include "lib/ctf/packet_writer.h"
#include "lib/store/store.h"
#include "relay/api/testing.h"

namespace weft::relay_api {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::TestCluster;

const std::string kUid = "6f1c0b0e-5b1f-4c44-9a61-0d6f4ad6ac52";
const std::string kText = "/* CTF 1.8 */\n\n";

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    std::string pattern = ::testing::TempDir() + "weft-service-XXXXXX";
    top_ = ::mkdtemp(pattern.data());
    store::DirectoryFileMaker maker(Folder());
    for (const char* trace : {"shop/sales/", "shop/other/", "bank/sales/"}) {
      EXPECT_TRUE(
          store::TraceStore::Open(maker, trace + kUid + "/pod/kernel")->AppendMetadata(kText));
    }
    files_.emplace(Folder());
    service_.emplace(
        judge_, *files_, safe_, rates_, metrics_,
        [this](const auto& line) { log_.push_back(line); }, &gate_,
        [this] { return cluster_.steady; });
  }
  ~ServiceTest() override { fs::remove_all(top_); }

  UniqueFd Folder() { return UniqueFd(::open(top_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)); }

  http::Response Get(const std::string& path, const std::string& range = "",
                     const std::string& token = TestCluster::kToken,
                     const std::string& if_range = "") {
    const size_t mark = std::min(path.find('?'), path.size());
    http::Request request{.peer = peer_,
                          .method = "GET",
                          .path = "/v1/namespaces/" + path.substr(0, mark),
                          .query = path.substr(std::min(mark + 1, path.size()))};
    if (!token.empty()) request.headers["x-weft-token"] = token;
    if (!range.empty()) request.headers["range"] = range;
    if (!if_range.empty()) request.headers["if-range"] = if_range;
    return service_->Answer(request);
  }
  static std::string Body(const http::Response& response) {
    if (response.source == nullptr) return response.body;
    std::string body(response.source->bytes().value(), '\0');
    size_t at = 0;
    while (at < body.size()) {
      const auto got =
          response.source->Read({body.data() + at, std::min<size_t>(4, body.size() - at)});
      if (!got || *got == 0) break;
      at += *got;
    }
    EXPECT_EQ(at, body.size());
    return body;
  }
  static std::string Header(const http::Response& response, const std::string& name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  std::string peer_ = "198.18.1.1";
  TestCluster cluster_;
  metrics::Registry metrics_{metrics::Part::kRelay};
  Judge judge_{*cluster_.client, "weft", cluster_.clocks()};
  fs::path top_;
  relay_rates::Clock::time_point now_{std::chrono::seconds(100)};
  relay_rates::TraceRates rates_{[this] { return now_; }};
  relay_trust::Gate gate_{*relay_trust::TicketBook::Make()};
  std::optional<TraceFiles> files_;
  std::vector<std::string> log_;
  store::SafeReads safe_;
  std::optional<Service> service_;
};

const std::string kSales = "shop/traces/sales/" + kUid + "/files";
const std::string kFile = kSales + "/pod/kernel/metadata";

TEST_F(ServiceTest, ListsTheTraceOfAView) {
  const auto list = Get("shop/traces");
  EXPECT_EQ(list.status, 200);
  const auto traces = kube::Json::parse(list.body)["traces"];
  ASSERT_EQ(traces.size(), 1U);
  EXPECT_EQ(traces[0], kube::Json({{"name", "sales"},
                                   {"uid", kUid},
                                   {"folder", "sales/" + kUid},
                                   {"bytes", kText.size()},
                                   {"files", 1}}));
  EXPECT_EQ(kube::Json::parse(Get("shop/traces", "", "eyJ.good").body)["traces"].size(), 2U);
  EXPECT_EQ(kube::Json::parse(Get(kSales).body)["files"],
            kube::Json({{{"path", "pod/kernel/metadata"}, {"size", kText.size()}}}));
}

TEST_F(ServiceTest, DeliversAFileInRanges) {
  const auto whole = Get(kFile);
  EXPECT_EQ(whole.status, 200);
  EXPECT_EQ(Body(whole), kText);
  const auto rest = Get(kFile, "bytes=7-");
  EXPECT_EQ(rest.status, 206);
  EXPECT_EQ(Body(rest), kText.substr(7));
  EXPECT_EQ(Header(rest, "Content-Range"), "bytes 7-14/15");
  const auto part = Get(kFile, "bytes=3-5");
  EXPECT_EQ(Body(part), kText.substr(3, 3));
  EXPECT_EQ(Header(part, "Content-Range"), "bytes 3-5/15");
  EXPECT_EQ(Body(Get(kFile, "bytes=0-18446744073709551615")), kText);
  const auto beyond = Get(kFile, "bytes=15-");
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(Header(beyond, "Content-Range"), "bytes */15");
  EXPECT_EQ(Get(kFile, "bytes=-5").status, 400);
  EXPECT_THAT(metrics_.Text(), HasSubstr("weft_relay_api_bytes_total 41"));
}

TEST_F(ServiceTest, DeliversAnArchive) {
  const auto archive = Get("shop/traces/sales/" + kUid + "/archive.tar");
  EXPECT_EQ(archive.status, 200);
  EXPECT_EQ(archive.content_type, "application/x-tar");
  const std::string body = Body(archive);
  ASSERT_EQ(body.size(), 4U * 512);
  EXPECT_EQ(std::string(body.c_str()), "sales/" + kUid + "/pod/kernel/metadata");
  EXPECT_EQ(body.substr(512, kText.size()), kText);
  EXPECT_EQ(body.substr(512 + kText.size()), std::string(3 * 512 - kText.size(), '\0'));
  EXPECT_EQ(Get("shop/traces/other/" + kUid + "/archive.tar").status, 403);
  EXPECT_EQ(Get("shop/traces/none/" + kUid + "/archive.tar", "", "eyJ.good").status, 404);
}

TEST_F(ServiceTest, AnArchiveIsResumedWhileItsFilesStayTheSame) {
  const std::string path = "shop/traces/sales/" + kUid + "/archive.tar";
  const auto whole = Get(path);
  const std::string body = Body(whole);
  const std::string tag = Header(whole, "ETag");
  EXPECT_EQ(Header(whole, "Accept-Ranges"), "bytes");
  const auto rest = Get(path, "bytes=600-", TestCluster::kToken, tag);
  EXPECT_EQ(rest.status, 206);
  EXPECT_EQ(Header(rest, "Content-Range"), "bytes 600-2047/2048");
  EXPECT_EQ(Header(rest, "ETag"), tag);
  EXPECT_TRUE(Body(rest) == body.substr(600));
  EXPECT_TRUE(Body(Get(path, "bytes=500-529", TestCluster::kToken, tag)) == body.substr(500, 30));
  EXPECT_EQ(Get(path, "bytes=2048-", TestCluster::kToken, tag).status, 416);
  EXPECT_EQ(Get(path, "bytes=x", TestCluster::kToken, tag).status, 400);
  // One that does not say of which archive it has the first bytes gets all of it.
  for (const std::string& other : {std::string(), std::string("\"x\""), "W/" + tag}) {
    EXPECT_EQ(Get(path, "bytes=600-", TestCluster::kToken, other).status, 200) << other;
  }
  // Its bytes have changed, and its length has not.
  const std::string file = top_ / "shop/sales" / kUid / "pod/kernel/metadata";
  std::ofstream(file, std::ios::in | std::ios::out).write("/* CTF 1.9", 10);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(1));
  const auto other = Get(path, "bytes=600-", TestCluster::kToken, tag);
  EXPECT_EQ(other.status, 200);
  EXPECT_NE(Header(other, "ETag"), tag);
  EXPECT_EQ(Header(Get(path + ".zst", "bytes=600-"), "ETag"), "");
}

TEST_F(ServiceTest, AnArchiveHasWhatWasAskedFor) {
  const std::string path = "shop/traces/sales/" + kUid + "/archive.tar";
  // There is metadata only.
  EXPECT_EQ(Get(path + "?pod=pod").status, 404);
  EXPECT_EQ(Get(path + "?since=5").status, 404);
  EXPECT_EQ(Get(path + ".zst?until=5").status, 404);
  const std::string stream = top_ / "shop/sales" / kUid / "pod/kernel/user_0";
  ctf::PacketWriter writer({.trace_uuid = {}});
  for (const uint64_t time : {100, 200}) {
    const auto packet = writer.Finish(0, time);
    std::ofstream(stream, std::ios::app)
        .write(reinterpret_cast<const char*>(packet.data()),
               static_cast<std::streamsize>(packet.size()));
  }
  const auto bytes = [&](const std::string& query) { return Get(path + query).source->bytes(); };
  EXPECT_EQ(bytes(""), bytes("?pod=pod&pod=other"));
  EXPECT_NE(Header(Get(path), "ETag"), Header(Get(path + "?since=150"), "ETag"));
  EXPECT_EQ(Get(path + "?since=201").status, 404);
  EXPECT_EQ(Get(path + "?pod=other").status, 404);
  const std::string body = Body(Get(path + "?since=150&until=250&pod=pod"));
  EXPECT_EQ(std::stoul(body.substr(2 * 512 + 124, 11), nullptr, 8), fs::file_size(stream) / 2);
  for (const char* wrong : {"?since=x", "?until=-1", "?pod=../x", "?pod="}) {
    EXPECT_EQ(Get(path + wrong).status, 400) << wrong;
  }
}

TEST_F(ServiceTest, CompressesAnArchive) {
  const std::string path = "shop/traces/sales/" + kUid + "/archive.tar";
  const std::string plain = Body(Get(path));
  std::vector<http::Response> answers;
  for (int i = 0; i < kMaxCompressionsOfNamespace; i++) answers.push_back(Get(path + ".zst"));
  EXPECT_EQ(answers.back().content_type, "application/zstd");
  ASSERT_EQ(answers.back().source->bytes(), std::nullopt);
  std::string packed;
  char block[7];
  for (size_t got = 1; got > 0;) {
    got = answers.back().source->Read(block).value();
    packed.append(block, got);
  }
  EXPECT_LT(packed.size(), 512U);
  std::string body(8 * 512, '\0');
  body.resize(ZSTD_decompress(body.data(), body.size(), packed.data(), packed.size()));
  EXPECT_TRUE(body == plain);
  EXPECT_EQ(Get(path + ".zst", "", "eyJ.good").status, 429);
  answers.clear();
  EXPECT_EQ(Get(path + ".zst").status, 200);
}

TEST_F(ServiceTest, GivesRatesOfPods) {
  const std::string path = "shop/traces/sales/" + kUid + "/rates";
  EXPECT_EQ(kube::Json::parse(Get(path).body),
            kube::Json({{"seconds", 10}, {"pods", kube::Json::array()}}));
  rates_.Add("shop/sales/" + kUid, "a", {.events = 3, .bytes = 70, .discarded = 1, .lost = 2});
  rates_.Add("bank/sales/" + kUid, "theirs", {.events = 3});
  now_ += std::chrono::seconds(1);
  const auto answer = kube::Json::parse(Get(path + "?seconds=2").body);
  EXPECT_EQ(answer["seconds"], 2);
  ASSERT_EQ(answer["pods"].size(), 1U);
  EXPECT_EQ(answer["pods"][0], kube::Json::parse(R"({"pod": "a",
      "total": {"events": 3, "bytes": 70, "discarded": 1, "lost": 2},
      "events": [0, 3], "bytes": [0, 70], "discarded": [0, 1], "lost": [0, 2]})"));
  EXPECT_EQ(kube::Json::parse(Get(path + "?seconds=1000").body)["seconds"], 60);
  EXPECT_EQ(Get(path + "?seconds=0").status, 400);
  EXPECT_EQ(Get(path + "?seconds=x").status, 400);
  EXPECT_EQ(Get("bank/traces/sales/" + kUid + "/rates").status, 403);
}

TEST_F(ServiceTest, AnswersAreTheSameWhetherItExistsOrNot) {
  for (const std::string& token : {TestCluster::kToken, std::string("eyJ.good")}) {
    const auto theirs = Get("bank/traces/sales/" + kUid + "/files", "", token);
    const auto none = Get("nothing/traces/none/" + kUid + "/files", "", token);
    EXPECT_EQ(theirs.status, 403);
    EXPECT_EQ(none.status, 403);
    EXPECT_EQ(theirs.body, none.body);
    EXPECT_EQ(theirs.headers, none.headers);
  }
  EXPECT_EQ(Get("shop/traces/other/" + kUid + "/files").body,
            Get("shop/traces/none/" + kUid + "/files").body);
  EXPECT_EQ(Get("shop/traces/none/" + kUid + "/files", "", "eyJ.good").status, 404);
}

TEST_F(ServiceTest, RefusesWithoutAToken) {
  EXPECT_EQ(Get("shop/traces", "", "").status, 401);
  EXPECT_EQ(Get("shop/traces", "", "shop.look." + std::string(43, 'X')).status, 401);
  EXPECT_EQ(Get("shop/pods").status, 404);
  cluster_.failing = true;
  EXPECT_EQ(Get("shop/traces", "", "eyJ.good").status, 503);
  EXPECT_EQ(service_->Answer({.method = "DELETE", .path = "/v1/namespaces/shop/traces"}).status,
            405);
}

TEST_F(ServiceTest, EachRequestLeavesALine) {
  (void)Get("shop/traces");
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_EQ(log_[0],
            "api: 200 ok: GET \"/v1/namespaces/shop/traces\" by view shop/look from 198.18.1.1");
  (void)Get("a\nb\"\x1b[0m" + std::string(1000, 'x'));
  EXPECT_EQ(log_[1].find('\n'), std::string::npos);
  EXPECT_THAT(log_[1], HasSubstr("a\\x0ab\\x22\\x1b[0m"));
  EXPECT_LT(log_[1].size(), 500U);
  for (const std::string& line : log_) {
    EXPECT_EQ(line.find(TestCluster::kSecret), std::string::npos);
  }
  EXPECT_THAT(metrics_.Text(), HasSubstr("weft_relay_api_requests_total{result=\"ok\"} 1"));
}

TEST_F(ServiceTest, AFloodIsLimitedAndItsLinesAreCounted) {
  int good = 0;
  for (int i = 0; i < 3 * kCredentialBurst; i++) good += Get(kSales).status == 200 ? 1 : 0;
  EXPECT_EQ(good, kCredentialBurst);
  EXPECT_EQ(log_.size(), kAuditBurst);
  cluster_.Pass(std::chrono::seconds(1));
  EXPECT_EQ(Get(kSales).status, 200);
  EXPECT_THAT(log_.back(), HasSubstr("(1100 lines before this one left out)"));
}

TEST_F(ServiceTest, AFloodThroughTheApiServerStopsNoOtherTenant) {
  const std::string wrong = "." + TestCluster::kSecret;
  const std::string theirs = "bank/traces/sales/" + kUid + "/files";
  for (int i = 0; i < 3 * kPeerBurst; i++) {
    const std::string number = std::to_string(i);
    (void)Get("shop/traces", "", "shop.v" + number + wrong);
    (void)Get("x" + number + "/traces", "", "x" + number + ".v" + wrong);
    (void)Get(theirs, "", "bank.v" + number + wrong);
    (void)Get(theirs, "", "shop.w" + number + wrong);
  }
  EXPECT_EQ(Get("shop/traces").status, 429) << "the flood has used up what strangers share";
  EXPECT_EQ(Get(theirs, "", "bank.v" + wrong).status, 429);
  EXPECT_EQ(Get(kSales).status, 200) << "a new token of those who know the uid of their Trace";
}

TEST_F(ServiceTest, AFloodFromOneAddressNeitherStopsNorHidesOthers) {
  peer_ = "198.18.9.9";
  for (int i = 0; i < 3 * kPeerBurst; i++) (void)Get("shop/traces", "", "");
  peer_ = "198.18.1.1";
  EXPECT_EQ(Get("shop/traces").status, 200);
  EXPECT_THAT(log_.back(), HasSubstr("by view shop/look from 198.18.1.1"));
  EXPECT_EQ(Get("shop/traces", "", "").status, 401);
  EXPECT_THAT(log_.back(), HasSubstr("by unknown from 198.18.1.1"));
}

TEST_F(ServiceTest, NamesTheClientOfTheApiServerInTheLog) {
  http::Request request{.peer = peer_, .method = "GET", .path = "/x\x1b[31m"};
  request.headers["x-forwarded-for"] = "10.0.0.7\n\x1b[2J";
  (void)service_->Answer(request);
  EXPECT_EQ(log_.back(),
            "api: 401 no_token: GET \"/x\\x1b[31m\" by unknown from 198.18.1.1 for "
            "10.0.0.7\\x0a\\x1b[2J");
}

TEST_F(ServiceTest, OneNamespaceDoesNotTakeAllCompressions) {
  const std::string archive = "shop/traces/sales/" + kUid + "/archive.tar.zst";
  std::vector<http::Response> held;
  for (int i = 0; i < kMaxCompressionsOfNamespace; i++) held.push_back(Get(archive));
  EXPECT_EQ(held.back().status, 200);
  EXPECT_EQ(Get(archive).status, 429);
  EXPECT_EQ(Get(archive, "", "eyJ.good").status, 429);
  cluster_.only_namespace = "bank";
  cluster_.Pass(kBelieveTime);
  EXPECT_EQ(Get("bank/traces/sales/" + kUid + "/archive.tar.zst", "", "eyJ.good").status, 200);
  held.pop_back();
  EXPECT_EQ(Get(archive).status, 200);
}

// docs/openapi/relay.yaml, as JSON.
kube::Json ReadDocument() {
  std::ifstream in(std::string(WEFT_SOURCE_DIR) + "/docs/openapi/relay.yaml");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto documents = api::ReadYaml(text);
  EXPECT_TRUE(documents && documents->size() == 1);
  return documents ? kube::Json::parse(api::WriteJson(documents->front(), -1)) : kube::Json();
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST_F(ServiceTest, AnswersAsItsDocumentSays) {
  const kube::Json document = ReadDocument();
  ASSERT_EQ(document["paths"].size(), 8U);
  std::set<Verb> verbs;
  for (const auto& [pattern, operations] : document["paths"].items()) {
    // AnAgentGetsATicketForItsNode
    if (pattern.starts_with("/v1/tickets/")) continue;
    std::string path = Replaced(pattern, "/v1/namespaces/{namespace}", "shop");
    path = Replaced(Replaced(path, "{name}", "sales"), "{uid}", kUid);
    path = Replaced(path, "{path}", "pod/kernel/metadata");
    const auto route = ParseRoute("/v1/namespaces/" + path);
    ASSERT_TRUE(route) << path;
    verbs.insert(route->verb);
    const kube::Json& responses = operations["get"]["responses"];
    std::set<int> seen;
    const auto check = [&](const http::Response& response) {
      EXPECT_TRUE(responses.contains(std::to_string(response.status))) << path << response.status;
      seen.insert(response.status);
      return response;
    };
    const std::string query = pattern.ends_with("/parts") ? "?part=0:5:pod/kernel/metadata" : "";
    const auto good = check(Get(path + query));
    EXPECT_EQ(good.status, 200) << path;
    const kube::Json& content = responses["200"]["content"];
    ASSERT_TRUE(content.contains(good.content_type)) << path;
    if (good.content_type == "application/json") {
      const kube::Json body = kube::Json::parse(good.body);
      for (const kube::Json& member : content[good.content_type]["schema"]["required"]) {
        EXPECT_TRUE(body.contains(member.get<std::string>())) << path;
      }
    }
    if (!query.empty()) path += query;
    check(Get(path, "", ""));
    check(Get(path, "bytes=1-"));
    check(Get(path, "bytes=x"));
    check(Get(path, "bytes=1000-"));
    check(Get(path + (query.empty() ? "?since=x&seconds=x" : "&part=x")));
    for (const char* range : {"bytes=1-", "bytes=x", "bytes=10000-"}) {
      check(Get(path, range, TestCluster::kToken, Header(good, "ETag")));
    }
    check(Get(Replaced(path, "shop", "bank")));
    check(Get(Replaced(path, "sales", "none"), "", "eyJ.good"));
    cluster_.Pass(kBelieveTime);
    cluster_.failing = true;
    check(Get(path));
    cluster_.failing = false;
    for (const char* status : {"200", "401", "403", "404", "503"}) {
      EXPECT_EQ(responses.contains(status), seen.contains(std::stoi(status))) << path << status;
    }
    for (const char* status : {"206", "416"}) {
      EXPECT_EQ(responses.contains(status), seen.contains(std::stoi(status))) << path << status;
    }
  }
  EXPECT_EQ(verbs.size(), 6U);
}

TEST_F(ServiceTest, SeveralPartsComeInOneAnswer) {
  const std::string parts = "shop/traces/sales/" + std::string(kUid) + "/parts";
  const auto whole =
      Get("shop/traces/sales/" + std::string(kUid) + "/parts" + "?part=0:1000:pod/kernel/metadata");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const std::string text = whole.body.substr(4);
  ASSERT_GT(text.size(), 4U);
  const auto part = [](std::string_view bytes) {
    return std::string{static_cast<char>(bytes.size()), 0, 0, 0} + std::string(bytes);
  };
  EXPECT_EQ(whole.body, part(text));
  const auto several = Get(parts + "?part=1:2:pod/kernel/metadata&part=0:9:pod/kernel/none" +
                           "&part=100000:9:pod/kernel/metadata&x=1&part=0:1:pod/kernel/metadata");
  EXPECT_EQ(several.body,
            part(text.substr(1, 2)) + "\xff\xff\xff\xff" + part("") + part(text.substr(0, 1)));
  EXPECT_EQ(Get(parts + "?part=0:9:pod/kernel/none").body, "\xff\xff\xff\xff");
  for (const char* wrong :
       {"", "?part=1", "?part=1:2", "?part=1:2:", "?part=a:2:pod/x", "?part=1:-2:pod/x",
        "?part=0:1:../x", "?part=0:1:pod//x", "?part=::pod/x"}) {
    EXPECT_EQ(Get(parts + wrong).status, 400) << wrong;
  }
  std::string many = "?";
  for (size_t i = 0; i <= kMaxParts; i++) many += "part=0:1:pod/kernel/metadata&";
  EXPECT_EQ(Get(parts + many).status, 400);
}

TEST_F(ServiceTest, AnAgentGetsATicketForItsNode) {
  const auto ask = [this](const std::string& token, const std::string& name_space = "shop") {
    http::Request request{.method = "GET", .path = "/v1/tickets/" + name_space};
    request.headers["authorization"] = "Bearer " + token;
    return service_->Answer(request);
  };
  const auto good = ask("eyJ.agent");
  ASSERT_EQ(good.status, 200) << good.body;
  const kube::Json body = kube::Json::parse(good.body);
  const kube::Json document =
      ReadDocument()["paths"]["/v1/tickets/{namespace}"]["get"]["responses"];
  for (const auto& member : document["200"]["content"]["application/json"]["schema"]["required"]) {
    EXPECT_TRUE(body.contains(member.get<std::string>()));
  }
  EXPECT_EQ(body["node"], "n1");
  stream::Hello hello{.node = "n1",
                      .kubernetes_namespace = "shop",
                      .trace = "t",
                      .trace_uid = "u",
                      .ticket = body["ticket"]};
  EXPECT_EQ(std::string(gate_.Decide(hello).reason), "unknown_sessions");
  hello.kubernetes_namespace = "bank";
  EXPECT_EQ(std::string(gate_.Decide(hello).reason), "wrong_ticket");
  EXPECT_THAT(log_.back(), HasSubstr("agent of n1"));
  EXPECT_THAT(log_.back(), Not(HasSubstr(body["ticket"].get<std::string>())));

  EXPECT_EQ(ask("eyJ.loose").status, 403);
  EXPECT_EQ(ask("eyJ.other").status, 403);
  EXPECT_EQ(ask("eyJ.good").status, 403);
  EXPECT_EQ(ask("eyJ.none").status, 401);
  EXPECT_EQ(ask(TestCluster::kToken).status, 401);
  EXPECT_EQ(ask("eyJ.agent", "No_Namespace").status, 404);
  cluster_.Pass(kBelieveTime);
  cluster_.failing = true;
  EXPECT_EQ(ask("eyJ.agent").status, 503);
}

TEST_F(ServiceTest, ACredentialHasSoManyDownloads) {
  std::vector<http::Response> held;
  for (int i = 0; i < kMaxDownloads; i++) held.push_back(Get(kFile));
  EXPECT_EQ(Get(kFile).status, 429);
  EXPECT_EQ(Get(kFile, "", "eyJ.good").status, 200);
  held.pop_back();
  EXPECT_EQ(Get(kFile).status, 200);
}

}  // namespace
}  // namespace weft::relay_api
