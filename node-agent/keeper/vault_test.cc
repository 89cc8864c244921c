// SPDX-License-Identifier: Apache-2.0
// What the keeper keeps is told to each agent once, with the agent's own notes.
#include "node-agent/keeper/vault.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "lib/ipc/limits.h"

namespace weft::keeper {
namespace {

UniqueFd Memfd() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

Caller FromPid(int32_t pid) {
  Caller caller;
  caller.pid = pid;
  caller.message = "\x01\xff";
  caller.fd = Memfd();
  return caller;
}

TEST(Vault, TellsCallersInTheirOrderAndOnce) {
  Vault vault(10);
  ASSERT_TRUE(vault.AddCaller(FromPid(1)));
  ASSERT_TRUE(vault.AddCaller(FromPid(2)));
  for (int32_t pid : {1, 2}) {
    auto message = vault.NextUntold();
    ASSERT_TRUE(message.has_value());
    const auto& arrived = std::get<ipc::Arrived>(*message);
    EXPECT_EQ(arrived.pid, pid);
    EXPECT_EQ(arrived.message, "01ff");
    EXPECT_TRUE(arrived.fd.valid());
    EXPECT_FALSE(arrived.pidfd.valid());
  }
  EXPECT_FALSE(vault.NextUntold().has_value());
}

TEST(Vault, AgentsNoteReplacesTheCaller) {
  Vault vault(10);
  ASSERT_TRUE(vault.AddCaller(FromPid(1)));
  const auto key = std::get<ipc::Arrived>(*vault.NextUntold()).key;
  ASSERT_TRUE(vault.Keep({.key = key, .meta = "note"}));
  vault.ForgetWhatWasTold();
  auto message = vault.NextUntold();
  ASSERT_TRUE(message.has_value());
  const auto& kept = std::get<ipc::Kept>(*message);
  EXPECT_EQ(kept.meta, "note");
  EXPECT_TRUE(kept.fd.valid());
}

TEST(Vault, TellsTheNextAgentWhatNoAgentHandled) {
  Vault vault(10);
  ASSERT_TRUE(vault.AddCaller(FromPid(7)));
  ASSERT_TRUE(vault.NextUntold().has_value());
  vault.ForgetWhatWasTold();
  auto message = vault.NextUntold();
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(std::get<ipc::Arrived>(*message).pid, 7);
}

TEST(Vault, DroppedIsGoneAndFullIsSaid) {
  Vault vault(1);
  ASSERT_TRUE(vault.AddCaller(FromPid(1)));
  auto full = vault.AddCaller(FromPid(2));
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, ErrorCode::kLimit);
  vault.Drop("bell/1");
  EXPECT_FALSE(vault.NextUntold().has_value());
  EXPECT_FALSE(vault.Keep({.key = "x", .meta = ""}).has_value());
}

TEST(Vault, CountsDescriptorsAndHasRoomAgain) {
  Vault vault(2);
  Caller caller = FromPid(1);
  caller.pidfd = Memfd();
  ASSERT_TRUE(vault.HasRoomFor(""));
  ASSERT_TRUE(vault.AddCaller(std::move(caller)));
  EXPECT_FALSE(vault.HasRoomFor("")) << "a ring set and a pidfd";
  // The agent's note takes the pidfd's place, until it keeps one itself.
  ASSERT_TRUE(vault.Keep({.key = "bell/1", .meta = "note"}));
  EXPECT_TRUE(vault.HasRoomFor("another"));
  ASSERT_TRUE(vault.Keep({.key = "process/1", .meta = "note", .fd = Memfd()}));
  EXPECT_FALSE(vault.HasRoomFor("another"));
  vault.Drop("bell/1");
  vault.Drop("process/1");
  EXPECT_TRUE(vault.HasRoomFor(""));
  EXPECT_EQ(vault.dropped(), 2U);
}

// How many a doorbell gets in that calls without end.
size_t Fill(Vault& vault, const std::string& doorbell) {
  for (size_t taken = 0;; ++taken) {
    Caller caller = FromPid(1);
    caller.doorbell = doorbell;
    if (!vault.AddCaller(std::move(caller))) return taken;
  }
}

TEST(Vault, OneDoorbellHasNoMoreRingSetsThanAChannelMayHave) {
  Vault vault(1 << 20);
  EXPECT_EQ(Fill(vault, "pod"), ipc::kMaxOpenRings);
  EXPECT_TRUE(vault.HasRoomFor("another"));
}

TEST(Vault, OneDoorbellLeavesRoomForOthers) {
  Vault vault(900);
  EXPECT_EQ(Fill(vault, "hostile"), 800U);
  EXPECT_EQ(Fill(vault, "hostile, too"), 89U);
  EXPECT_GE(Fill(vault, "quiet"), 9U);
  // What the agent took care of counts for its doorbell all the same; what it dropped does not.
  ASSERT_TRUE(vault.Keep({.key = "bell/1", .meta = "note"}));
  EXPECT_EQ(Fill(vault, "hostile"), 0U);
  for (int i = 2; i <= 800; ++i) vault.Drop("bell/" + std::to_string(i));
  EXPECT_GT(Fill(vault, "hostile"), 600U);
  EXPECT_GT(Fill(vault, "another"), 50U);
}

}  // namespace
}  // namespace weft::keeper
