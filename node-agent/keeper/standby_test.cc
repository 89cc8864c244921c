// SPDX-License-Identifier: Apache-2.0
// A keeper that waits: it gets all that the holder of the lease keeps or nothing, and the lease
// after that. The holder is this test, with its part of the code (heirs.h), in the same loop.
#include "node-agent/keeper/standby.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>

#include "node-agent/keeper/heirs.h"
#include "node-agent/keeper/limits.h"
#include "node-agent/keeper/testing.h"

namespace weft::keeper {
namespace {

namespace fs = std::filesystem;

// Instead of the program that answers probes: notes its process and its last argument, and stays.
constexpr const char* kProbes =
    "#!/bin/sh\n"
    "echo \"$$ ${6:-none}\" > \"$2/probes\"\n"
    "exec sleep 1000\n";

UniqueFd Memfd() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

class StandbyTest : public FolderTest {
 protected:
  StandbyTest() {
    sigprocmask(SIG_SETMASK, nullptr, &signals_);
    const fs::path program = options_.bin_dir + "/weft-node-agent";
    std::ofstream(program) << kProbes;
    fs::permissions(program, fs::perms::owner_all);
    const auto held = holders_lease_.TryTake();
    EXPECT_TRUE(held && *held);
  }
  ~StandbyTest() override {
    standby_.reset();
    sigprocmask(SIG_SETMASK, &signals_, nullptr);
  }

