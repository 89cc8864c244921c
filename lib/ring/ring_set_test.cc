// SPDX-License-Identifier: Apache-2.0
// A ring set from a hostile process is refused before anything of it is used.
#include "lib/ring/ring_set.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <functional>

#include "lib/ring/testing/test_writer.h"

namespace weft::ring {
namespace {

using testing::TestWriter;
using testing::WriterOptions;

weft_ring_header ValidHeader() {
  TestWriter writer;
  return *writer.header();
}

Result<Geometry> Parse(const weft_ring_header& header, uint64_t size) {
  return ParseHeader({reinterpret_cast<const uint8_t*>(&header), sizeof(header)}, size);
}

TEST(RingSet, OpensARingSetOfTheWriter) {
  TestWriter writer({.slots = 5, .subbuf_shift = 13, .subbufs_shift = 3, .channel_id = 77});
  auto ring = RingSet::Open(writer.Fd());
  ASSERT_TRUE(ring.has_value()) << ring.error().message;
  EXPECT_EQ(ring->geometry().slot_count, 5U);
  EXPECT_EQ(ring->geometry().subbufs(), 8U);
  EXPECT_EQ(ring->geometry().subbuf_bytes(), 8192U);
  EXPECT_EQ(ring->geometry().channel_id, 77U);
  EXPECT_EQ(ring->geometry().max_record(), 2048U);
  EXPECT_EQ(ring->LoadHead(4), WEFT_HEAD_INITIAL);
}

TEST(RingSet, TheSameMemoryHasTheSameKey) {
  TestWriter writer;
  TestWriter other;
  auto a = RingSet::Open(writer.Fd());
  auto b = RingSet::Open(writer.Fd());
  auto c = RingSet::Open(other.Fd());
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->key(), b->key());
  EXPECT_NE(a->key(), c->key());
}

TEST(RingSet, GeometryAloneIsTheSameAndAsStrict) {
  TestWriter writer;
  const UniqueFd fd = writer.Fd();
  const auto geometry = ReadGeometry(fd.get());
  ASSERT_TRUE(geometry);
  const auto set = RingSet::Open(writer.Fd());
  ASSERT_TRUE(set);
  EXPECT_EQ(geometry->instance, set->geometry().instance);
  EXPECT_EQ(geometry->total_size, set->geometry().total_size);
  WriterOptions options;
  options.seals = F_SEAL_SHRINK;
  TestWriter unsealed(options);
  EXPECT_FALSE(ReadGeometry(unsealed.Fd().get()));
}

TEST(RingSet, RefusesMissingSeals) {
  const int all = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  for (const int missing : {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
    WriterOptions options;
    options.seals = all & ~missing;
    TestWriter writer(options);
    EXPECT_FALSE(RingSet::Open(writer.Fd()).has_value()) << missing;
  }
}

TEST(RingSet, RefusesOtherFiles) {
  EXPECT_FALSE(RingSet::Open(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC))).has_value());
  EXPECT_FALSE(RingSet::Open(UniqueFd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC))).has_value());
  EXPECT_FALSE(RingSet::Open(UniqueFd()).has_value());
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  UniqueFd write_end(pipe_fds[1]);
  EXPECT_FALSE(RingSet::Open(UniqueFd(pipe_fds[0])).has_value());
}

TEST(RingSet, RefusesHugetlbMemory) {
  UniqueFd fd(memfd_create("weft-ring", MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_CLOEXEC));
  if (!fd) GTEST_SKIP() << "no hugetlb here";
  ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  EXPECT_FALSE(RingSet::Open(std::move(fd)).has_value());
}

TEST(RingSet, RefusesEmptyAndShortMemory) {
  for (const off_t size : {0, 1, 151, 152}) {
    UniqueFd fd(memfd_create("weft-ring", MFD_ALLOW_SEALING | MFD_CLOEXEC));
    ASSERT_EQ(::ftruncate(fd.get(), size), 0);
    const weft_ring_header header = ValidHeader();
    ASSERT_GE(::pwrite(fd.get(), &header, static_cast<size_t>(size), 0), 0);
    ASSERT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    EXPECT_FALSE(RingSet::Open(std::move(fd)).has_value()) << size;
  }
}

