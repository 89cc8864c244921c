// SPDX-License-Identifier: Apache-2.0
// From rings to CTF: what a consumer writes is what was committed, in time order, once, as
// babeltrace2 reads it; and the books agree.
#include "node-agent/consumer/consumer.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <random>

#include "lib/ctf/test_trace.h"
#include "lib/ctf/trace_class.h"
#include "lib/ctf/vpid_range.h"
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

std::vector<uint8_t> Body(uint64_t a, uint64_t b) {
  std::vector<uint8_t> body(16);
  std::memcpy(body.data(), &a, 8);
  std::memcpy(body.data() + 8, &b, 8);
  return body;
}

// Returns babeltrace2's description of a trace.
std::string TraceDetails(const std::filesystem::path& path) {
  const std::string command = "babeltrace2 " + path.string() + " -c sink.text.details 2>&1";
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char chunk[4096];
  for (size_t n; pipe != nullptr && (n = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) {
    text.append(chunk, n);
  }
  if (pipe != nullptr) ::pclose(pipe);
  return text;
}

class ConsumerTest : public ::testing::Test {
 protected:
  ConsumerTest() : journal(memfd_create("journal", MFD_CLOEXEC)) {}
  uint64_t Now() { return ticks.Ticks(); }
  static void CheckBooks(const ipc::ChannelCounts& counts) {
    uint64_t lost = 0;
    for (const auto& [reason, n] : counts.lost) lost += n;
    EXPECT_EQ(counts.recorded, counts.delivered + counts.overwritten + lost + counts.in_flight);
  }
  // Drains; the trace has events 0 to number - 1, in this order.
  void ExpectAllInOrder(Running& running, uint64_t number) {
    ASSERT_TRUE(running.Drain());
    std::string errors;
    const auto lines = Babeltrace(folder.path(), &errors);
    EXPECT_EQ(errors, "");
    ASSERT_EQ(lines.size(), number);
    for (size_t i = 0; i < lines.size(); i++) ASSERT_EQ(Value(lines[i], "number"), i) << lines[i];
  }

  Folder folder;
  UniqueFd journal;
  ring::MachineTicks ticks{WEFT_CLOCK_TSC};
};

TEST_F(ConsumerTest, OneEventIsReadByBabeltrace) {
  TestWriter writer;
  writer.Describe(3, MakeDescription("shop:order", {"number", "price"}));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  ASSERT_TRUE(writer.Write(0, 3, 1, Now(), Body(17, 23)));
  ASSERT_TRUE(running.Drain());
  std::string errors;
  const auto lines = Babeltrace(folder.path(), &errors);
  EXPECT_EQ(errors, "");
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("shop:order"), std::string::npos) << lines[0];
  EXPECT_EQ(Value(lines[0], "number"), 17U);
  EXPECT_EQ(Value(lines[0], "price"), 23U);
  EXPECT_EQ(Value(lines[0], "cpu_id"), 1U);
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.delivered, 1U);
  CheckBooks(counts);
}

