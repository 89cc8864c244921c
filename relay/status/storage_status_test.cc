// SPDX-License-Identifier: Apache-2.0
#include "relay/status/storage_status.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lib/ctf/test_trace.h"
#include "lib/kube/testing_transport.h"

namespace weft::relay_status {
namespace {

using kube::Json;

const std::string kUid = "7e0d3c6e-6a1a-4d31-8f5c-2d3a5b7c9e10";

TEST(StorageStatusTest, SaysWhatWasRemovedAndTriesAgain) {
  const ctf::TempFolder folder;
  // Chunks of this stream, with 70 events, are gone.
  const std::string at = folder.path() + "/shop/sales/" + kUid + "/pod/app/" + kUid + "/kernel";
  std::filesystem::create_directories(at);
  std::ofstream(at + "/metadata") << "x\n\n";
  std::ofstream(at + "/user_0.7.70") << "packets";
  const std::string other = folder.path() + "/shop/whole/" + kUid + "/pod/app/" + kUid + "/kernel";
  std::filesystem::create_directories(other);
  std::ofstream(other + "/metadata") << "x\n\n";
  std::ofstream(other + "/user_0") << "packets";

  store::DirectoryFileMaker maker(UniqueFd(::open(folder.path().c_str(), O_DIRECTORY | O_RDONLY)));
  metrics::Registry metrics(metrics::Part::kRelay);
  ingest::Retention retention(maker, metrics, {});
  ASSERT_TRUE(retention.Scan());
  retention.Tick();

  int calls = 0;
  auto transport = std::make_unique<kube::testing::TestTransport>(
      [&](const auto&) { return kube::testing::Reply(calls++ == 0 ? 500 : 200, Json::object()); });
  auto* const server = transport.get();
  kube::Client client(std::move(transport), "weft-relay");
  std::vector<std::string> lines;
  {
    StorageStatus status(
        client, retention, [&](const std::string& line) { lines.push_back(line); },
        std::chrono::milliseconds(1));
    while (server->requests().size() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(server->requests().size(), 2U);
  const auto request = server->requests().back();
  EXPECT_TRUE(
      request.target.starts_with("/apis/weft.dev/v1alpha1/namespaces/shop/traces/sales/status?"))
      << request.target;
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["metadata"]["uid"], kUid);
  EXPECT_EQ(body["status"], Json::parse(R"({"storage": {"removedEvents": 70, "keptBytes": 10}})"));
  EXPECT_EQ(lines.size(), 1U);
}

}  // namespace
}  // namespace weft::relay_status
