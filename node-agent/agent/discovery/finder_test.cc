// SPDX-License-Identifier: Apache-2.0
// Whether a container's processes have the library is what their mappings show.
#include "node-agent/agent/discovery/finder.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "lib/abi/control.h"
#include "node-agent/agent/base/limits.h"

namespace weft::agent {
namespace {

constexpr size_t kBytes = 4096;

class FinderTest : public ::testing::Test {
 protected:
  FinderTest()
      : finder_([](FoundMemory) { return Finder::Verdict::kKnown; }),
        file_(memfd_create("control-file", MFD_CLOEXEC)) {}

  void SetUp() override {
    if (!finder_.refusal().empty()) GTEST_SKIP() << finder_.refusal();
    ASSERT_EQ(ftruncate(file_.get(), kBytes), 0);
    finder_.AddControlFile("pod/main", file_);
    finder_.SetMembership([this](int32_t pid) {
      return children_.contains(pid) ? std::optional<std::string>("pod/main") : std::nullopt;
    });
  }
  ~FinderTest() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  // Starts a process of the container; returns when it has mapped the file, if it does.
  void StartProcess(bool maps) { StartProcess(maps ? file_.get() : -1); }
  // `file`: -1 if it maps nothing.
  void StartProcess(int file) {
    std::array<int, 2> ready{};
    ASSERT_EQ(pipe(ready.data()), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      if (file >= 0) mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0);
      (void)!write(ready[1], "r", 1);
      for (;;) pause();
    }
    children_.insert(child);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }

  void LookOften() {
    for (uint32_t i = 0; i < kRoundsWithoutLibrary; ++i) finder_.LookAtMembers();
  }

  Finder finder_;
  UniqueFd file_;
  std::set<pid_t> children_;
};

TEST_F(FinderTest, NothingIsKnownOfAContainerWithoutProcesses) {
  LookOften();
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kUnknown);
  EXPECT_EQ(finder_.SightOf("other"), Finder::Sight::kUnknown);
}

TEST_F(FinderTest, AProcessWithoutTheLibraryIsSeenAfterSomeRounds) {
  StartProcess(false);
  finder_.LookAtMembers();
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kUnknown);
  LookOften();
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kMissing);
}

TEST_F(FinderTest, AProcessThatBeganBeforeTheFileHasMemoryOfTheLibrary) {
  const UniqueFd ring(memfd_create(WEFT_RING_MEMFD_NAME, MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(ring.get(), kBytes), 0);
  StartProcess(ring.get());
  LookOften();
  LookOften();
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kMapped);
}

TEST_F(FinderTest, OneProcessWithTheLibraryIsEnoughAlsoAfterItsEnd) {
  StartProcess(false);
  LookOften();
  LookOften();
  StartProcess(true);
  LookOften();
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kMapped);
  for (const pid_t child : children_) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  children_.clear();
  LookOften();
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kMapped);
  finder_.RemoveControlFile("pod/main");
  EXPECT_EQ(finder_.SightOf("pod/main"), Finder::Sight::kUnknown);
}

}  // namespace
}  // namespace weft::agent