// Checks the range of vpids in the environment after each ring set and after the consumer's
// restart.
TEST_F(ConsumerTest, TheEnvironmentHasTheRangeOfVpidsAtAnyTime) {
  for (const char* version : {"1.8", "2"}) {
    const std::string path = std::string("ctf") + version;
    const bool is_2 = *version == '2';
    const auto find = [&](uint32_t min, uint32_t max) {
      const std::string metadata = ctf::ReadAll((folder.path() / path / "metadata").string());
      const auto text =
          ctf::VpidRangeText(is_2 ? ctf::Version::k2 : ctf::Version::k1_8, {min, max});
      const auto trace = ctf::ParseMetadata(metadata);
      ASSERT_TRUE(trace.has_value()) << trace.error().message;
      EXPECT_NE(metadata.find(text), std::string::npos) << text << metadata;
      EXPECT_EQ(trace->env.at(0).name, "vpid_min");
      EXPECT_EQ(std::get<int64_t>(trace->env.at(0).value), min);
      EXPECT_EQ(std::get<int64_t>(trace->env.at(1).value), max);
    };
    UniqueFd own_journal(memfd_create("journal", MFD_CLOEXEC));
    ipc::ChannelDefinition definition = Definition(1, path);
    definition.ctf_version = version;
    TestWriter early({.instance = 1});
    TestWriter late({.instance = 2});
    for (TestWriter* writer : {&early, &late}) {
      writer->Describe(0, MakeDescription("p:e", {"number", "ring"}));
      ASSERT_TRUE(writer->Write(0, 0, 0, Now(), Body(1, 2)));
    }
    early.header()->pid = 300;
    late.header()->pid = 41;
    {
      Running running(folder, own_journal);
      ASSERT_TRUE(running.consumer->AddChannel(definition));
      find(0, 0);
      ASSERT_TRUE(running.consumer->AddRing(1, early.Fd(), 1, 1));
      find(300, 300);
    }  // its files are those of a killed consumer: nothing was committed since
    Running running(folder, own_journal);
    ASSERT_TRUE(running.consumer->AddChannel(definition));
    find(300, 300);
    ASSERT_TRUE(running.consumer->AddRing(1, late.Fd(), 2, 2));
    find(41, 300);
    ASSERT_TRUE(running.consumer->AddRing(1, early.Fd(), 1, 1));
    ASSERT_TRUE(running.Drain());
    find(41, 300);
    if (is_2) continue;  // not known to every babeltrace2
    std::string errors;
    EXPECT_EQ(Babeltrace(folder.path() / path, &errors).size(), 2U);
    EXPECT_EQ(errors, "");
    EXPECT_NE(TraceDetails(folder.path() / path).find("vpid_max: 300"), std::string::npos);
  }
}

TEST_F(ConsumerTest, RingsAreMergedByTimeAndSplitByCpu) {
  std::mt19937 random(3);
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  std::vector<std::unique_ptr<TestWriter>> writers;
  for (uint64_t i = 0; i < 5; i++) {
    writers.push_back(std::make_unique<TestWriter>(
        ring::testing::WriterOptions{.subbuf_shift = 16, .instance = i}));
    // An event has another id in each ring set.
    writers.back()->Describe(static_cast<uint16_t>(i), MakeDescription("p:e", {"number", "ring"}));
    ASSERT_TRUE(running.consumer->AddRing(1, writers.back()->Fd(), i, i));
  }
  uint64_t number = 0;
  for (int i = 0; i < 20000; i++) {
    const size_t w = random() % writers.size();
    if (writers[w]->Write(random() % 2, static_cast<uint16_t>(w), random() % 4, Now(),
                          Body(number, w))) {
      number++;
    }
    if (random() % 500 == 0) running.consumer->Round();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAllInOrder(running, number));
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.delivered, number);
  EXPECT_EQ(counts.streams, 4U);
  EXPECT_EQ(counts.late, 0U);
  CheckBooks(counts);
}

// weft.ko's ring says which clock is its own: the kernel may give up the TSC after the node chose
// it.
TEST_F(ConsumerTest, ARingOfTheKernelWithAnotherClockHasTheSameTime) {
  TestWriter process({.instance = 1});
  TestWriter kernel({.clock = WEFT_CLOCK_MONOTONIC, .channel_id = 2, .instance = 2});
  for (TestWriter* writer : {&process, &kernel})
    writer->Describe(0, MakeDescription("p:e", {"number", "ring"}));
  ipc::ChannelDefinition definition = Definition(2, "kernel");
  definition.domain = ipc::kKernelDomain;
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddChannel(definition));
  running.consumer->Round();  // makes the channel that has no ring yet promise a time
  ASSERT_TRUE(running.consumer->AddRing(1, process.Fd(), 1, 1));
  ASSERT_TRUE(running.consumer->AddRing(2, kernel.Fd(), 2, 0));
  ring::MachineTicks monotonic(WEFT_CLOCK_MONOTONIC);
  for (uint64_t i = 0; i < 100; i += 2) {
    ASSERT_TRUE(process.Write(0, 0, 0, Now(), Body(i, 1)));
    usleep(500);  // the clocks agree to some microseconds
    ASSERT_TRUE(kernel.Write(0, 0, 0, monotonic.Ticks(), Body(i + 1, 2)));
    usleep(500);
    if (i % 10 == 0) running.consumer->Round();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAllInOrder(running, 100));
  for (const uint64_t id : {1, 2}) {
    const auto counts = running.consumer->Find(id)->Counts();
    EXPECT_EQ(counts.delivered, 50U);
    EXPECT_EQ(counts.late, 0U);
    CheckBooks(counts);
  }
}

