// SPDX-License-Identifier: Apache-2.0
// A hostile process against the real weft-consumer: 10^5 mutations of header (every field), slots,
// descriptions and records while they are read, memory that is no ring set, a flood of descriptors,
// silence. The consumer neither crashes nor hangs nor grows, and the events of two neighbours
// (another container, and another process of the same container) are the same, by hash, as without
// the attack. More mutations: WEFT_HOSTILE_MUTATIONS in the environment.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "node-agent/consumer/testing.h"
#include "tests/hostile/agent_double.h"
#include "tests/hostile/attacker.h"

namespace weft::hostile {
namespace {

using consumer::testing::Babeltrace;
using consumer::testing::Definition;
using consumer::testing::Folder;
using ring::testing::MakeDescription;
using ring::testing::TestWriter;

constexpr uint64_t kGood = 1;  // channels, each of a container of its own
constexpr uint64_t kBad = 2;
constexpr uint64_t kEvents = 20'000;  // of each neighbour
#ifdef WEFT_SANITIZED
constexpr uint64_t kFreedButKept = 256 << 10;  // KiB: AddressSanitizer's quarantine
#else
constexpr uint64_t kFreedButKept = 0;
#endif
// KiB: copy buffers and packets, see consumer/limits.h.
constexpr uint64_t kMaxGrowth = (96 << 10) + kFreedButKept;
constexpr int kWindow = 16;  // ring sets that are attacked at once

int Mutations() {
  const char* text = std::getenv("WEFT_HOSTILE_MUTATIONS");
  return text == nullptr ? 100'000 : std::atoi(text);
}

// A well-behaved process: tries again what was discarded, so that its events are always the same.
class Neighbour {
 public:
  explicit Neighbour(uint64_t instance, uint64_t channel)
      : writer_({.subbuf_shift = 14, .channel_id = channel, .instance = instance}) {
    writer_.Describe(0, MakeDescription("shop:order", {"number", "price"}));
  }
  void Write(uint64_t count) {
    ring::MachineTicks ticks(WEFT_CLOCK_TSC);
    for (; count > 0 && number_ < kEvents; count--) {
      std::vector<uint8_t> body(16);
      const uint64_t price = number_ * 2654435761U;
      std::memcpy(body.data(), &number_, 8);
      std::memcpy(body.data() + 8, &price, 8);
      if (!writer_.Write(number_ % 2, 0, 0, ticks.Ticks(), body)) return;
      number_++;
    }
  }
  [[nodiscard]] bool done() const { return number_ == kEvents; }
  [[nodiscard]] UniqueFd Fd() const { return writer_.Fd(); }

 private:
  TestWriter writer_;
  uint64_t number_ = 0;
};

// Hash and count of a trace's shop events, without their times.
struct Digest {
  size_t hash = 0;
  size_t events = 0;
  bool operator==(const Digest&) const = default;
};

Digest DigestOf(const std::filesystem::path& path) {
  Digest digest;
  std::string all;
  for (const std::string& line : Babeltrace(path)) {
    const size_t at = line.find("shop:order");
    if (at == std::string::npos) continue;
    all += line.substr(at) + "\n";
    digest.events++;
  }
  digest.hash = std::hash<std::string>{}(all);
  return digest;
}

class HostileTest : public ::testing::Test {
 protected:
  HostileTest() : agent(folder.Open()), other(1, kGood), same(2, kBad) {}

  void SetUp() override {
    ASSERT_TRUE(agent.AddChannel(Definition(kGood, "good")));
    ASSERT_TRUE(agent.AddChannel(Definition(kBad, "bad")));
    agent.AddRing(kGood, 1, 1, other.Fd());
    agent.AddRing(kBad, 2, 2, same.Fd());
    before = agent.resident();
  }

  // Lets the neighbours write on, and watches the consumer's memory.
  void Pass() {
    other.Write(50);
    same.Write(50);
    agent.Pump();
    most = std::max(most, agent.resident());
  }

