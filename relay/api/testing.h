// SPDX-License-Identifier: Apache-2.0
// For tests of the relay's API: an API server with one TraceView and one user.
#ifndef WEFT_RELAY_API_TESTING_H_
#define WEFT_RELAY_API_TESTING_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "lib/kube/client.h"
#include "lib/kube/digest.h"
#include "lib/kube/testing_transport.h"
#include "lib/kube/time.h"
#include "relay/api/judge.h"

namespace weft::relay_api::testing {

using namespace std::chrono_literals;

// The token "eyJ.agent" is that of the agent on the node n1; "eyJ.loose" is of the same account,
// but bound to no pod. The view shop/look opens the Trace sales with the secret kSecret for ten
// minutes. The user of the
// token "eyJ.good" may get Traces of the namespace shop.
struct TestCluster {
  inline static const std::string kSecret = std::string(43, 'S');
  inline static const std::string kToken = "shop.look." + std::string(43, 'S');

  TestCluster() {
    SetView(10min);
    auto transport = std::make_unique<kube::testing::TestTransport>(
        [this](const kube::HttpRequest& request) { return Serve(request); });
    transport_ = transport.get();
    client = std::make_unique<kube::Client>(std::move(transport), "weft-test");
  }

  void SetView(std::chrono::seconds lifetime) {
    view = {{"metadata", {{"creationTimestamp", kube::FormatTime(wall)}}},
            {"spec",
             {{"trace", "sales"},
              {"tokenSHA256", Sha256(kSecret).value_or("")},
              {"expires", kube::FormatTime(wall + lifetime)}}}};
  }

  Judge::Clocks clocks() {
    return {.wall = [this] { return wall; }, .steady = [this] { return steady; }};
  }
  void Pass(std::chrono::seconds time) {
    wall += time;
    steady += time;
  }
  size_t questions() { return transport_->requests().size(); }

  kube::HttpReply Serve(const kube::HttpRequest& request) {
    kube::HttpReply reply = Answer(request);
    reply.date = wall;
    return reply;
  }

  kube::HttpReply Answer(const kube::HttpRequest& request) {
    using kube::testing::Reply;
    if (failing) return Reply(500, {{"message", "etcd is away"}});
    if (request.method == "GET") {
      const bool is_it = request.target.ends_with("/namespaces/shop/traceviews/look");
      return is_it && !view.is_null() ? Reply(200, view) : Reply(404, kube::Json::object());
    }
    const kube::Json body = kube::Json::parse(request.body);
    if (request.target.contains("/tokenreviews")) {
      const std::map<std::string, kube::Json> users = {
          {"eyJ.good", {{"username", "jo"}, {"groups", {"dev"}}}},
          {"eyJ.agent",
           {{"username", "system:serviceaccount:weft:weft-agent"},
            {"extra", {{"authentication.kubernetes.io/node-name", {"n1"}}}}}},
          {"eyJ.loose", {{"username", "system:serviceaccount:weft:weft-agent"}}},
          {"eyJ.other",
           {{"username", "system:serviceaccount:shop:weft-agent"},
            {"extra", {{"authentication.kubernetes.io/node-name", {"n1"}}}}}}};
      const auto user = users.find(body["spec"]["token"].get<std::string>());
      const bool good =
          user != users.end() && body["spec"]["audiences"] == kube::Json::array({"weft-relay"});
      return Reply(201, {{"status",
                          {{"authenticated", good},
                           {"audiences", good ? audiences : kube::Json::array()},
                           {"user", good ? user->second : kube::Json::object()}}}});
    }
    const kube::Json& what = body["spec"]["resourceAttributes"];
    const bool allowed = body["spec"]["user"] == "jo" &&
                         body["spec"]["groups"] == kube::Json({"dev"}) &&
                         what["namespace"] == only_namespace && what["verb"] == "get" &&
                         what["group"] == "weft.dev" && what["resource"] == "traces" &&
                         (only_trace.empty() || what.value("name", "") == only_trace);
    return Reply(201, {{"status", {{"allowed", allowed}}}});
  }

  kube::WallTime wall = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  Clock::time_point steady{1h};
  kube::Json view;
  kube::Json audiences = kube::Json::array({"weft-relay"});
  std::string only_trace;               // to which the user's Role is limited; "": to none
  std::string only_namespace = "shop";  // in which the user may get Traces
  bool failing = false;
  std::unique_ptr<kube::Client> client;

 private:
  kube::testing::TestTransport* transport_ = nullptr;
};

}  // namespace weft::relay_api::testing

#endif  // WEFT_RELAY_API_TESTING_H_
