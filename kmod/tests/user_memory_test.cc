// SPDX-License-Identifier: GPL-2.0-only
// User memory that is not resident, or is none: fields read there are 0 and empty, the others are
// there, and nothing waits for it, makes it resident, or complains.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"
#include "kmod/tests/user_event.h"

namespace weft::kmod {
namespace {

constexpr size_t kPage = 4096;
constexpr std::string_view kText = "what is there";
// The text that is recorded for an address that cannot be read (lib/abi/fetch.h).
constexpr std::string_view kFault = "(fault)";

// Pages of a test's own.
class Pages {
 public:
  explicit Pages(size_t count, int file = -1, int protection = PROT_READ | PROT_WRITE,
                 off_t offset = 0)
      : bytes_(count * kPage) {
    const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
    void* map = ::mmap(nullptr, bytes_, protection, flags, file, offset);
    EXPECT_NE(map, MAP_FAILED);
    map_ = static_cast<char*>(map);
    // A huge page would be resident as a whole.
    ::madvise(map_, bytes_, MADV_NOHUGEPAGE);
  }
  ~Pages() { ::munmap(map_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  [[nodiscard]] char* page(size_t index) const { return map_ + index * kPage; }
  // Expects the page to be, or not to be, in this process's page tables, as far as the kernel tells
  // (CONFIG_PROC_PAGE_MONITOR).
  void ExpectResident(size_t index, bool expected) const {
    const UniqueFd file(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    if (!file) return;
    uint64_t word = 0;
    const auto at =
        static_cast<off_t>(reinterpret_cast<uintptr_t>(page(index)) / kPage * sizeof(word));
    EXPECT_EQ(::pread(file.get(), &word, sizeof(word), at), static_cast<ssize_t>(sizeof(word)));
    EXPECT_EQ(word >> 63 != 0, expected) << "page " << index;
  }

 private:
  size_t bytes_;
  char* map_ = nullptr;
};

class UserMemoryTest : public testing::Test {
 protected:
  // Returns the record of a call with this address.
  UserRecord Recorded(const void* address, uint64_t count = kText.size()) {
    rusage before{}, after{};
    EXPECT_EQ(Switch(recording_.session.get(), 1), 0);
    ::getrusage(RUSAGE_THREAD, &before);
    CallUserEvent(1, address, count);
    ::getrusage(RUSAGE_THREAD, &after);
    EXPECT_EQ(Switch(recording_.session.get(), 0), 0);
    EXPECT_EQ(after.ru_majflt, before.ru_majflt);
    EXPECT_EQ(after.ru_nvcsw, before.ru_nvcsw) << "it waited";
    std::vector<UserRecord> records;
    view_.DrainAll([&](uint32_t, const SeenRecord& record) {
      const UserRecord read = ReadUserRecord(record.payload);
      if (read.address == reinterpret_cast<uintptr_t>(address)) records.push_back(read);
    });
    EXPECT_EQ(view_.problem(), "");
    EXPECT_EQ(records.size(), 1U);
    if (records.empty()) return {};
    EXPECT_TRUE(records[0].whole);
    EXPECT_EQ(records[0].policy, 1U);
    EXPECT_EQ(records[0].count, count);
    return records[0];
  }

  void ExpectNothing(const void* address) {
    const UserRecord record = Recorded(address);
    EXPECT_EQ(record.word, 0U);
    EXPECT_EQ(record.bytes, 0U);
    EXPECT_EQ(record.text, kFault);
    EXPECT_TRUE(record.list.empty());
  }

  void ExpectText(const void* address) {
    const UserRecord record = Recorded(address);
    EXPECT_EQ(record.text, kText);
    EXPECT_EQ(std::string(record.list.begin(), record.list.end()), kText);
    EXPECT_EQ(std::memcmp(&record.word, kText.data(), sizeof(record.word)), 0);
    EXPECT_EQ(std::memcmp(&record.bytes, kText.data(), sizeof(record.bytes)), 0);
  }

  Recording recording_ = Record(UserEvent());
  RingView view_{recording_.ring.get()};

  void SetUp() override { ASSERT_TRUE(recording_.valid()); }
};

TEST_F(UserMemoryTest, APageThatWasNeverTouchedIsEmptyAndStaysSo) {
  const Pages pages(1);
  ExpectNothing(pages.page(0));
  pages.ExpectResident(0, false);
  std::memcpy(pages.page(0), kText.data(), kText.size());
  pages.ExpectResident(0, true);
  ExpectText(pages.page(0));
}

TEST_F(UserMemoryTest, APageThatWasGivenBackIsEmpty) {
  const Pages pages(1);
  std::memcpy(pages.page(0), kText.data(), kText.size());
  ExpectText(pages.page(0));
  ASSERT_EQ(::madvise(pages.page(0), kPage, MADV_DONTNEED), 0);
  ExpectNothing(pages.page(0));
  pages.ExpectResident(0, false);
}

TEST_F(UserMemoryTest, AFilesPageIsEmptyUntilItIsTouched) {
  const UniqueFd file(::memfd_create("weft-user-memory", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), kPage), 0);
  ASSERT_EQ(::pwrite(file.get(), kText.data(), kText.size(), 0),
            static_cast<ssize_t>(kText.size()));
  const Pages pages(2, file.get());
  ExpectNothing(pages.page(0));
  pages.ExpectResident(0, false);  // though the file's page is in memory
  EXPECT_EQ(std::string_view(pages.page(0)), kText);
  ExpectText(pages.page(0));
  ExpectNothing(pages.page(1));  // behind the file's end: a process that touches it gets a signal
}

TEST_F(UserMemoryTest, DoesNotReadAFileThatIsNotResident) {
  // The end of this program's file holds debug data that is not read at run time. To read it, a
  // guest would wait for another machine.
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  ASSERT_GT(size, 0);
  const Pages pages(1, file.get(), PROT_READ,
                    (size - 1) / static_cast<off_t>(kPage) * static_cast<off_t>(kPage));
  ExpectNothing(pages.page(0));
  pages.ExpectResident(0, false);
}

TEST_F(UserMemoryTest, NoMemoryAtAllIsEmpty) {
  const Pages none(1, -1, PROT_NONE);
  ExpectNothing(none.page(0));
  ExpectNothing(nullptr);
  ExpectNothing(reinterpret_cast<void*>(8));
  ExpectNothing(reinterpret_cast<void*>(~0ULL));
  ExpectNothing(reinterpret_cast<void*>(~0ULL - kPage));
  ExpectNothing(reinterpret_cast<void*>(1ULL << 63));
  ExpectNothing(reinterpret_cast<void*>((1ULL << 47) - kPage));
  ExpectNothing(reinterpret_cast<void*>(1ULL << 50));
}

// If a value begins in one page and goes on in one that is not there, no part of it is recorded.
TEST_F(UserMemoryTest, AValueThatIsOnlyPartlyReadableIsEmpty) {
  const Pages pages(2);
  std::memset(pages.page(0), 'x', kPage);
  char* end = pages.page(1) - 6;
  const UserRecord record = Recorded(end, 12);
  EXPECT_EQ(record.word, 0U) << "8 bytes, of which 6 are there";
  EXPECT_EQ(record.bytes, 0x78787878U) << "4 bytes, which are there";
  EXPECT_EQ(record.text, kFault);
  EXPECT_TRUE(record.list.empty());
  pages.ExpectResident(1, false);
  std::memcpy(pages.page(1) - 6, "ends.", 6);
  EXPECT_EQ(Recorded(end, 6).text, "ends.") << "what is behind its NUL need not be there";
}

// A probe that waited for this page would wait for ever: no handler answers.
TEST_F(UserMemoryTest, APageThatIsFetchedByAnotherProcessIsNotWaitedFor) {
  const UniqueFd faults(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK)));
  if (!faults && errno == ENOSYS) GTEST_SKIP() << "this kernel has no userfaultfd";
  ASSERT_TRUE(faults);
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  ASSERT_EQ(::ioctl(faults.get(), UFFDIO_API, &api), 0);
  const Pages pages(1);
  uffdio_register range{};
  range.range = {.start = reinterpret_cast<uintptr_t>(pages.page(0)), .len = kPage};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  ASSERT_EQ(::ioctl(faults.get(), UFFDIO_REGISTER, &range), 0);
  ExpectNothing(pages.page(0));
  uffd_msg message{};
  EXPECT_EQ(::read(faults.get(), &message, sizeof(message)), -1) << "it was asked for";
}

// An array of buffers with their contents.
class PartsTest : public testing::Test {
 protected:
  PartsRecord Recorded(const iovec* parts, uint64_t count, int64_t most = kUserText) {
    EXPECT_EQ(Switch(recording_.session.get(), 1), 0);
    CallUserEvent(static_cast<uint64_t>(most), parts, count);
    EXPECT_EQ(Switch(recording_.session.get(), 0), 0);
    std::vector<PartsRecord> records;
    view_.DrainAll([&](uint32_t, const SeenRecord& record) {
      records.push_back(ReadPartsRecord(record.payload));
    });
    EXPECT_EQ(view_.problem(), "");
    EXPECT_EQ(records.size(), 1U);
    if (records.empty()) return {};
    EXPECT_TRUE(records[0].whole);
    return records[0];
  }
  static iovec Part(const char* text) { return {const_cast<char*>(text), std::strlen(text)}; }

