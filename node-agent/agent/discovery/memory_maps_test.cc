// SPDX-License-Identifier: Apache-2.0
// Lines of /proc/PID/maps, and opening what they name.
#include "node-agent/agent/discovery/memory_maps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace weft::agent {
namespace {

TEST(MemoryMaps, ALineIsTakenApart) {
  const auto m = ParseMapping(
      "7f9f343a2000-7f9f347b3000 r--s 00001000 fe:1f 529939                     /memfd:weft-ctl "
      "(deleted)");
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(m->start, 0x7f9f343a2000u);
  EXPECT_EQ(m->end, 0x7f9f347b3000u);
  EXPECT_EQ(m->device, makedev(0xfe, 0x1f));
  EXPECT_EQ(m->inode, 529939u);
  EXPECT_EQ(m->name, "/memfd:weft-ctl (deleted)");
  const auto anonymous = ParseMapping("00400000-00401000 rw-p 00000000 00:00 0 ");
  ASSERT_TRUE(anonymous.has_value());
  EXPECT_EQ(anonymous->inode, 0u);
  EXPECT_EQ(anonymous->name, "");
}

TEST(MemoryMaps, RefusesTextThatIsNoLine) {
  for (const char* line :
       {"", "-", "12", "12-", "12-34", "12-34 ", "12-34 rw-s", "12-34 rw-s ", "12-34 rw-s 0 0:0",
        "12-34 rw-s 0 0 1", "12-34 rw-s zz 0:0 1", "12-34 rw-s 0 0:0 x",
        "112233445566778899-34 rw-s 0 0:0 1", "12-34 rw-s 0 0:0 99999999999999999999"})
    EXPECT_FALSE(ParseMapping(line).has_value()) << line;
}

class MappedMemory : public testing::Test {
 protected:
  void SetUp() override {
    const UniqueFd fd(memfd_create("weft-maps-test", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(fd.get(), kBytes), 0);
    memory_ = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd.get(), 0);
    ASSERT_NE(memory_, MAP_FAILED);
    const auto all = ReadMappings(getpid(), SIZE_MAX);
    ASSERT_TRUE(all.has_value());
    for (const Mapping& m : *all)
      if (m.start == reinterpret_cast<uintptr_t>(memory_)) mapping_ = m;
    EXPECT_EQ(mapping_.name, "/memfd:weft-maps-test (deleted)");
    if (geteuid() != 0) GTEST_SKIP() << "map_files needs root";
  }
  void TearDown() override { munmap(memory_, kBytes); }

  static constexpr size_t kBytes = 8192;
  void* memory_ = nullptr;
  Mapping mapping_;
};

TEST_F(MappedMemory, IsOpenedThoughEveryDescriptorIsClosed) {
  const auto fd = OpenMapping(getpid(), mapping_);
  if (!fd && fd.error().code == ErrorCode::kPermission) GTEST_SKIP() << fd.error().message;
  ASSERT_TRUE(fd.has_value()) << fd.error().message;
  ASSERT_EQ(pwrite(fd->get(), "weft", 4, 4096), 4);
  EXPECT_EQ(std::string_view(static_cast<const char*>(memory_) + 4096, 4), "weft");
}

TEST_F(MappedMemory, RefusesOtherMemoryInItsPlace) {
  Mapping other = mapping_;
  ++other.inode;
  EXPECT_FALSE(OpenMapping(getpid(), other).has_value());
  other = mapping_;
  other.device = makedev(0, 0xffff);
  EXPECT_FALSE(OpenMapping(getpid(), other).has_value());
  other = mapping_;
  other.end += 4096;
  EXPECT_FALSE(OpenMapping(getpid(), other).has_value());
}

TEST(MemoryMaps, AProcessThatIsNotThereIsAnError) {
  EXPECT_FALSE(ReadMappings(0x3fffffff, SIZE_MAX).has_value());
}

}  // namespace
}  // namespace weft::agent
