// SPDX-License-Identifier: Apache-2.0
// The loop under a storm: what comes faster than it may wake is handled all the same, and in order.
#include "lib/ipc/loop.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>
#include <vector>

#include "lib/ipc/child.h"

namespace weft::ipc {
namespace {

TEST(Loop, AStormIsHandledWholeAndInOrder) {
  auto loop = Loop::Make();
  ASSERT_TRUE(loop);
  auto ends = Connection::MakePair();
  ASSERT_TRUE(ends);
  Connection receiver(std::move(ends->first));
  Connection sender(std::move(ends->second));
  constexpr uint64_t kMessages = 1000;
  std::vector<uint64_t> seen;
  ASSERT_TRUE(loop->WatchConnection(receiver, [&](Result<Message> message) {
    ASSERT_TRUE(message);
    seen.push_back(std::get<Synced>(*message).number);
    if (seen.size() == kMessages) loop->Stop();
  }));
  // Sends one message at a time, each when the one before was taken, so that each has a round of
  // its own.
  loop->AfterEachRound([&] {
    if (seen.size() < kMessages) {
      ASSERT_TRUE(sender.Send(Synced{seen.size()}));
    }
  });
  ASSERT_TRUE(loop->Run());
  for (uint64_t i = 0; i < kMessages; ++i) EXPECT_EQ(seen[i], i);
}

TEST(Loop, TimersRunDuringAStorm) {
  auto loop = Loop::Make();
  ASSERT_TRUE(loop);
  UniqueFd always(eventfd(1, EFD_CLOEXEC));
  int rounds = 0;
  int ticks = 0;
  ASSERT_TRUE(loop->Watch(always.get(), [&] { ++rounds; }));
  loop->Every(std::chrono::milliseconds(1), [&] {
    if (++ticks == 20) loop->Stop();
  });
  ASSERT_TRUE(loop->Run());
  EXPECT_GE(rounds, ticks);
}

TEST(Loop, ChildrenOfAProcessThatTakesTurnsNeedNotTakeTurns) {
  std::thread([] {
    TakeTurns();
    EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH);
    auto child = StartChild("/bin/sleep", {"60"});
    ASSERT_TRUE(child);
    EXPECT_EQ(sched_getscheduler(child->pid), SCHED_OTHER);
    kill(child->pid, SIGKILL);
    waitpid(child->pid, nullptr, 0);
  }).join();
}

}  // namespace
}  // namespace weft::ipc
