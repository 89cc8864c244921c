// SPDX-License-Identifier: Apache-2.0
// When state dumps run, and what is reported of them. A dump is a function of the test, which ends
// when the test lets it.
#include "node-agent/agent/kernel/statedumps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>

namespace weft::agent {
namespace {

constexpr uint64_t kChannel = 7, kOther = 8;

UniqueFd Session() { return UniqueFd(memfd_create("session", MFD_CLOEXEC)); }
uint64_t InodeOf(const UniqueFd& fd) {
  struct stat st{};
  return fstat(fd.get(), &st) == 0 ? st.st_ino : 0;
}

class StatedumpsTest : public testing::Test {
 protected:
  struct Call {
    uint64_t session = 0;  // its inode
    uint64_t cgroup = 0;
    bool operator==(const Call&) const = default;
  };

  // Dumps last until they are let go.
  ~StatedumpsTest() override { LetGo(); }

  Status Dump(const UniqueFd& session, uint64_t cgroup) {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
    std::unique_lock lock(mutex_);
    begun_.push_back({InodeOf(session), cgroup});
    changed_.notify_all();
    changed_.wait(lock, [&] { return may_end_; });
    const auto result = results_.find(cgroup);
    return result == results_.end() ? Status() : result->second;
  }
  // Lets dumps that run now, and later ones, end.
  void LetGo() {
    const std::lock_guard lock(mutex_);
    may_end_ = true;
    changed_.notify_all();
  }
  // Waits until so many dumps have begun, and returns them.
  std::vector<Call> Begun(size_t count) {
    std::unique_lock lock(mutex_);
    // Longer than anything takes: only a failure waits for it.
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return begun_.size() >= count; });
    return begun_;
  }
  // Lets the dump of kChannel end, and returns the problems that it left.
  std::vector<std::string> End() {
    LetGo();
    dumps_->Join(kChannel);
    return dumps_->TakeProblems();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Call> begun_;
  std::map<uint64_t, Status> results_;  // by cgroup
  bool may_end_ = false;
  std::optional<Statedumps> dumps_{
      [this](const UniqueFd& session, uint64_t cgroup) { return Dump(session, cgroup); }};
};

TEST_F(StatedumpsTest, ADumpThatIsAskedForMeanwhileIsOneDumpAfterIt) {
  UniqueFd first = Session(), second = Session(), third = Session();
  const uint64_t first_session = InodeOf(first), third_session = InodeOf(third);
  dumps_->Begin(kChannel, std::move(first), 1);
  Begun(1);
  dumps_->Begin(kChannel, std::move(second), 3);
  dumps_->Begin(kChannel, std::move(third), 2);
  EXPECT_TRUE(dumps_->TakeProblems().empty());
  EXPECT_EQ(Begun(1), std::vector<Call>({{first_session, 1}})) << "the first is not over";
  LetGo();
  for (int i = 0; i < 60'000 && Begun(1).size() < 3; ++i) {
    EXPECT_TRUE(dumps_->TakeProblems().empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(Begun(3),
            std::vector<Call>({{first_session, 1}, {third_session, 2}, {third_session, 3}}));
}

TEST_F(StatedumpsTest, DumpsOfOtherChannelsDoNotWait) {
  dumps_->Begin(kChannel, Session(), 1);
  dumps_->Begin(kOther, Session(), 2);
  EXPECT_EQ(Begun(2).size(), 2u);
}

TEST_F(StatedumpsTest, JoinWaitsForTheDumpAndBeginsNoOther) {
  dumps_->Begin(kChannel, Session(), 1);
  Begun(1);
  dumps_->Begin(kChannel, Session(), 2);
  LetGo();
  dumps_->Join(kChannel);
  EXPECT_TRUE(dumps_->TakeProblems().empty());
  dumps_->Join(kChannel);
  EXPECT_EQ(Begun(1).size(), 1u);
}

TEST_F(StatedumpsTest, AFailureIsReportedOnce) {
  results_[2] = Fail(ErrorCode::kIo, "broken");
  for (const uint64_t cgroup : {1, 2}) dumps_->Begin(kChannel, Session(), cgroup);
  LetGo();
  std::vector<std::string> problems;
  for (int i = 0; i < 60'000 && problems.empty(); ++i) {
    problems = dumps_->TakeProblems();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(problems, std::vector<std::string>{"broken: the trace lacks what was there before"});
  EXPECT_TRUE(End().empty());
}

TEST_F(StatedumpsTest, ThatItsSessionWasSwitchedOffIsNoFailure) {
  results_[0] = std::unexpected(Error{ErrorCode::kIo, ESHUTDOWN, "it is off"});
  dumps_->Begin(kChannel, Session(), 0);
  EXPECT_TRUE(End().empty());
}

TEST_F(StatedumpsTest, OnlyThatACgroupIsGoneIsNoFailure) {
  results_[1] = results_[0] = Fail(ErrorCode::kNotFound, "no such event");
  dumps_->Begin(kChannel, Session(), 1);
  EXPECT_TRUE(End().empty());
  dumps_->Begin(kChannel, Session(), 0);
  EXPECT_EQ(End().size(), 1u);
}

TEST_F(StatedumpsTest, TheEndWaitsForDumpsThatRun) {
  dumps_->Begin(kChannel, Session(), 1);
  Begun(1);
  LetGo();
  dumps_.reset();
  EXPECT_EQ(Begun(1).size(), 1u);
}

}  // namespace
}  // namespace weft::agent
