// SPDX-License-Identifier: Apache-2.0
// A consumer that is killed by SIGKILL at every named place, and at random ones, again and again
// while programs write: in the end every committed event is in the trace, once, and the books
// agree.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <random>
#include <set>

#include "lib/ring/testing/test_writer.h"
#include "node-agent/consumer/testing.h"

namespace weft::consumer {
namespace {

using ring::testing::MakeDescription;
using ring::testing::TestWriter;
using testing::Babeltrace;
using testing::Definition;
using testing::Folder;
using testing::Running;
using testing::Value;

constexpr const char* kPlaces[] = {"metadata",       "before_packets", "packets",
                                   "before_journal", "journal",        "tails"};

class KillTest : public ::testing::Test {
 protected:
  KillTest() : journal(memfd_create("journal", MFD_CLOEXEC)) {
    for (uint64_t i = 0; i < 3; i++) {
      writers.push_back(std::make_unique<TestWriter>(
          ring::testing::WriterOptions{.subbuf_shift = 14, .instance = i}));
    }
  }

  // Events of new kinds now and then, so that metadata is written between kills.
  void WriteSome(std::mt19937& random, int count) {
    for (int i = 0; i < count; i++) {
      const size_t w = random() % writers.size();
      if (random() % 200 == 0 || kinds[w] == 0) {
        const std::string name = "p:e" + std::to_string(random() % 100);
        writers[w]->Describe(kinds[w]++, MakeDescription(name, {"number", "ring"}));
      }
      std::vector<uint8_t> body(16);
      std::memcpy(body.data(), &number, 8);
      std::memcpy(body.data() + 8, &w, 8);
      const auto event = static_cast<uint16_t>(random() % kinds[w]);
      if (writers[w]->Write(random() % 2, event, random() % 3, ticks.Ticks(), body)) number++;
    }
  }

  // Starts a consumer in a process of its own, killed at `place`, or whenever the test wants.
  pid_t Start(const std::string& place) {
    const pid_t pid = ::fork();
    if (pid != 0) return pid;
    ::setenv("WEFT_KILL_AT", place.c_str(), 1);
    Running running(folder, journal);
    if (!running.consumer->AddChannel(Definition())) ::_exit(3);
    for (const auto& writer : writers) {
      if (!running.consumer->AddRing(1, writer->Fd(), writer->header()->instance, 1)) ::_exit(4);
    }
    // Commits often, so that it passes every kill point often.
    for (int i = 0;; i++) {
      running.consumer->Round();
      if (i % 10 == 0) (void)running.consumer->FlushAll();
      ::usleep(300);
    }
  }

  void Finish() {
    Running running(folder, journal);
    ASSERT_TRUE(running.consumer->AddChannel(Definition()));
    for (const auto& writer : writers) {
      ASSERT_TRUE(running.consumer->AddRing(1, writer->Fd(), writer->header()->instance, 1));
    }
    ASSERT_TRUE(running.Drain());
    std::string errors;
    const auto lines = Babeltrace(folder.path(), &errors);
    EXPECT_EQ(errors.find("packet"), std::string::npos) << errors;
    std::set<uint64_t> numbers;
    for (const std::string& line : lines) {
      EXPECT_TRUE(numbers.insert(Value(line, "number")).second) << "twice: " << line;
    }
    EXPECT_EQ(numbers.size(), number) << "some are lost";
    EXPECT_TRUE(numbers.empty() || *numbers.rbegin() == number - 1);
    const auto counts = running.consumer->Find(1)->Counts();
    EXPECT_EQ(counts.recorded, number);
    EXPECT_EQ(counts.delivered, number);
    EXPECT_EQ(counts.in_flight, 0U);
    uint64_t discarded = 0;
    for (const auto& writer : writers) discarded += writer->discarded(0) + writer->discarded(1);
    EXPECT_EQ(counts.discarded.contains("full") ? counts.discarded.at("full") : 0, discarded);
  }

  Folder folder;
  UniqueFd journal;
  ring::MachineTicks ticks{WEFT_CLOCK_TSC};
  std::vector<std::unique_ptr<TestWriter>> writers;
  uint16_t kinds[3] = {};
  uint64_t number = 0;
};

// The processes are gone, and their container needs the memory of their rings. Nothing is read
// before they are moved, so that every record is in a chunk.
TEST_F(KillTest, WhileItMovesRings) {
  std::mt19937 random(7);
  for (int i = 0; i < 40; i++) WriteSome(random, 100);
  for (const auto& writer : writers) {
    for (const char* place : {"chunk_saved", "chunk_freed", "chunk_moved"}) {
      for (int nth = 1; nth <= 3; nth++) {
        const pid_t pid = ::fork();
        if (pid == 0) {
          ::setenv("WEFT_KILL_AT", (std::string(place) + ":" + std::to_string(nth)).c_str(), 1);
          Running running(folder, journal);
          const uint64_t instance = writer->header()->instance;
          if (!running.consumer->AddChannel(Definition())) ::_exit(3);
          if (!running.consumer->AddRing(1, writer->Fd(), instance, 1)) ::_exit(4);
          running.consumer->ProcessGone(1);
          ::_exit(running.consumer->MoveRing(1, instance, false) ? 0 : 5);
        }
        int status = 0;
        ::waitpid(pid, &status, 0);
        // A ring with few chunks is moved completely before the third.
        ASSERT_TRUE(WIFSIGNALED(status) || (nth > 1 && WEXITSTATUS(status) == 0))
            << place << " " << nth << ": " << status;
      }
    }
  }
  // This runs in a process of its own, because a process keeps the first kill point that it passes
  // as its only one.
  const pid_t reader = ::fork();
  if (reader == 0) {
    Finish();
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(KillTest, LosesNothingWhenKilledAtEveryKillPoint) {
  std::mt19937 random(5);
  int killed = 0;
  for (int round = 0; round < 10; round++) {
    for (const char* place : kPlaces) {
      const pid_t pid = Start(std::string(place) + ":" + std::to_string(1 + random() % 6));
      int status = 0;
      for (int i = 0; i < 100 && ::waitpid(pid, &status, WNOHANG) == 0; i++) {
        WriteSome(random, 20);
        ::usleep(1000);
        if (i == 99) {
          ::kill(pid, SIGKILL);
          ::waitpid(pid, &status, 0);
        }
      }
      ASSERT_TRUE(WIFSIGNALED(status)) << status;
      killed++;
    }
  }
  EXPECT_EQ(killed, 60);
  Finish();
}

TEST_F(KillTest, LosesNothingWhenKilledAtRandom) {
  std::mt19937 random(6);
  for (int round = 0; round < 100; round++) {
    const pid_t pid = Start("");
    for (uint32_t i = random() % 12; i-- > 0;) {
      WriteSome(random, 30);
      ::usleep(random() % 2000);
    }
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  }
  Finish();
}

}  // namespace
}  // namespace weft::consumer
