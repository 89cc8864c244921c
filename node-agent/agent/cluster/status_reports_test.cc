// SPDX-License-Identifier: Apache-2.0
// What is reported of a session, after what was reported before.
#include "node-agent/agent/cluster/status_reports.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "lib/kube/testing_transport.h"

namespace weft::agent {
namespace {

using kube::Json;

class StatusReportsTest : public testing::Test {
 protected:
  StatusReportsTest() {
    auto transport = std::make_unique<kube::testing::TestTransport>(
        [](const kube::HttpRequest&) { return kube::testing::Reply(200, Json::object()); });
    api_ = transport.get();
    client_ = std::make_unique<kube::Client>(std::move(transport), "weft-agent");
    order_.metadata = {.name = "t-1", .name_space = "shop", .uid = "u"};
  }

  // Makes a report and returns the counts that are written.
  Json Report(StatusReports& reports, api::Phase phase, const api::EventCounts& events) {
    const size_t before = api_->requests().size();
    api::SessionStatus status;
    status.phase = phase;
    status.events = events;
    reports.Report(order_, status, now_ns_, [&] {
      EXPECT_EQ(api_->requests().size(), before);
      ++saved_;
    });
    // Longer than anything takes: only a failure waits for it.
    for (int i = 0; i < 60'000 && api_->requests().size() == before; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Json::parse(api_->requests().back().body)["status"]["events"];
  }

  kube::testing::TestTransport* api_ = nullptr;
  std::unique_ptr<kube::Client> client_;
  api::TraceSession order_;
  int64_t now_ns_ = 1;
  int saved_ = 0;
};

// A consumer that was started again has not read again what it had read.
TEST_F(StatusReportsTest, CountsDoNotFallBelowTheLastReport) {
  StatusReports reports(*client_);
  Report(reports, api::Phase::kPending, {.recorded = 10, .delivered = 6, .discarded = 2});
  const Json events = Report(reports, api::Phase::kRecording, {.recorded = 8, .delivered = 7});
  EXPECT_EQ(events["recorded"], 10);
  EXPECT_EQ(events["delivered"], 7);
  EXPECT_EQ(events["discarded"], 2);
  EXPECT_EQ(events["missing"], 2);
}

// An agent that was started again from a file that is older than the last report of the one before.
TEST_F(StatusReportsTest, CountsDoNotFallBelowThoseOfAnotherAgent) {
  order_.status.events = {.recorded = 10,
                          .delivered = 9,
                          .discarded = 2,
                          .missing = 2,
                          .reasons = {{"ring", "full", 2}}};
  StatusReports reports(*client_);
  Json events = Report(reports, api::Phase::kRecording, {});
  EXPECT_EQ(events["recorded"], 10);
  EXPECT_EQ(events["delivered"], 9);
  EXPECT_EQ(events["reasons"][0]["count"], 2);
  EXPECT_FALSE(events.contains("lost") && events["lost"] != 0) << "it may be read again";
  events = Report(reports, api::Phase::kCompleted, {.recorded = 9, .delivered = 9});
  EXPECT_EQ(events["recorded"], 10);
  EXPECT_EQ(events["lost"], 1) << "it did not come";
  EXPECT_EQ(events["missing"], 3);
}

TEST_F(StatusReportsTest, CountsAreSavedBeforeTheyAreReported) {
  StatusReports reports(*client_);
  Report(reports, api::Phase::kRecording, {.recorded = 1});
  EXPECT_EQ(saved_, 1);
  api::SessionStatus same;
  same.phase = api::Phase::kRecording;
  same.events.recorded = 1;
  reports.Report(order_, same, now_ns_, [&] { ++saved_; });
  EXPECT_EQ(saved_, 1) << "nothing is reported";
}

}  // namespace
}  // namespace weft::agent
