// SPDX-License-Identifier: Apache-2.0
// When a process is a new one, and when it is gone: with real processes, which map a page as they
// map a ring set.
#include "node-agent/agent/discovery/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>

#include "lib/base/pidfd.h"

namespace weft::agent {
namespace {

constexpr uint64_t kChannel = 7;

class Page {
 public:
  Page() : fd_(memfd_create("ring", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_.get(), kBytes), 0);
    at_ = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd_.get(), 0);
    EXPECT_NE(at_, MAP_FAILED);
  }
  ~Page() { Unmap(); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  void Unmap() {
    if (at_ != MAP_FAILED) munmap(at_, kBytes);
    at_ = MAP_FAILED;
  }
  [[nodiscard]] UniqueFd Fd() const { return UniqueFd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 3)); }

 private:
  static constexpr size_t kBytes = 4096;
  UniqueFd fd_;
  void* at_ = MAP_FAILED;
};

// A child of this process, which maps what this one maps, until End.
class Child {
 public:
  Child() {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[1]);
      char byte = 0;
      _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    close(ends[0]);
    end_.reset(ends[1]);
  }
  ~Child() {
    End();
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void End() { end_.reset(); }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd end_;
};

class ProcessesTest : public ::testing::Test {
 protected:
  // Returns the number of the process that has the ring set now.
  uint64_t Adopt(pid_t pid, const Page& page, uint64_t instance) {
    ipc::Arrived arrived{.key = "ring/" + std::to_string(instance), .pid = pid};
    arrived.fd = page.Fd();
    arrived.pidfd = OpenPidfd(pid);
    const RingEntry* ring = processes_.Adopt(arrived, kChannel, instance);
    EXPECT_NE(ring, nullptr);
    if (ring == nullptr) return 0;
    processes_.Watch(ring->process);
    return ring->process;
  }
  // Runs the loop until `is_done`.
  void RunUntil(const std::function<bool()>& is_done) {
    const auto timer = loop_.Every(std::chrono::milliseconds(1), [&] {
      if (is_done()) loop_.Stop();
    });
    EXPECT_TRUE(loop_.Run());
    loop_.Cancel(timer);
  }
  // Returns what the keeper was told to drop since the last call, each name followed by a space.
  std::string Dropped() {
    std::string names;
    for (const ipc::Message& message : told_)
      if (const auto* drop = std::get_if<ipc::Drop>(&message)) names += drop->key + " ";
    told_.clear();
    return names;
  }
  static std::string NameOf(uint64_t process) { return "process/" + std::to_string(process); }

  ipc::Loop loop_ = std::move(*ipc::Loop::Make());
  std::vector<ipc::Message> told_;  // to the keeper
  std::vector<uint64_t> gone_;
  Processes processes_{loop_, [this](ipc::Message message) { told_.push_back(std::move(message)); },
                       [this](const ProcessEntry& process) { gone_.push_back(process.number); }};
};

TEST_F(ProcessesTest, TheEndOfAProcessIsReportedOnceForAllItsRingSets) {
  Page first, second;
  Child child;
  first.Unmap();
  second.Unmap();
  const uint64_t process = Adopt(child.pid(), first, 1);
  EXPECT_EQ(Adopt(child.pid(), second, 2), process);
  EXPECT_EQ(processes_.Alive(), 1u);
  child.End();
  RunUntil([&] { return !gone_.empty(); });
  EXPECT_EQ(gone_, std::vector<uint64_t>{process});
  EXPECT_EQ(processes_.Alive(), 0u);
  EXPECT_EQ(processes_.RingsOf(kChannel), 2u);
}

// As after vfork.
TEST_F(ProcessesTest, MemoryThatTheParentMapsOutlivesTheChild) {
  Page page;
  Child child;
  const uint64_t process = Adopt(child.pid(), page, 1);
  child.End();
  RunUntil([&] { return processes_.Find(process)->pid == getpid(); });
  EXPECT_TRUE(gone_.empty());
  Page later;
  EXPECT_EQ(Adopt(getpid(), later, 2), process);
}

TEST_F(ProcessesTest, APidThatMapsNoneOfItsRingSetsIsANewProcess) {
  Page before;
  const uint64_t first = Adopt(getpid(), before, 1);
  before.Unmap();  // as exec does
  Page after;
  EXPECT_GT(Adopt(getpid(), after, 2), first);
  EXPECT_EQ(gone_, std::vector<uint64_t>{first});
  EXPECT_EQ(processes_.Alive(), 1u);
}

TEST_F(ProcessesTest, AProcessIsForgottenWithItsLastRingSet) {
  Page page, other;
  const uint64_t process = Adopt(getpid(), page, 1);
  Adopt(getpid(), other, 2);
  processes_.Drop(kChannel, 1);
  EXPECT_EQ(Dropped(), "ring/1 ");
  EXPECT_NE(processes_.Find(process), nullptr);
  processes_.DropChannel(kChannel);
  EXPECT_EQ(Dropped(), "ring/2 " + NameOf(process) + " ");
  EXPECT_EQ(processes_.Find(process), nullptr);
  EXPECT_GT(Adopt(getpid(), page, 3), process);
}

TEST_F(ProcessesTest, TheNextAgentHasThemFromTheKeeper) {
  Page page;
  auto child = std::make_optional<Child>();
  const uint64_t living = Adopt(getpid(), page, 1);
  page.Unmap();
  const uint64_t ended = Adopt(child->pid(), page, 2);
  child.reset();

  std::vector<ipc::Message> told;
  Processes next(
      loop_, [&](ipc::Message message) { told.push_back(std::move(message)); },
      [](const ProcessEntry&) {});
  next.SetLife(2);
  for (ipc::Message& message : told_) {
    auto* keep = std::get_if<ipc::Keep>(&message);
    if (keep == nullptr) continue;
    // The keeper has had the descriptor of the ring set since it arrived.
    ipc::Kept kept{.key = keep->key, .meta = keep->meta, .fd = std::move(keep->fd), .doorbell = ""};
    if (!kept.fd) kept.fd = page.Fd();
    EXPECT_TRUE(next.Restore(kept));
  }
  ipc::Kept foreign{.key = "k", .meta = R"({"kind":"other"})", .fd = page.Fd(), .doorbell = ""};
  EXPECT_FALSE(next.Restore(foreign));
  next.Restored();
  EXPECT_EQ(next.FindRing(kChannel, 1)->process, living);
  EXPECT_EQ(next.FindRing(kChannel, 2)->process, ended);
  EXPECT_EQ(next.Find(living)->pid, getpid());
  std::vector<uint64_t> gone;
  next.ForEachGone([&](const ProcessEntry& process) { gone.push_back(process.number); });
  EXPECT_EQ(gone, std::vector<uint64_t>{ended});
  next.DropChannel(kChannel);
  EXPECT_EQ(told.size(), 4u);  // two ring sets and two processes
  EXPECT_EQ(next.Alive(), 0u);
}

}  // namespace
}  // namespace weft::agent
