// SPDX-License-Identifier: Apache-2.0
// A node's lease: one keeper at a time holds it, with the processes that it starts.
#include "node-agent/keeper/lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "lib/ipc/child.h"
#include "node-agent/keeper/testing.h"

namespace weft::keeper {
namespace {

class LeaseTest : public FolderTest {};

// Returns whether this lease is held now.
bool Takes(Lease& lease) {
  const Result<bool> held = lease.TryTake();
  EXPECT_TRUE(held) << held.error().message;
  return held && *held;
}

TEST_F(LeaseTest, OneKeeperAtATimeHoldsIt) {
  Lease first(folder_);
  Lease second(folder_);
  EXPECT_EQ(first.fd(), -1);
  EXPECT_TRUE(Takes(first));
  EXPECT_TRUE(Takes(first)) << "it holds it already";
  EXPECT_FALSE(Takes(second));
  EXPECT_EQ(second.fd(), -1);
  first.GiveUp();
  EXPECT_EQ(first.fd(), -1);
  EXPECT_TRUE(Takes(second));
  EXPECT_FALSE(Takes(first));
}

TEST_F(LeaseTest, AProcessThatTheKeeperStartedHoldsItToo) {
  Lease holder(folder_);
  ASSERT_TRUE(Takes(holder));
  auto child = ipc::StartChild("/bin/sleep", {"1000"}, holder.fd());
  ASSERT_TRUE(child) << child.error().message;
  holder.GiveUp();
  Lease next(folder_);
  EXPECT_FALSE(Takes(next));
  kill(child->pid, SIGKILL);
  ASSERT_EQ(waitpid(child->pid, nullptr, 0), child->pid);
  EXPECT_TRUE(Takes(next));
}

TEST_F(LeaseTest, AProcessThatIsNotGivenItDoesNotHoldIt) {
  Lease holder(folder_);
  ASSERT_TRUE(Takes(holder));
  EXPECT_NE(fcntl(holder.fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_GT(holder.fd(), ipc::kLeaseFd) << "a child gets its copy under that number";
}

TEST(Lease, WithoutAFolderNoneIsNeeded) {
  Lease first("");
  Lease second("");
  EXPECT_TRUE(Takes(first));
  EXPECT_TRUE(Takes(second));
  EXPECT_EQ(first.fd(), -1);
}

TEST_F(LeaseTest, AFolderThatIsNotThereIsAnError) {
  Lease lease(folder_ + "/none");
  const Result<bool> held = lease.TryTake();
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::kIo);
  EXPECT_EQ(held.error().sys_errno, ENOENT);
  EXPECT_EQ(lease.fd(), -1);
}

}  // namespace
}  // namespace weft::keeper
