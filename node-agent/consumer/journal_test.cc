// SPDX-License-Identifier: Apache-2.0
// A journal gives back the last record that was committed whole, and the events that it covers.
#include "node-agent/consumer/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include "node-agent/consumer/state.h"

namespace weft::consumer {
namespace {

UniqueFd Memory() { return UniqueFd(memfd_create("journal", MFD_CLOEXEC)); }
UniqueFd Again(const UniqueFd& fd) { return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

std::vector<uint8_t> Text(const std::string& text) { return {text.begin(), text.end()}; }

std::vector<std::string> Events(const Journal& journal) {
  std::vector<std::string> events;
  EXPECT_TRUE(journal.ReadEvents([&](Bytes bytes) -> Status {
    events.emplace_back(bytes.begin(), bytes.end());
    return {};
  }));
  return events;
}

TEST(Journal, EmptyAtFirst) {
  auto journal = Journal::Open(Memory());
  ASSERT_TRUE(journal);
  EXPECT_TRUE(journal->record().empty());
  EXPECT_TRUE(Events(*journal).empty());
}

TEST(Journal, GivesBackTheLastCommit) {
  const UniqueFd memory = Memory();
  for (int i = 0; i < 5; i++) {
    auto journal = Journal::Open(Again(memory));
    ASSERT_TRUE(journal);
    if (i > 0) {
      EXPECT_EQ(journal->record(), Text("record " + std::to_string(2 * i - 1)));
    }
    EXPECT_EQ(Events(*journal).size(), static_cast<size_t>(i));
    ASSERT_TRUE(journal->Commit(Text("record " + std::to_string(2 * i))));
    ASSERT_TRUE(journal->AppendEvent(Text("event")));
    ASSERT_TRUE(journal->Commit(Text("record " + std::to_string(2 * i + 1))));
    ASSERT_TRUE(journal->AppendEvent(Text("not committed")));
  }
}

// Tries every torn state that a SIGKILL inside the write of a record can leave.
TEST(Journal, ATornRecordLeavesTheOneBefore) {
  const std::vector<uint8_t> one(1000, 1);
  const std::vector<uint8_t> two(1000, 2);
  const std::vector<uint8_t> three(1000, 3);
  const UniqueFd before = Memory();
  const UniqueFd after = Memory();
  for (const UniqueFd* memory : {&before, &after}) {
    auto journal = Journal::Open(Again(*memory));
    ASSERT_TRUE(journal->Commit(one));
    ASSERT_TRUE(journal->Commit(two));
    if (memory == &after) {
      ASSERT_TRUE(journal->Commit(three));
    }
  }
  const uint64_t offset = uint64_t{1} << 30;  // the third record is an odd one
  std::vector<uint8_t> old_bytes(1040);
  std::vector<uint8_t> new_bytes(1040);
  ASSERT_EQ(::pread(before.get(), old_bytes.data(), old_bytes.size(), offset), 1040);
  ASSERT_EQ(::pread(after.get(), new_bytes.data(), new_bytes.size(), offset), 1040);
  for (size_t torn = 0; torn <= new_bytes.size(); torn++) {
    std::vector<uint8_t> mixed = new_bytes;
    std::copy(old_bytes.begin() + static_cast<ptrdiff_t>(torn), old_bytes.end(),
              mixed.begin() + static_cast<ptrdiff_t>(torn));
    ASSERT_EQ(::pwrite(before.get(), mixed.data(), mixed.size(), offset), 1040);
    auto journal = Journal::Open(Again(before));
    ASSERT_TRUE(journal);
    EXPECT_EQ(journal->record(), torn == new_bytes.size() || mixed == new_bytes ? three : two);
  }
}

TEST(Journal, StateSurvivesEncoding) {
  OutputRecord output{.name = "ust/uid/0/64-bit", .metadata_bytes = 99};
  ChannelRecord channel{.id = 7, .stream_class = 1, .classes = 3};
  channel.totals.delivered = 1000;
  channel.totals.lost[kLostCorrupt] = 5;
  channel.streams.push_back({.cpu = 2, .bytes = 4096, .next_sequence = 8, .discarded = 1});
  RingRecord ring{.key = {1, 2}, .instance = 3, .phase = RingPhase::kDone};
  ring.slots.push_back(
      {.slot = 4, .last_cpu = 5, .state = {6, 7, 8, 9, 2}, .discarded = {1, 2, 3}});
  channel.rings.push_back(ring);
  output.channels.push_back(channel);
  std::vector<uint8_t> bytes;
  Encode(output, bytes);
  Encode(output, bytes);
  auto decoded = DecodeOutputs(bytes);
  ASSERT_TRUE(decoded);
  ASSERT_EQ(decoded->size(), 2U);
  std::vector<uint8_t> again;
  Encode((*decoded)[0], again);
  Encode((*decoded)[1], again);
  EXPECT_EQ(again, bytes);
  for (size_t cut = 1; cut < bytes.size() / 2; cut++) {
    EXPECT_FALSE(DecodeOutputs(Bytes(bytes).first(bytes.size() - cut)));
  }
}

}  // namespace
}  // namespace weft::consumer