  Recording recording_ = Record(PartsEvent());
  RingView view_{recording_.ring.get()};

  void SetUp() override { ASSERT_TRUE(recording_.valid()); }
};

using Lengths = std::vector<uint64_t>;

TEST_F(PartsTest, AreReadOneBehindTheOther) {
  const std::string long_text(2 * kUserText, 'y');
  const iovec parts[] = {Part("one"), {nullptr, 0}, Part("two"), Part(long_text.c_str())};
  EXPECT_EQ(Recorded(parts, 3).lens, (Lengths{3, 0, 3}));
  EXPECT_EQ(Recorded(parts, 3).data, "onetwo");
  EXPECT_EQ(Recorded(parts, 4).lens, (Lengths{3, 0, 3, long_text.size()}));
  EXPECT_EQ(Recorded(parts, 4).data, "onetwo" + long_text.substr(0, kUserText - 6));
  EXPECT_EQ(Recorded(parts, 3, 4).data, "onet") << "no more than there are";
  EXPECT_EQ(Recorded(parts, 3, 3).data, "one");
  EXPECT_EQ(Recorded(parts, 3, 0).data, "");
  EXPECT_EQ(Recorded(parts, 3, -14).data, "") << "an error";
  EXPECT_EQ(Recorded(parts, 3, -14).lens, (Lengths{3, 0, 3}));
  for (const uint64_t none : {uint64_t{0}, ~uint64_t{0}}) {
    EXPECT_TRUE(Recorded(parts, none).lens.empty());
    EXPECT_EQ(Recorded(parts, none).data, "");
  }
}

TEST_F(PartsTest, ReadsTheFirstSixteenBuffers) {
  const std::vector<iovec> parts(1024, Part("ab"));
  const PartsRecord record = Recorded(parts.data(), parts.size());
  EXPECT_EQ(record.lens, Lengths(WEFT_FETCH_MAX_PARTS, 2));
  EXPECT_EQ(record.data.size(), 2 * WEFT_FETCH_MAX_PARTS);
}

TEST_F(PartsTest, EndBeforeWhatCannotBeRead) {
  const Pages pages(2);
  std::memset(pages.page(0), 'x', kPage);
  iovec parts[] = {Part("one"), {pages.page(1) - 2, 4}, Part("three")};
  EXPECT_EQ(Recorded(parts, 3).data, "one") << "half of the second one is not there";
  EXPECT_EQ(Recorded(parts, 3).lens, (Lengths{3, 4, 5}));
  EXPECT_EQ(Recorded(parts, 3, 5).data, "onexx") << "which was not asked for";
  pages.ExpectResident(1, false);
  for (void* const nowhere : {static_cast<void*>(nullptr), reinterpret_cast<void*>(1ULL << 63)}) {
    parts[1] = {nowhere, 4};
    EXPECT_EQ(Recorded(parts, 3).data, "one");
    parts[1].iov_len = 0;
    EXPECT_EQ(Recorded(parts, 3).data, "onethree");
  }
  parts[1].iov_len = ~size_t{0};
  EXPECT_EQ(Recorded(parts, 3).data, "one");
}

TEST_F(PartsTest, AnArrayThatIsOnlyPartlyThereIsReadAsFarAsItIs) {
  const Pages pages(2);
  iovec* const parts = reinterpret_cast<iovec*>(pages.page(1)) - 2;
  parts[0] = Part("one");
  parts[1] = Part("two");
  const PartsRecord record = Recorded(parts, 3);
  EXPECT_EQ(record.lens, (Lengths{3, 3}));
  EXPECT_EQ(record.data, "onetwo");
  pages.ExpectResident(1, false);
  EXPECT_TRUE(Recorded(nullptr, 3).lens.empty());
}

}  // namespace
}  // namespace weft::kmod