// If its CPU has no newer event yet, a record keeps its own time, however late its ring set was
// found.
TEST_F(ConsumerTest, AFoundRingSetHasItsPlaceAmongTheOthers) {
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  TestWriter found({.instance = 1});
  TestWriter known({.instance = 2});
  for (TestWriter* writer : {&found, &known})
    writer->Describe(0, MakeDescription("p:e", {"number", "ring"}));
  ASSERT_TRUE(found.Write(0, 0, 1, Now(), Body(0, 1)));
  ASSERT_TRUE(known.Write(0, 0, 0, Now(), Body(1, 2)));
  ASSERT_TRUE(running.consumer->AddRing(1, known.Fd(), 2, 2));
  for (int i = 0; i < 20; i++) {  // until it is older than the horizon
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    running.consumer->Round();
  }
  ASSERT_TRUE(running.consumer->AddRing(1, found.Fd(), 1, 1));
  ASSERT_NO_FATAL_FAILURE(ExpectAllInOrder(running, 2));
  EXPECT_EQ(running.consumer->Find(1)->Counts().late, 0U);
}

// Slots whose records are of one CPU for long are read in long runs; their threads then change
// places.
TEST_F(ConsumerTest, LongRunsOfOneCpuKeepTheOrderOfEveryStream) {
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  TestWriter writer({.slots = 4, .subbuf_shift = 18});
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  std::mt19937 random(9);
  uint64_t number = 0;
  for (int i = 0; i < 40000; i++) {
    const uint32_t slot = random() % 3;
    const auto cpu = static_cast<uint16_t>((slot + number / 7000) % 3);
    if (writer.Write(slot, 0, cpu, Now(), Body(number, slot))) number++;
    if (random() % 9000 == 0) running.consumer->Round();
  }
  ASSERT_NO_FATAL_FAILURE(ExpectAllInOrder(running, number));
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.late, 0U);
  CheckBooks(counts);
}

TEST_F(ConsumerTest, DiscardedEventsAreInTheTrace) {
  TestWriter writer;
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  for (int i = 0; i < 1000; i++) writer.Write(0, 0, 0, Now(), Body(1, 2));
  ASSERT_GT(writer.discarded(0), 0U);
  writer.slot(0)->missed = 7;
  ASSERT_TRUE(running.Drain());
  std::string errors;
  const auto lines = Babeltrace(folder.path(), &errors);
  EXPECT_EQ(lines.size(), writer.committed(0));
  EXPECT_NE(errors.find("Tracer discarded " + std::to_string(writer.discarded(0) + 7) + " event"),
            std::string::npos)
      << errors;
  const auto discarded = running.consumer->Find(1)->Counts().discarded;
  EXPECT_EQ(discarded.at("full"), writer.discarded(0));
  EXPECT_EQ(discarded.at("missed"), 7U);
}

