// SPDX-License-Identifier: Apache-2.0
// Which statuses the API server gets, and which are tried again.
#include "node-agent/agent/cluster/status_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lib/kube/testing_transport.h"

namespace weft::agent {
namespace {

using kube::Json;

using Statuses = std::vector<std::string>;

class StatusWriterTest : public testing::Test {
 protected:
  StatusWriterTest() {
    auto transport = std::make_unique<kube::testing::TestTransport>(
        [this](const kube::HttpRequest& request) { return Answer(request); });
    api_ = transport.get();
    client_ = std::make_unique<kube::Client>(std::move(transport), "weft-agent");
    writer_.emplace(*client_);
  }
  ~StatusWriterTest() override { LetGo(); }

  kube::HttpReply Answer(const kube::HttpRequest& request) {
    const Json body = Json::parse(request.body);
    const std::string name = body["metadata"]["name"];
    std::unique_lock lock(mutex_);
    written_.push_back(name + " " +
                       std::to_string(body["status"]["events"]["recorded"].get<int>()));
    changed_.notify_all();
    changed_.wait(lock, [this] { return !is_held_; });
    std::deque<int>& answers = answers_[name];
    int status = 200;
    if (!answers.empty()) {
      status = answers.front();
      answers.pop_front();
    }
    return kube::testing::Reply(status, Json::object());
  }
  // Sets what the first writes of this session are answered with; later ones succeed.
  void Refuse(const std::string& name, std::deque<int> answers) {
    const std::lock_guard lock(mutex_);
    answers_[name] = std::move(answers);
  }
  // Holds answers back until LetGo.
  void Hold() {
    const std::lock_guard lock(mutex_);
    is_held_ = true;
  }
  void LetGo() {
    const std::lock_guard lock(mutex_);
    is_held_ = false;
    changed_.notify_all();
  }

  // Puts a status of the session `name`, with so many events.
  void Put(const std::string& name, uint64_t recorded) {
    api::SessionStatus status;
    status.phase = api::Phase::kRecording;
    status.events.recorded = recorded;
    writer_->Put({.name = name, .name_space = "shop", .uid = "uid-" + name}, status);
  }
  // Waits for a write with this status, "NAME RECORDED", and returns all there were, in order.
  Statuses Until(const std::string& last) {
    std::unique_lock lock(mutex_);
    // Longer than anything takes: only a failure waits for it.
    changed_.wait_for(lock, std::chrono::seconds(60),
                      [&] { return std::ranges::find(written_, last) != written_.end(); });
    return written_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_held_ = false;
  std::map<std::string, std::deque<int>> answers_;  // by session
  Statuses written_;
  kube::testing::TestTransport* api_ = nullptr;
  std::unique_ptr<kube::Client> client_;
  std::optional<StatusWriter> writer_;  // last: its thread uses the others
};

TEST_F(StatusWriterTest, WritesTheStatusOfThisVeryObject) {
  Put("t-1", 7);
  Until("t-1 7");
  writer_.reset();
  const kube::HttpRequest request = api_->requests().at(0);
  EXPECT_EQ(request.method, "PATCH");
  EXPECT_TRUE(request.target.starts_with(
      "/apis/weft.dev/v1alpha1/namespaces/shop/tracesessions/t-1/status?"))
      << request.target;
  const Json body = Json::parse(request.body);
  EXPECT_EQ(body["kind"], "TraceSession");
  EXPECT_EQ(body["apiVersion"], "weft.dev/v1alpha1");
  EXPECT_EQ(body["metadata"]["uid"], "uid-t-1") << "another one of its name is left alone";
  EXPECT_EQ(body["status"]["phase"], "Recording");
}

TEST_F(StatusWriterTest, OfStatusesThatWaitOnlyTheNewestIsWritten) {
  Hold();
  Put("a", 1);
  Until("a 1");
  for (const uint64_t recorded : {2, 3, 4}) Put("a", recorded);
  Put("b", 1);
  LetGo();
  Until("b 1");
  Until("a 4");
  EXPECT_EQ(written_, Statuses({"a 1", "b 1", "a 4"}));
}

TEST_F(StatusWriterTest, TriesAgainUntilItIsWritten) {
  Refuse("a", {500, 403});
  Put("a", 1);
  Until("a 1");
  Put("b", 1);
  Until("b 1");
  // By turns: between two writes of "c", "a" has one.
  for (const uint64_t recorded : {1, 2, 3}) {
    Put("c", recorded);
    Until("c " + std::to_string(recorded));
  }
  EXPECT_EQ(std::ranges::count(written_, "a 1"), 3);
}

TEST_F(StatusWriterTest, AStatusThatIsOldByNowIsNotTriedAgain) {
  Refuse("a", {500});
  Hold();
  Put("a", 1);
  Until("a 1");
  Put("a", 2);
  LetGo();
  Until("a 2");
  Put("b", 1);
  EXPECT_EQ(Until("b 1"), Statuses({"a 1", "a 2", "b 1"}));
}

TEST_F(StatusWriterTest, DoesNotTryAgainWhereItIsOfNoUse) {
  int round = 0;
  for (const int answer : {404, 409, 422}) {
    ++round;
    Refuse("a", {answer});
    for (const char* name : {"a", "b", "c"}) {
      Put(name, round);
      Until(name + (" " + std::to_string(round)));
    }
  }
  EXPECT_EQ(Until("c 3"),
            Statuses({"a 1", "b 1", "c 1", "a 2", "b 2", "c 2", "a 3", "b 3", "c 3"}));
}

TEST_F(StatusWriterTest, AStatusThatCannotBeWrittenKeepsNoOtherWaiting) {
  Refuse("a", std::deque<int>(1000, 403));
  Put("a", 1);
  Until("a 1");
  Put("b", 1);
  EXPECT_EQ(std::ranges::count(Until("b 1"), "b 1"), 1);
}

TEST_F(StatusWriterTest, TheEndDoesNotWaitForAStatusThatCannotBeWritten) {
  Refuse("a", std::deque<int>(1000, 500));
  Put("a", 1);
  Until("a 1");
  writer_.reset();
  EXPECT_LT(written_.size(), 1000u);
}

}  // namespace
}  // namespace weft::agent