  void Start(bool is_retired = false, ipc::Connection holder = {}) {
    standby_.emplace(loop_, options_, lease_, is_retired, std::move(holder));
    const Status started = standby_->Start();
    ASSERT_TRUE(started) << started.error().message;
  }
  void Listen() { ASSERT_TRUE(heirs_.Listen(folder_)); }
  void RunUntil(const std::function<bool()>& is_done) {
    const auto timer = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (is_done()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }
  // Runs the loop until the standby has looked for the lease some more times.
  void LetItLook() {
    int rounds = 0;
    const auto timer = loop_.Every(kLookForLease, [&] {
      if (++rounds == 3) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }
  // Runs the loop until the standby stops it.
  void RunToItsEnd() { EXPECT_TRUE(loop_.Run()); }
  [[nodiscard]] bool holds() const { return lease_.fd() >= 0; }

  void Send(ipc::Message message) {
    ASSERT_NE(heirs_.chosen(), nullptr);
    ASSERT_TRUE(heirs_.chosen()->Send(std::move(message)));
  }
  void SendKept(const std::string& key) {
    Send(ipc::Kept{.key = key, .meta = "note", .fd = Memfd()});
  }

  sigset_t signals_;
  const Options options_{.dir = folder_, .bin_dir = folder_, .kubelet_dir = folder_};
  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  Lease holders_lease_{folder_}, lease_{folder_};
  int asked_ = 0, taken_ = 0;
  Heirs heirs_{loop_,
               {.asked = [this] { ++asked_; }, .ended = [this](bool taken) { taken_ += taken; }}};
  std::optional<Standby> standby_;
};

TEST_F(StandbyTest, TakesAFreeLeaseAtOnce) {
  holders_lease_.GiveUp();
  Start();
  RunToItsEnd();
  EXPECT_TRUE(holds());
  EXPECT_FALSE(standby_->has_ended());
  EXPECT_EQ(standby_->TakeInheritance().vault.size(), 0u);
  EXPECT_FALSE(standby_->TakePredecessor().valid());
}

TEST_F(StandbyTest, WaitsForAHolderThatKnowsNoHeirs) {
  Start();
  LetItLook();
  EXPECT_FALSE(holds());
  holders_lease_.GiveUp();
  RunToItsEnd();
  EXPECT_TRUE(holds());
}

TEST_F(StandbyTest, GetsAllThatTheHolderKeeps) {
  Listen();
  Start();
  RunUntil([&] { return asked_ == 1; });
  EXPECT_TRUE(heirs_.understands());
  SendKept("session/one");
  Send(
      ipc::Arrived{.key = "bell/1", .doorbell = "pod", .message = "01ff", .pid = 7, .fd = Memfd()});
  Send(ipc::SilentCaller{.doorbell = "pod", .fd = Memfd()});
  LetItLook();
  EXPECT_EQ(taken_, 0) << "there may be more";
  Send(ipc::HandedOver{});
  RunUntil([&] { return taken_ == 1; });
  LetItLook();
  EXPECT_FALSE(holds()) << "the holder has it still";
  holders_lease_.GiveUp();
  RunToItsEnd();
  EXPECT_TRUE(holds());
  Inheritance inheritance = standby_->TakeInheritance();
  EXPECT_EQ(inheritance.vault.size(), 2u);
  EXPECT_EQ(inheritance.silent["pod"].size(), 1u);

  // The holder, which is retired now, waits on the same connection.
  ipc::Connection predecessor = standby_->TakePredecessor();
  ASSERT_TRUE(predecessor.valid());
  ipc::Connection heir = heirs_.TakeChosen();
  ASSERT_TRUE(predecessor.Send(ipc::HandedOver{}));
  EXPECT_TRUE(heir.Wait(std::chrono::seconds(60)));
}

TEST_F(StandbyTest, DoesNotTakeTheLeaseInTheMiddleOfAHandover) {
  Listen();
  Start();
  RunUntil([&] { return asked_ == 1; });
  SendKept("session/one");
  holders_lease_.GiveUp();
  LetItLook();
  EXPECT_FALSE(holds());
  Send(ipc::HandedOver{});
  RunToItsEnd();
  EXPECT_TRUE(holds());
  EXPECT_EQ(standby_->TakeInheritance().vault.size(), 1u);
}

TEST_F(StandbyTest, AHandoverThatBreaksOffLeavesNothing) {
  Listen();
  Start();
  RunUntil([&] { return asked_ == 1; });
  SendKept("session/one");
  LetItLook();
  heirs_.TakeChosen().Close();
  RunUntil([&] { return asked_ == 2; });
  SendKept("session/two");
  SendKept("session/three");
  Send(ipc::HandedOver{});
  RunUntil([&] { return taken_ == 1; });
  holders_lease_.GiveUp();
  RunToItsEnd();
  EXPECT_EQ(standby_->TakeInheritance().vault.size(), 2u) << "the holder still has the first";
}

TEST_F(StandbyTest, AHolderOfAnotherVersionIsNotKnownLater) {
  Listen();
  Start();
  RunUntil([&] { return asked_ == 1; });
  Send(ipc::HandedOver{.version = ipc::kProtocolVersion + 1});
  RunUntil([&] { return taken_ == 1; });
  holders_lease_.GiveUp();
  RunToItsEnd();
  EXPECT_TRUE(holds());
  EXPECT_FALSE(standby_->TakePredecessor().valid());
}

TEST_F(StandbyTest, ARetiredOneWaitsForTheEndOfItsHeir) {
  auto pair = ipc::Connection::MakePair();
  ASSERT_TRUE(pair);
  ipc::Connection heir(std::move(pair->first));
  Start(/*is_retired=*/true, ipc::Connection(std::move(pair->second)));
  holders_lease_.GiveUp();
  LetItLook();
  EXPECT_FALSE(holds()) << "its heir is there";
  heir.Close();
  RunToItsEnd();
  EXPECT_TRUE(holds());
}

TEST_F(StandbyTest, ARetiredOneDoesNotAskForAllAtOnce) {
  Listen();
  Start(/*is_retired=*/true);
  LetItLook();
  EXPECT_EQ(asked_, 0);
  EXPECT_TRUE(heirs_.Choose()) << "it may be asked";
  EXPECT_TRUE(heirs_.understands());
}

TEST_F(StandbyTest, EndsAtSigterm) {
  Start();
  ASSERT_EQ(raise(SIGTERM), 0);
  RunToItsEnd();
  EXPECT_TRUE(standby_->has_ended());
  EXPECT_FALSE(holds());
}

TEST_F(StandbyTest, ProbesAreAnsweredAsLongAsItWaits) {
  for (const bool is_retired : {false, true}) {
    Start(is_retired);
    RunUntil([&] {
      std::error_code none;
      const auto size = fs::file_size(folder_ + "/probes", none);
      return !none && size > 0;
    });
    pid_t pid = 0;
    std::string reason;
    std::getline(std::ifstream(folder_ + "/probes") >> pid, reason);
    EXPECT_EQ(reason,
              is_retired ? " none" : " another weft-keeper of this node has not handed over yet");
    EXPECT_EQ(kill(pid, 0), 0);
    standby_.reset();
    EXPECT_EQ(kill(pid, 0), -1) << "it is gone, and was waited for";
    EXPECT_EQ(errno, ESRCH);
    fs::remove(folder_ + "/probes");
    LetItLook();
  }
}

}  // namespace
}  // namespace weft::keeper