TEST_F(ConsumerTest, OverwrittenEventsAreCountedExactly) {
  TestWriter writer({.mode = WEFT_RING_OVERWRITE});
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  for (uint64_t i = 0; i < 5000; i++) {
    ASSERT_TRUE(writer.Write(0, 0, 0, Now(), Body(i, 2)));
    if (i % 700 == 0) running.consumer->Round();
  }
  ASSERT_TRUE(running.Drain());
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.recorded, 5000U);
  EXPECT_GT(counts.overwritten, 0U);
  EXPECT_EQ(Babeltrace(folder.path()).size(), counts.delivered);
  CheckBooks(counts);
}

// After a kill, a flight recorder's reader still has its journal. All other records were
// overwritten, and are counted.
TEST_F(ConsumerTest, ARestartedReaderOfAnOverwriteRingHasExactBooks) {
  std::mt19937 random(5);
  TestWriter writer({.mode = WEFT_RING_OVERWRITE});
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  uint64_t number = 0;
  for (int restart = 0; restart < 20; restart++) {
    Running running(folder, journal);
    ASSERT_TRUE(running.consumer->AddChannel(Definition()));
    ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
    for (int i = 0; i < 2000; i++) {
      ASSERT_TRUE(writer.Write(0, 0, 0, Now(), Body(number++, 0)));
      if (random() % 300 == 0) running.consumer->Round();
      if (random() % 700 == 0) {
        ASSERT_TRUE(running.consumer->FlushAll());
      }
    }
  }
  Running last(folder, journal);
  ASSERT_TRUE(last.consumer->AddChannel(Definition()));
  ASSERT_TRUE(last.consumer->AddRing(1, writer.Fd(), 42, 1));
  ASSERT_TRUE(last.Drain());
  const auto counts = last.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.recorded, number);
  EXPECT_GT(counts.overwritten, 0U);
  EXPECT_EQ(counts.in_flight, 0U);
  CheckBooks(counts);
  const auto lines = Babeltrace(folder.path());
  EXPECT_EQ(lines.size(), counts.delivered);
  for (size_t i = 1; i < lines.size(); i++) {
    ASSERT_LT(Value(lines[i - 1], "number"), Value(lines[i], "number")) << lines[i];
  }
}

// A frontier that nothing follows: there is no end to wait for.
TEST_F(ConsumerTest, CountsAsLostWhatIsGivenUpAtTheEnd) {
  TestWriter writer({.mode = WEFT_RING_OVERWRITE});
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  for (int i = 0; i < 5; i++) ASSERT_TRUE(writer.Write(0, 0, 0, Now(), Body(i, 0)));
  writer.slot(0)->frontier = 1 << 20;
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  running.consumer->StopChannels({1});
  while (!running.consumer->Find(1)->drained()) running.consumer->Round();
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.corrupt_rings, 1U);
  EXPECT_EQ(counts.recorded, 5U);
  EXPECT_EQ(counts.lost, (std::map<std::string, uint64_t>{{"consumer/corrupt", 5}}));
  EXPECT_EQ(counts.in_flight, 0U);
}

uint64_t AllocatedBytes(const TestWriter& writer) {
  struct stat st{};
  EXPECT_EQ(::fstat(writer.Fd().get(), &st), 0);
  return static_cast<uint64_t>(st.st_blocks) * 512;
}

// The relay is away, say: nothing is read. The ring set's memory has left its container for this
// consumer's, and what was read is free.
TEST_F(ConsumerTest, RecordsOfAProcessThatIsGoneSurviveTheMoveOfTheirRing) {
  for (const auto mode : {WEFT_RING_DISCARD, WEFT_RING_OVERWRITE}) {
    TestWriter writer({.subbuf_shift = 14, .mode = mode});
    writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
    const Folder own;
    const UniqueFd journal(memfd_create("journal", MFD_CLOEXEC));
    Running running(own, journal);
    ASSERT_TRUE(running.consumer->AddChannel(Definition()));
    ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 7));
    for (int i = 0; i < 200; i++) ASSERT_TRUE(writer.Write(0, 0, 0, Now(), Body(i, 0)));
    EXPECT_FALSE(running.consumer->MoveRing(1, 42, true)) << "its process lives";
    running.consumer->ProcessGone(7);
    EXPECT_FALSE(running.consumer->MoveRing(1, 43, true)) << "no such ring";
    EXPECT_TRUE(running.consumer->MoveRing(1, 42, true));
    EXPECT_TRUE(running.consumer->MoveRing(1, 42, true)) << "asked again";
    EXPECT_GT(running.consumer->Find(1)->moved_bytes(), 0U);
    ASSERT_TRUE(running.Drain());
    const auto counts = running.consumer->Find(1)->Counts();
    EXPECT_EQ(counts.delivered, 200U);
    CheckBooks(counts);
    EXPECT_EQ(Babeltrace(own.path()).size(), 200U);
  }
}