TEST(RingHeader, EveryContradictionIsRefused) {
  const weft_ring_header good = ValidHeader();
  ASSERT_TRUE(Parse(good, good.total_size).has_value());
  EXPECT_FALSE(Parse(good, good.total_size + 1).has_value());
  const std::function<void(weft_ring_header&)> mistakes[] = {
      [](auto& h) { h.magic++; },
      [](auto& h) { h.major = 2; },
      [](auto& h) { h.features = 1; },
      [](auto& h) { h.header_size = 151; },
      [](auto& h) { h.header_size = 0; },
      [](auto& h) { h.header_size = 1U << 30; },
      [](auto& h) { h.slots_offset = 0; },
      [](auto& h) { h.slots_offset = ~uint64_t{0} - 7; },
      [](auto& h) { h.slots_offset++; },
      [](auto& h) { h.slot_count = 0; },
      [](auto& h) { h.slot_count = 4098; },
      [](auto& h) { h.slot_count = ~0U; },
      [](auto& h) { h.slot_size = 0; },
      [](auto& h) { h.slot_size = 127; },
      [](auto& h) { h.slot_size = 1U << 31; },
      [](auto& h) { h.subbuf_shift = 0; },
      [](auto& h) { h.subbuf_shift = 11; },
      [](auto& h) { h.subbuf_shift = ~0U; },
      [](auto& h) { h.slot_shift = 32; },
      [](auto& h) { h.slot_shift = ~0U; },
      [](auto& h) { h.slot_shift = h.subbuf_shift; },
      [](auto& h) { h.slot_shift = h.subbuf_shift + 9; },
      [](auto& h) { h.descriptions_offset = 0; },
      [](auto& h) { h.descriptions_offset = h.slots_offset; },
      [](auto& h) { h.descriptions_offset = ~uint64_t{0} - 7; },
      [](auto& h) { h.descriptions_size = ~uint64_t{0}; },
      [](auto& h) { h.descriptions_size = uint64_t{1} << 40; },
      [](auto& h) { h.data_offset = 0; },
      [](auto& h) { h.data_offset = h.descriptions_offset; },
      [](auto& h) { h.data_offset = ~uint64_t{0} - 7; },
      [](auto& h) { h.data_offset += 8; },
      [](auto& h) { h.mode = 2; },
      [](auto& h) { h.clock = 0; },
      [](auto& h) { h.clock = 3; },
      [](auto& h) { h.reserved0 = 1; },
      [](auto& h) { h.reserved[3] = 1; },
  };
  for (size_t i = 0; i < std::size(mistakes); i++) {
    weft_ring_header bad = good;
    mistakes[i](bad);
    EXPECT_FALSE(Parse(bad, bad.total_size).has_value()) << "mistake " << i;
  }
  for (const uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 62, ~uint64_t{0}}) {
    weft_ring_header bad = good;
    bad.total_size = size;
    EXPECT_FALSE(Parse(bad, size).has_value()) << size;
  }
}

// A second, independent description of the layout, as another implementation would have it.
TEST(RingLayout, GoldenBytes) {
  TestWriter writer({.slots = 2,
                     .subbuf_shift = 12,
                     .subbufs_shift = 1,
                     .channel_id = 0x1122,
                     .instance = 0x3344,
                     .descriptions_size = 4096});
  const std::vector<uint8_t> body = {0xaa, 0xbb, 0xcc};
  ASSERT_TRUE(writer.Write(0, 7, 3, 0x0102030405060708, body));
  const auto memory = writer.memory();
  const auto word = [&memory](size_t at, size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= uint64_t{memory[at + i]} << (8 * i);
    return value;
  };
  EXPECT_EQ(word(0, 4), 0x474e5257U);       // "WRNG"
  EXPECT_EQ(word(4, 2), 1U);                // major
  EXPECT_EQ(word(6, 2), 1U);                // minor
  EXPECT_EQ(word(8, 4), 152U);              // header_size
  EXPECT_EQ(word(16, 8), memory.size());    // total_size
  EXPECT_EQ(word(24, 8), 192U);             // slots_offset
  EXPECT_EQ(word(32, 8), 192U + 2 * 128U);  // descriptions_offset
  EXPECT_EQ(word(48, 8), 8192U);            // data_offset
  EXPECT_EQ(word(56, 4), 2U);               // slot_count
  EXPECT_EQ(word(60, 4), 128U);             // slot_size
  EXPECT_EQ(word(64, 4), 13U);              // slot_shift
  EXPECT_EQ(word(68, 4), 12U);              // subbuf_shift
  EXPECT_EQ(word(80, 8), 0x1122U);          // channel_id
  EXPECT_EQ(word(88, 8), 0x3344U);          // instance
  EXPECT_EQ(word(112, 8), 0U);              // descriptions_used
  // Slot 0: one record of 24 bytes behind the sub-buffer's header of 32.
  EXPECT_EQ(word(192, 8), (uint64_t{1} << 32) | 56U);
  const uint8_t record[] = {19, 0, 0, 0, 7, 0, 3, 0, 8, 7, 6, 5, 4, 3, 2, 1, 0xaa, 0xbb, 0xcc};
  EXPECT_EQ(std::memcmp(memory.data() + 8192 + 32, record, sizeof(record)), 0);
}

// The slot has five words, and a later one in a place that was free.
TEST(RingLayout, DiscardedEventsByReason) {
  TestWriter writer({.slots = 2});
  const auto memory = writer.memory();
  for (size_t reason = 0; reason < 5; reason++)
    memory[192 + 16 + 8 * reason] = static_cast<uint8_t>(reason + 1);
  memory[192 + 88] = 6;
  const auto set = RingSet::Open(writer.Fd());
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->LoadDiscarded(0), (std::array<uint64_t, 6>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(set->LoadDiscarded(1), (std::array<uint64_t, 6>{}));
}

}  // namespace
}  // namespace weft::ring