  void Finish() {
    while (!(other.done() && same.done()) && agent.alive()) Pass();
    ASSERT_TRUE(agent.alive()) << "the consumer died";
    ASSERT_TRUE(agent.StopAndDrain(kBad)) << "the attacked channel does not end";
    ASSERT_TRUE(agent.StopAndDrain(kGood));
    const ipc::ChannelCounts good = agent.counts(kGood);
    EXPECT_EQ(good.delivered, kEvents);
    EXPECT_TRUE(good.lost.empty());
    EXPECT_EQ(good.corrupt_rings, 0U);
    EXPECT_EQ(agent.counts(kBad).in_flight, 0U);
    EXPECT_EQ(agent.End(), 0);
    EXPECT_LT(most, before + kMaxGrowth) << "KiB";
    EXPECT_EQ(DigestOf(folder.path() / "good"), Expected());
    EXPECT_EQ(DigestOf(folder.path() / "bad"), Expected());
  }

  // Returns the neighbours' traces without an attack. A run of its own makes them once.
  static Digest Expected() {
    static const Digest digest = [] {
      Folder folder;
      AgentDouble agent(folder.Open());
      Neighbour alone(1, kGood);
      EXPECT_TRUE(agent.AddChannel(Definition(kGood, "good")));
      agent.AddRing(kGood, 1, 1, alone.Fd());
      while (!alone.done() && agent.alive()) {
        alone.Write(50);
        agent.Pump();
      }
      EXPECT_TRUE(agent.StopAndDrain(kGood));
      EXPECT_EQ(agent.End(), 0);
      return DigestOf(folder.path() / "good");
    }();
    EXPECT_EQ(digest.events, kEvents);
    return digest;
  }