TEST_F(ConsumerTest, CountsAsLostWhatTheMemoryBudgetCannotHold) {
  TestWriter writer({.subbuf_shift = 16});
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 7));
  int written = 0;
  while (writer.Write(0, 0, 0, Now(), Body(written, 0))) written++;
  const uint64_t before = AllocatedBytes(writer);
  running.consumer->ProcessGone(7);
  const UniqueFd file(memfd_create("journal", MFD_CLOEXEC));
  auto chunks = Journal::Open(testing::Duplicate(file));
  ASSERT_TRUE(chunks);
  RingMover mover(*chunks);
  Channel& channel = *running.consumer->Find(1);
  EXPECT_FALSE(channel.MoveRing(42, mover, 0, false)) << "it may not be lost";
  EXPECT_EQ(channel.Counts().in_flight, static_cast<uint64_t>(written));
  EXPECT_TRUE(channel.MoveRing(42, mover, 0, true));
  EXPECT_LT(AllocatedBytes(writer), before / 4);
  ASSERT_TRUE(running.Drain());
  const auto counts = channel.Counts();
  EXPECT_EQ(counts.recorded, static_cast<uint64_t>(written));
  EXPECT_EQ(counts.lost,
            (std::map<std::string, uint64_t>{{"consumer/memory", static_cast<uint64_t>(written)}}));
  EXPECT_EQ(counts.corrupt_rings, 0U);
  CheckBooks(counts);
  for (const Channel::Ended& ended : channel.TakeEnded()) EXPECT_FALSE(ended.corrupt);
}

// Without a journal the reader begins at the tail: no record comes twice, and the books are right
// from there on. No count has the records before the oldest sub-buffer: the reader cannot tell
// whether they were taken or overwritten.
TEST_F(ConsumerTest, AReaderOfAnOverwriteRingWithoutItsJournalGoesOnAtTheTail) {
  for (const int behind : {0, 10, 100, 5000}) {
    TestWriter writer({.mode = WEFT_RING_OVERWRITE});
    writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
    uint64_t number = 0;
    uint64_t first = 0;
    const auto write = [&](int events) {
      for (int i = 0; i < events; i++) {
        ASSERT_TRUE(writer.Write(0, 0, 0, Now(), Body(number++, 0)));
      }
    };
    {
      const Folder before;
      const UniqueFd gone(memfd_create("journal", MFD_CLOEXEC));
      Running running(before, gone);
      ASSERT_TRUE(running.consumer->AddChannel(Definition()));
      ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
      write(70);
      running.consumer->StopChannels({1});
      ASSERT_TRUE(running.RunUntil([&] { return running.consumer->Find(1)->drained(); }));
      first = running.consumer->Find(1)->Counts().delivered;
      ASSERT_EQ(first, 70U);
    }
    writer.slot(0)->closed = 0;
    write(behind);
    const Folder after;
    const UniqueFd another(memfd_create("journal", MFD_CLOEXEC));
    Running running(after, another);
    ASSERT_TRUE(running.consumer->AddChannel(Definition()));
    ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
    ASSERT_TRUE(running.Drain());
    const auto counts = running.consumer->Find(1)->Counts();
    CheckBooks(counts);
    EXPECT_EQ(counts.in_flight, 0U);
    const auto lines = Babeltrace(after.path());
    EXPECT_EQ(lines.size(), counts.delivered);
    if (behind <= 100) {
      EXPECT_EQ(counts.delivered, static_cast<uint64_t>(behind));
    }
    EXPECT_LE(counts.recorded, static_cast<uint64_t>(behind));
    for (size_t i = 0; i < lines.size(); i++) {
      ASSERT_EQ(Value(lines[i], "number"), number - lines.size() + i);
      ASSERT_GE(Value(lines[i], "number"), first);
    }
  }
}

