// SPDX-License-Identifier: Apache-2.0
// Rings of this process, which are moved into huge pages where they can be. Rings of a program that
// writes meanwhile: tests/local/huge_pages_test.py.
#include "node-agent/agent/discovery/huge_pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "lib/base/pidfd.h"
#include "lib/ring/testing/test_writer.h"

namespace weft::agent {
namespace {

constexpr uint64_t kHuge = WEFT_HUGE_PAGE_BYTES;
constexpr int kCollapse = 25;  // MADV_COLLAPSE
constexpr uint32_t kRings = 2;
constexpr int32_t kNoProcess = 0x3fffffff;

// Memory from `offset` on, at an address that is a multiple of a huge page, or `shift` bytes after
// one.
class Mapping {
 public:
  Mapping(const UniqueFd& fd, uint64_t bytes, uint64_t shift = 0, uint64_t offset = 0)
      : bytes_(bytes + 2 * kHuge) {
    room_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto room = reinterpret_cast<uintptr_t>(room_);
    at_ = reinterpret_cast<uint8_t*>(((room + kHuge - 1) & ~(kHuge - 1)) + shift);
    EXPECT_EQ(mmap(at_, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd.get(),
                   static_cast<off_t>(offset)),
              at_);
  }
  ~Mapping() { munmap(room_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  [[nodiscard]] uint8_t* at() const { return at_; }
  // Returns the bytes that the kernel maps as huge pages.
  [[nodiscard]] uint64_t InHugePages() const {
    std::ostringstream begin;
    begin << std::hex << reinterpret_cast<uintptr_t>(at_) << "-";
    std::ifstream smaps("/proc/self/smaps");
    bool is_here = false;
    for (std::string line; std::getline(smaps, line);) {
      std::istringstream words(line);
      std::string name;
      uint64_t kilobytes = 0;
      words >> name >> kilobytes;
      if (name.contains('-')) is_here = name.starts_with(begin.str());
      if (is_here && name == "ShmemPmdMapped:") return kilobytes * 1024;
    }
    return 0;
  }

 private:
  const uint64_t bytes_;
  void* room_ = nullptr;
  uint8_t* at_ = nullptr;
};

// Returns why this machine moves nothing into huge pages; "" if it does.
std::string WhyNone(const UniqueFd& self) {
  const UniqueFd fd(memfd_create("trial", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(fd.get(), kHuge), 0);
  const Mapping trial(fd, kHuge);
  trial.at()[0] = 1;
  const iovec range{trial.at(), kHuge};
  const auto done = syscall(SYS_process_madvise, self.get(), &range, 1UL, kCollapse, 0U);
  return done >= 0 ? "" : std::strerror(errno);
}

// Returns a ring set of kRings rings of one huge page each, which begin at multiples of one.
UniqueFd MakeRingSet(uint32_t subbuf_shift = 19) {
  ring::testing::WriterOptions options{.slots = kRings, .subbuf_shift = subbuf_shift};
  options.descriptions_size -= ring::testing::TestWriter(options).made().data_offset;
  options.descriptions_size += kHuge;
  return ring::testing::TestWriter(options).Fd();
}

class HugePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNone(self_); !why.empty())
      GTEST_SKIP() << "no huge page is to be had here: " << why;
  }

  // Fills all rings of a set that is mapped here.
  static void Fill(const Mapping& mapping) {
    for (uint64_t i = 0; i < kRings * kHuge; ++i) mapping.at()[kHuge + i] = ByteAt(i);
    if (mapping.InHugePages() != 0)
      GTEST_SKIP() << "no huge page is to be had here: all shared memory is in them already";
  }
  static uint8_t ByteAt(uint64_t i) { return static_cast<uint8_t>(i ^ (i >> 12)); }

  // Asks for a ring until it is moved, since the kernel may refuse for some time.
  void MoveUntilDone(const UniqueFd& set, uint32_t slot, const Mapping& mapping) {
    for (int i = 0; i < 60'000 && mapping.InHugePages() == 0; ++i) {
      if (i % 5'000 == 0) huge_pages_.Move(set, slot, getpid(), self_);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (mapping.InHugePages() != 0) return;
    if (const std::string why = WhyNone(self_); !why.empty())
      GTEST_SKIP() << "no huge page is to be had here: " << why;
    FAIL() << "the ring was not moved";
  }

  const UniqueFd self_ = OpenPidfd(getpid());
  HugePages huge_pages_;
};

TEST_F(HugePagesTest, MovesOneRingAndKeepsWhatIsInIt) {
  const UniqueFd set = MakeRingSet();
  const Mapping mapping(set, (1 + kRings) * kHuge);
  Fill(mapping);
  if (!IsSkipped()) MoveUntilDone(set, 1, mapping);
  if (IsSkipped() || HasFailure()) return;
  // A mapping that is made now has huge pages where the memory has them.
  const Mapping other(set, kHuge, 0, kHuge);
  EXPECT_EQ(other.at()[0], ByteAt(0));
  EXPECT_EQ(other.InHugePages(), 0u) << "the ring of slot 0 was not asked for";
  uint64_t different = 0;
  for (uint64_t i = 0; i < kRings * kHuge; ++i)
    different += mapping.at()[kHuge + i] != ByteAt(i) ? 1 : 0;
  EXPECT_EQ(different, 0u);
}

TEST_F(HugePagesTest, ARingThatCannotBeMovedDoesNotKeepOthersWaiting) {
  const UniqueFd set = MakeRingSet(), not_aligned = MakeRingSet(), small = MakeRingSet(12);
  const UniqueFd no_ring_set(memfd_create("none", MFD_CLOEXEC));
  const Mapping mapping(set, (1 + kRings) * kHuge);
  const Mapping shifted(not_aligned, (1 + kRings) * kHuge, 4096);
  Fill(mapping);
  Fill(shifted);
  if (IsSkipped()) return;
  huge_pages_.Move(set, 0, kNoProcess, self_);
  huge_pages_.Move(set, kRings, getpid(), self_);
  huge_pages_.Move(set, 0, getpid(), UniqueFd());
  for (const UniqueFd* other : {&not_aligned, &small, &no_ring_set})
    huge_pages_.Move(*other, 0, getpid(), self_);
  MoveUntilDone(set, 0, mapping);
  if (IsSkipped() || HasFailure()) return;
  EXPECT_EQ(mapping.InHugePages(), kHuge);
  EXPECT_EQ(shifted.InHugePages(), 0u);
}

}  // namespace
}  // namespace weft::agent