  Folder folder;
  AgentDouble agent;
  Neighbour other;  // another container
  Neighbour same;   // the attacker's container
  uint64_t before = 0;
  uint64_t most = 0;
};

TEST_F(HostileTest, MutationsWhileTheConsumerReads) {
  const int mutations = Mutations();
  const int rings = std::max(64, mutations / 250);
  std::vector<std::unique_ptr<TestWriter>> targets;
  for (int i = 0; i < rings; i++) {
    targets.push_back(std::make_unique<TestWriter>(ring::testing::WriterOptions{
        .mode = i % 3 == 0 ? 1U : 0U, .channel_id = kBad, .instance = 100 + uint64_t(i)}));
    targets.back()->Describe(0, MakeDescription("evil:a", {"x", "y"}));
    targets.back()->Describe(1, MakeDescription("evil:b" + std::to_string(i % 10)));
  }
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  UniqueFd from_attacker(pipe_fds[0]);
  UniqueFd to_test(pipe_fds[1]);
  const pid_t attacker = ::fork();
  ASSERT_GE(attacker, 0);
  if (attacker == 0) {
    Attacker evil(1);
    for (int ring = 0; ring < rings; ring++) {
      // Asks the test to hand this ring to the consumer; goes on when it did.
      char byte = 0;
      (void)::write(to_test.get(), &byte, 1);
      const int oldest = std::max(0, ring - kWindow);
      for (int i = 0; i < mutations / rings; i++) {
        TestWriter& target = *targets[static_cast<size_t>(oldest + i % (ring - oldest + 1))];
        evil.Write(target, 3);
        // Every other ring set lives on, its records are read.
        if ((oldest + i % (ring - oldest + 1)) % 2 == 0) {
          evil.Mutate(target);
        } else {
          evil.MutateGently(target);
        }
        if (i % 16 == 0) ::usleep(300);
      }
    }
    ::_exit(0);
  }
  to_test.reset();
  size_t given = 0;
  for (char byte; ::read(from_attacker.get(), &byte, 1) == 1;) {
    agent.AddRing(kBad, 100 + given, 3, targets[given]->Fd());
    given++;
    Pass();
    ASSERT_TRUE(agent.alive()) << "the consumer died";
  }
  int status = -1;
  ::waitpid(attacker, &status, 0);
  EXPECT_EQ(status, 0) << "the attacker did not do its work";
  EXPECT_EQ(given, static_cast<size_t>(rings));
  Finish();
  // The attack was one: rings were found out, others were read, and records of theirs thrown away.
  const ipc::ChannelCounts bad = agent.counts(kBad);
  EXPECT_GT(agent.rings_corrupt(), given / 4);
  EXPECT_GT(bad.delivered, kEvents + given);
  EXPECT_GT(bad.lost.at("consumer/malformed"), given);
}

TEST_F(HostileTest, AHeaderThatChangesWhileItIsRead) {
  TestWriter ring({.channel_id = kBad, .instance = 7});
  ring.Describe(0, MakeDescription("evil:a", {"x", "y"}));
  const pid_t attacker = ::fork();
  if (attacker == 0) {
    Attacker evil(3);
    for (;;) {
      evil.MutateHeader(ring);
      evil.Write(ring, 1);
      Attacker::RestoreHeader(ring);
    }
  }
  // Each is opened and checked anew, until one passes and then on.
  for (uint64_t i = 0; i < 2000; i++) {
    agent.AddRing(kBad, 1000 + i, 3, ring.Fd());
    if (i % 20 == 0) Pass();
  }
  Finish();
  EXPECT_GT(agent.rings_corrupt(), 0U);
  EXPECT_GE(agent.counts(kBad).rings, 2U) << "the neighbour's, and this one";
  ::kill(attacker, SIGKILL);
  ::waitpid(attacker, nullptr, 0);
}

// Returns a word of the reason for which the consumer must refuse that kind.
const char* ReasonOf(Impostor kind) {
  switch (kind) {
    case Impostor::kUnsealed:
    case Impostor::kHalfSealed:
    case Impostor::kDevice:
      return "sealed";
    case Impostor::kTruncated:
      return "ring";  // of whatever the shorter memory lacks
    case Impostor::kGiant:
      return "total_size";
    case Impostor::kHugePages:
      return "tmpfs";
    case Impostor::kEmpty:
      return "header";
  }
  return "";
}

TEST_F(HostileTest, RefusesEveryKindOfMemoryThatIsNoRingSet) {
  constexpr int kOfEachKind = 50;
  Attacker evil(2);
  uint64_t instance = 1000;
  std::map<Impostor, std::vector<uint64_t>> sent;  // instances
  for (int i = 0; i < kOfEachKind; i++) {
    for (const Impostor kind : kImpostors) {
      UniqueFd fd = evil.MakeImpostor(kind, kBad);
      if (!fd) continue;
      agent.AddRing(kBad, ++instance, 3, std::move(fd));
      sent[kind].push_back(instance);
      Pass();
    }
  }
  Finish();
  size_t all = 0;
  for (const Impostor kind : kImpostors) {
    const std::string name = "kind " + std::to_string(static_cast<int>(kind));
    // Kernels may lack hugetlbfs, and nothing else.
    const bool made = kind != Impostor::kHugePages || !sent[kind].empty();
    EXPECT_EQ(sent[kind].size(), made ? kOfEachKind : 0) << name;
    all += sent[kind].size();
    for (const uint64_t one : sent[kind]) {
      const ipc::RingDone* done = agent.done(kBad, one);
      ASSERT_NE(done, nullptr) << name;
      EXPECT_TRUE(done->corrupt) << name;
      EXPECT_NE(done->reason.find(ReasonOf(kind)), std::string::npos) << name << done->reason;
    }
  }
  EXPECT_EQ(agent.rings_corrupt(), all);
  EXPECT_EQ(agent.counts(kBad).rings, 1U) << "the neighbour's";
}

// A change of a sound header, and a word of the reason for which it is refused; null: the field is
// only a claim, or not known to this reader, and the ring set is read.
struct HeaderChange {
  const char* reason;
  void (*change)(weft_ring_header&);
};

constexpr HeaderChange kHeaderChanges[] = {
    {"magic", [](weft_ring_header& h) { h.magic ^= 1; }},
    {"major", [](weft_ring_header& h) { h.major++; }},
    {nullptr, [](weft_ring_header& h) { h.minor = 0xffff; }},
    {"header_size", [](weft_ring_header& h) { h.header_size -= 8; }},
    {"header_size", [](weft_ring_header& h) { h.header_size += 4; }},
    {"header_size", [](weft_ring_header& h) { h.header_size = 1U << 20; }},
    {nullptr, [](weft_ring_header& h) { h.header_size += 8; }},
    {"features", [](weft_ring_header& h) { h.features = 1U << 31; }},
    {"total_size", [](weft_ring_header& h) { h.total_size += 8; }},
    {"total_size", [](weft_ring_header& h) { h.total_size = ~uint64_t{0}; }},
    {"slots_offset", [](weft_ring_header& h) { h.slots_offset = 8; }},
    {"slots_offset", [](weft_ring_header& h) { h.slots_offset = ~uint64_t{7}; }},
    {"aligned", [](weft_ring_header& h) { h.slots_offset += 4; }},
    {"descriptions_offset", [](weft_ring_header& h) { h.descriptions_offset -= 8; }},
    {"descriptions_offset", [](weft_ring_header& h) { h.descriptions_offset = h.total_size + 8; }},
    {"aligned", [](weft_ring_header& h) { h.descriptions_offset += 1; }},
    {"descriptions_size", [](weft_ring_header& h) { h.descriptions_size = ~uint64_t{0}; }},
    {"data_offset", [](weft_ring_header& h) { h.descriptions_size += 8192; }},
    {"data_offset", [](weft_ring_header& h) { h.data_offset = h.descriptions_offset; }},
    {"data_offset", [](weft_ring_header& h) { h.data_offset += 8; }},
    {"aligned", [](weft_ring_header& h) { h.data_offset += 2; }},
    {"slot_count", [](weft_ring_header& h) { h.slot_count = 0; }},
    {"slot_count", [](weft_ring_header& h) { h.slot_count = WEFT_RING_MAX_SLOTS + 1; }},
    {"descriptions_offset", [](weft_ring_header& h) { h.slot_count++; }},
    {"slot_size", [](weft_ring_header& h) { h.slot_size -= 8; }},
    {"slot_size", [](weft_ring_header& h) { h.slot_size = 1U << 20; }},
    {"slot_shift", [](weft_ring_header& h) { h.slot_shift = h.subbuf_shift; }},
    {"slot_shift", [](weft_ring_header& h) { h.slot_shift = 64; }},
    {"subbuf_shift", [](weft_ring_header& h) { h.subbuf_shift = 11; }},
    {"subbuf_shift", [](weft_ring_header& h) { h.subbuf_shift = ~uint32_t{0}; }},
    {"data_offset", [](weft_ring_header& h) { h.slot_shift++; }},
    {"mode", [](weft_ring_header& h) { h.mode = 2; }},
    {"clock", [](weft_ring_header& h) { h.clock = 0; }},
    {"clock", [](weft_ring_header& h) { h.clock = 3; }},
    {"channel", [](weft_ring_header& h) { h.channel_id = kGood; }},
    {nullptr, [](weft_ring_header& h) { h.instance = ~uint64_t{0}; }},
    {nullptr, [](weft_ring_header& h) { h.pid = ~uint32_t{0}; }},
    {"reserved", [](weft_ring_header& h) { h.reserved0 = 1; }},
    {nullptr, [](weft_ring_header& h) { h.created = ~uint64_t{0}; }},
    {nullptr, [](weft_ring_header& h) { h.created = 0; }},
    {"descriptions_used", [](weft_ring_header& h) { h.descriptions_used = 4; }},
    {"descriptions_used", [](weft_ring_header& h) { h.descriptions_used = ~uint64_t{7}; }},
    {"reserved", [](weft_ring_header& h) { h.reserved[0] = 1; }},
    {"reserved", [](weft_ring_header& h) { h.reserved[3] = uint64_t{1} << 63; }},
};

TEST_F(HostileTest, RefusesEveryHeaderThatContradictsItselfAndNoOther) {
  constexpr uint64_t kRounds = 5;
  const size_t changes = std::size(kHeaderChanges);
  ring::MachineTicks ticks(WEFT_CLOCK_TSC);
  std::vector<std::unique_ptr<TestWriter>> writers;  // the kernel may use an inode number again
  for (uint64_t i = 0; i < kRounds * changes; i++) {
    writers.push_back(std::make_unique<TestWriter>(
        ring::testing::WriterOptions{.channel_id = kBad, .instance = 1000 + i}));
    // Writes a record, so that descriptions are looked at.
    writers.back()->Describe(0, MakeDescription("evil:a"));
    ASSERT_TRUE(writers.back()->Write(0, 0, 0, ticks.Ticks(), {}));
    kHeaderChanges[i % changes].change(*writers.back()->header());
    agent.AddRing(kBad, 1000 + i, 3, writers.back()->Fd());
    Pass();
  }
  Finish();
  uint64_t refused = 0;
  for (uint64_t i = 0; i < kRounds * changes; i++) {
    const char* reason = kHeaderChanges[i % changes].reason;
    const ipc::RingDone* done = agent.done(kBad, 1000 + i);
    ASSERT_NE(done, nullptr) << i % changes;
    EXPECT_EQ(done->corrupt, reason != nullptr) << i % changes << " " << done->reason;
    EXPECT_FALSE(done->refused) << i % changes;
    if (reason == nullptr) continue;
    EXPECT_NE(done->reason.find(reason), std::string::npos) << i % changes << " " << done->reason;
    refused++;
  }
  EXPECT_EQ(agent.rings_corrupt(), refused);
  EXPECT_EQ(agent.counts(kBad).delivered, kEvents + kRounds * changes - refused);
}

TEST_F(HostileTest, AFloodOfDescriptors) {
  TestWriter one({.channel_id = kBad});
  const size_t descriptors = agent.descriptors();
  for (int i = 0; i < 3000; i++) {
    // Sends mostly one memory file again and again, every tenth time another one.
    agent.AddRing(kBad, static_cast<uint64_t>(i), 3,
                  i % 10 == 0 ? UniqueFd(memfd_create("x", MFD_CLOEXEC)) : one.Fd());
    if (i % 50 == 0) Pass();
  }
  EXPECT_TRUE(agent.WaitUntil([&] { return agent.descriptors() < descriptors + 64; }))
      << agent.descriptors();
  Finish();
  EXPECT_EQ(agent.rings_corrupt(), 300U) << "each that is no ring set";
  EXPECT_EQ(agent.counts(kBad).rings, 2U) << "the neighbour's, and this one";
}

// A writer that holds the atomic slot's lock for ever, ignores `closed`, and never comes to an end.
TEST_F(HostileTest, SilenceAndTalkAfterTheEnd) {
  TestWriter silent({.channel_id = kBad, .instance = 3});
  silent.slot(2)->lock = 1;
  silent.slot(2)->last_time = 1;
  TestWriter talker({.mode = WEFT_RING_OVERWRITE, .channel_id = kBad, .instance = 4});
  for (TestWriter* writer : {&silent, &talker}) {
    writer->Describe(0, MakeDescription("evil:a", {"x"}));
    agent.AddRing(kBad, writer->header()->instance, 3, writer->Fd());
  }
  std::vector<uint8_t> body(8);
  silent.Write(2, 0, 0, 1, body);
  const pid_t attacker = ::fork();
  if (attacker == 0) {
    for (;;) {
      talker.slot(0)->closed = 0;
      talker.Write(0, 0, 0, 5, body);
    }
  }
  while (!(other.done() && same.done()) && agent.alive()) Pass();
  Finish();
  ::kill(attacker, SIGKILL);
  ::waitpid(attacker, nullptr, 0);
}

}  // namespace
}  // namespace weft::hostile