TEST_F(ConsumerTest, CountsAsLostWhatContradictsItsDescription) {
  TestWriter writer;
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  writer.Describe(1, std::vector<uint8_t>(MakeDescription("p:bad", {"x"})));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  const std::vector<uint8_t> shorter(5);
  writer.Write(0, 0, 0, Now(), Body(1, 1));
  writer.Write(0, 0, 0, Now(), shorter);
  writer.Write(0, 9, 0, Now(), Body(1, 1));
  writer.Write(0, 0, 65535, Now(), Body(1, 1));
  writer.Write(0, 0, 0, Now(), Body(2, 2));
  ASSERT_TRUE(running.Drain());
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.delivered, 2U);
  EXPECT_EQ(counts.lost.at("consumer/malformed"), 3U);
  CheckBooks(counts);
  EXPECT_EQ(Babeltrace(folder.path()).size(), 2U);
}

TEST_F(ConsumerTest, ACorruptRingEndsAndNothingElse) {
  TestWriter bad;
  TestWriter good({.instance = 43});
  for (TestWriter* writer : {&bad, &good}) {
    writer->Describe(0, MakeDescription("p:e", {"number", "ring"}));
  }
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, bad.Fd(), 42, 1));
  ASSERT_TRUE(running.consumer->AddRing(1, good.Fd(), 43, 2));
  for (uint64_t i = 0; i < 50; i++) {
    bad.Write(0, 0, 0, Now(), Body(i, 0));
    good.Write(0, 0, 0, Now(), Body(i, 1));
  }
  // The 11th record of the bad one.
  reinterpret_cast<weft_record*>(bad.ring(0) + 32 + 10 * 32)->size = 3;
  ASSERT_TRUE(running.Drain());
  const auto counts = running.consumer->Find(1)->Counts();
  EXPECT_EQ(counts.delivered, 60U);
  EXPECT_EQ(counts.corrupt_rings, 1U);
  EXPECT_EQ(counts.lost.at("consumer/corrupt"), 40U);
  CheckBooks(counts);
  const auto ended = running.consumer->Find(1)->TakeEnded();
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].corrupt || ended[1].corrupt, true);
}

TEST_F(ConsumerTest, ARecordFromTheFutureDoesNotStopItsRing) {
  TestWriter writer;
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
  writer.Write(0, 0, 0, ~uint64_t{0}, Body(0, 0));
  writer.Write(0, 0, 0, Now(), Body(1, 0));
  ASSERT_TRUE(running.Drain());
  EXPECT_EQ(Babeltrace(folder.path()).size(), 2U);
}

TEST_F(ConsumerTest, ARingEndsWithItsProcessAndIsForgotten) {
  TestWriter writer;
  writer.Describe(0, MakeDescription("p:e", {"number", "ring"}));
  Running running(folder, journal);
  ASSERT_TRUE(running.consumer->AddChannel(Definition()));
  ASSERT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 7));
  for (uint64_t i = 0; i < 20; i++) writer.Write(0, 0, 0, Now(), Body(i, 0));
  running.consumer->ProcessGone(7);
  Channel* channel = running.consumer->Find(1);
  std::vector<Channel::Ended> ended;
  ASSERT_TRUE(running.RunUntil([&] {
    ended = channel->TakeEnded();
    return !ended.empty();
  }));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].instance, 42U);
  EXPECT_FALSE(ended[0].corrupt);
  running.consumer->ForgetRing(1, 42);
  const auto counts = channel->Counts();
  EXPECT_EQ(counts.recorded, 20U);
  EXPECT_EQ(counts.delivered, 20U);
  EXPECT_EQ(counts.rings, 1U);
  CheckBooks(counts);
}

// Describes an event with a number, a string, a sequence of text and an array of text.
std::vector<uint8_t> DescriptionOfTexts() {
  EventDescription event{.name = "p:texts"};
  event.fields = {{.name = "number", .kind = FieldKind::kInteger, .elem_size = 8},
                  {.name = "string", .kind = FieldKind::kString, .elem_size = 1},
                  {.name = "sequence",
                   .kind = FieldKind::kSequence,
                   .flags = WEFT_FIELD_TEXT,
                   .elem_size = 1,
                   .length_size = 4},
                  {.name = "array",
                   .kind = FieldKind::kArray,
                   .flags = WEFT_FIELD_TEXT,
                   .elem_size = 1,
                   .count = 4}};
  event.ComputeLayout();
  return event.Encode().value();
}

// babeltrace2 2.0 shows an empty text as the text of an earlier event of the same class.
TEST_F(ConsumerTest, EmptyTextsAreEmptyInBabeltrace) {
  TestWriter writer;
  auto running = std::make_unique<Running>(folder, journal);
  std::vector<std::string> expected;
  std::mt19937 random(5);
  const auto text = [&random](const char* what) {
    return random() % 2 == 0 ? std::string() : what + std::to_string(random() % 10);
  };
  for (uint64_t number = 0; number < 400; number++) {
    if (number == 200) {  // the classes are known again
      ASSERT_TRUE(running->consumer->FlushAll());
      running = std::make_unique<Running>(folder, journal);
    }
    if (number % 200 == 0) {
      ASSERT_TRUE(running->consumer->AddChannel(Definition()));
      ASSERT_TRUE(running->consumer->AddRing(1, writer.Fd(), 42, 1));
      writer.Describe(static_cast<uint16_t>(number / 200), DescriptionOfTexts());
    }
    const std::string string = text("s"), sequence = text("q"), array = text("a");
    ctf::RecordBuilder body;
    body.Fixed(number).String(string).String(sequence);
    body.Segment(array + std::string(4 - array.size(), '\0'));
    const auto bytes = body.body();
    ASSERT_TRUE(writer.Write(0, static_cast<uint16_t>(number / 200), random() % 2, Now(),
                             {bytes.begin(), bytes.end()}));
    expected.push_back("number = " + std::to_string(number) + ", string = \"" + string +
                       "\", _sequence_length = " + std::to_string(sequence.size()) +
                       ", sequence = \"" + sequence + "\", array = \"" + array + "\" }");
    if (number % 10 == 0) running->consumer->Round();
  }
  ASSERT_TRUE(running->Drain());
  std::string errors;
  const auto lines = Babeltrace(folder.path(), &errors);
  EXPECT_EQ(errors, "");
  ASSERT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < lines.size(); i++) {
    EXPECT_TRUE(lines[i].ends_with(expected[i])) << lines[i] << "\n" << expected[i];
  }
  // One class for each of eight sets of empty texts.
  const std::string metadata = ctf::ReadAll((folder.path() / "ust" / "metadata").string());
  size_t classes = 0;
  for (size_t at = 0; (at = metadata.find("p:texts", at)) != std::string::npos; at++) classes++;
  EXPECT_EQ(classes, 8U);
}

class CombinationsOfEmptyTexts : public ConsumerTest {
 protected:
  // Writes a record for each of the first combinations of empty texts of an event with `texts` of
  // them, twice, and returns the notices.
  std::vector<std::string> Notices(size_t texts, size_t combinations,
                                   const std::string& ctf_version = "1.8") {
    TestWriter writer;
    Running running(folder, journal);
    ipc::ChannelDefinition definition = Definition();
    definition.ctf_version = ctf_version;
    EXPECT_TRUE(running.consumer->AddChannel(definition));
    EXPECT_TRUE(running.consumer->AddRing(1, writer.Fd(), 42, 1));
    EventDescription event{.name = "p:many"};
    for (size_t i = 0; i < texts; i++) {
      event.fields.push_back(
          {.name = "t" + std::to_string(i), .kind = FieldKind::kString, .elem_size = 1});
    }
    event.ComputeLayout();
    writer.Describe(0, event.Encode().value());
    for (size_t turn = 0; turn < 2 * combinations; turn++) {
      ctf::RecordBuilder body;
      // The texts from the last on are empty in turn.
      for (size_t i = 0; i < texts; i++) {
        const size_t bit = texts - 1 - i;
        body.String(bit < 20 && ((turn % combinations) >> bit & 1) != 0 ? "" : "x");
      }
      const auto bytes = body.body();
      EXPECT_TRUE(writer.Write(0, 0, 0, Now(), {bytes.begin(), bytes.end()}));
      running.consumer->Round();
    }
    EXPECT_TRUE(running.Drain());
    return running.notices;
  }
};

TEST_F(CombinationsOfEmptyTexts, BeyondTheClassesGiveOneNotice) {
  const auto notices = Notices(7, 128);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_TRUE(notices[0].starts_with("event p:many: too many of its texts ")) << notices[0];
  EXPECT_NE(notices[0].find("weft view"), std::string::npos) << notices[0];
}

TEST_F(CombinationsOfEmptyTexts, OfSixTextsGiveNoNotice) {
  EXPECT_EQ(Notices(6, 64), std::vector<std::string>());
}

TEST_F(CombinationsOfEmptyTexts, OfTextsThatShareABitGiveANotice) {
  EXPECT_EQ(Notices(65, 4).size(), 1U);
}

TEST_F(CombinationsOfEmptyTexts, GiveNoNoticeInCtf2) {
  EXPECT_EQ(Notices(7, 128, "2"), std::vector<std::string>());
}

// A consumer that is dropped at any moment, like a killed one, and made again on the same journal.
TEST_F(ConsumerTest, ARestartedConsumerLosesNothingAndRepeatsNothing) {
  std::mt19937 random(11);
  TestWriter writer({.subbuf_shift = 14});
  uint64_t number = 0;
  auto running = std::make_unique<Running>(folder, journal);
  for (int restart = 0; restart < 40; restart++) {
    ASSERT_TRUE(running->consumer->AddChannel(Definition()));
    ASSERT_TRUE(running->consumer->AddRing(1, writer.Fd(), 42, 1));
    const auto id = static_cast<uint16_t>(restart);
    writer.Describe(id, MakeDescription("p:e" + std::to_string(restart / 2), {"number", "ring"}));
    for (int i = 0; i < 300; i++) {
      if (writer.Write(random() % 2, id, random() % 3, Now(), Body(number, 0))) number++;
      if (random() % 50 == 0) {
        ::usleep(1000);
        running->consumer->Round();
      }
      if (random() % 200 == 0) {
        ASSERT_TRUE(running->consumer->FlushAll());
      }
    }
    if (restart < 39) running = std::make_unique<Running>(folder, journal);
  }
  ASSERT_TRUE(running->Drain());
  std::string errors;
  const auto lines = Babeltrace(folder.path(), &errors);
  EXPECT_EQ(errors.find("lost"), std::string::npos) << errors;
  ASSERT_EQ(lines.size(), number);
  for (size_t i = 0; i < lines.size(); i++) ASSERT_EQ(Value(lines[i], "number"), i);
  const auto counts = running->consumer->Find(1)->Counts();
  EXPECT_EQ(counts.delivered, number);
  EXPECT_EQ(counts.recorded, number);
  EXPECT_EQ(counts.in_flight, 0U);
}

}  // namespace
}  // namespace weft::consumer
