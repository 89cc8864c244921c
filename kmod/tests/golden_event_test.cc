// SPDX-License-Identifier: GPL-2.0-only
// EVENT by its bytes alone: one call of each kind, flag and part, none made with a name of lib/abi,
// that is taken and records what it says. So do the numbers of states and contexts. A change
// that renumbers what was released fails here.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "kmod/tests/hex.h"
#include "kmod/tests/load.h"
#include "kmod/tests/ring_view.h"

namespace weft::kmod {
namespace {

// "kernel:golden" with the field "value", unsigned, of 8 bytes.
constexpr std::string_view kDescription =
    "3c 00 00 00 01 00 01 00 0d 00 00 00 0e 00 00 00 "
    "00 00 00 00 00 00 00 00 6b 65 72 6e 65 6c 3a 67 "
    "6f 6c 64 65 6e 00 16 00 00 00 01 00 08 0a 00 00 "
    "00 00 06 00 00 00 76 61 6c 75 65 00 ";

// The field is argument 0, 1, 2, 3, 7.
constexpr std::string_view kArgument0 =
    "01 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kArgument1 =
    "01 01 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kArgument2 =
    "01 02 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kArgument3 =
    "01 03 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kArgument7 =
    "01 07 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// Loads the value 16 bytes behind the address in argument 1, without fault handling.
constexpr std::string_view kTrusted =
    "01 01 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "02 00 08 02 10 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// Loads the value 104 bytes behind the address in argument 0, which may be any value: si in struct
// pt_regs.
constexpr std::string_view kSecondOfCall =
    "01 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "02 00 08 00 68 00 00 00 00 00 00 00 00 00 00 00 "
    "10 00 08 00 00 00 00 00 00 00 00 00 00 00 00 00 ";

// value == 42.
constexpr std::string_view kFilter =
    "57 46 4c 54 01 00 20 00 75 00 00 00 04 00 01 00 "
    "05 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 "
    "01 00 05 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "06 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "02 00 00 00 00 00 00 00 2a 00 00 00 00 00 00 00 "
    "10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "76 61 6c 75 65 ";

// Calls of EVENT, without the pointers at 8 (name), 40 (description), 48 (program) and 56 (filter),
// and the sizes of program and filter, which are at 68 (operations) and 72 (bytes).
constexpr std::string_view kTracepoint =
    "70 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 80 0d 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// An event of the system call 146, sched_get_priority_max.
constexpr std::string_view kSyscallEntry =
    "70 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 92 00 00 00 00 00 00 00 "
    "00 00 00 80 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kSyscallExit =
    "70 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 92 00 00 00 00 00 00 00 "
    "00 00 00 80 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// An event of the system call 159 of 32-bit programs (table 1), the compat number of the same call.
constexpr std::string_view kCompatEntry =
    "70 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 9f 00 00 00 01 00 00 00 "
    "00 00 00 80 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kKprobe =
    "70 00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 80 21 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// A byte behind the function's start: no instruction begins there.
constexpr std::string_view kKprobeAtOffset =
    "70 00 00 00 04 00 00 00 00 00 00 00 00 00 00 00 "
    "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 80 21 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kKretprobe =
    "70 00 00 00 05 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 80 21 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// A probe at offset 4096 of the file with descriptor 9, with a semaphore at 2048, as twin 1.
constexpr std::string_view kUprobe =
    "70 00 00 00 06 00 00 00 00 00 00 00 00 00 00 00 "
    "00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 80 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 09 00 00 00 00 08 00 00 00 00 00 00 "
    "01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr std::string_view kUretprobe =
    "70 00 00 00 07 00 00 00 00 00 00 00 00 00 00 00 "
    "00 10 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 80 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 09 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
// An event of the state 4, threads.
constexpr std::string_view kState =
    "70 00 00 00 08 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "3c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr size_t kName = 8, kNumber = 24, kDescriptionAt = 40, kProgramAt = 48, kFilterAt = 56;
constexpr size_t kOperations = 68, kFilterSize = 72, kFlags = 80, kTwin = 96;

// CHANNEL, without the number of contexts at 20 and the pointer to them at 24.
constexpr std::string_view kChannel =
    "40 00 00 00 00 00 00 00 02 00 00 00 10 00 00 00 "
    "0c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "07 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 ";
constexpr size_t kContextCount = 20, kContexts = 24;

constexpr const char* kFunction = "__x64_sys_sched_get_priority_max";
constexpr int kFirstPolicy = 1;          // SCHED_FIFO
constexpr uint64_t kOfFirstPolicy = 99;  // what sched_get_priority_max returns of it

template <typename T>
void Put(std::vector<uint8_t>& bytes, size_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

class GoldenEventTest : public testing::Test {
 protected:
  // Adds an event; returns its descriptor, 0 or -errno. `bytes` are the argument of the call.
  int Add(std::vector<uint8_t> bytes, std::string_view program, const char* name = nullptr,
          std::string_view filter = "") {
    const std::vector<uint8_t> description = Bytes(kDescription), operations = Bytes(program),
                               rejects = Bytes(filter);
    Put(bytes, kName, name);
    Put(bytes, kDescriptionAt, description.data());
    Put(bytes, kProgramAt, operations.data());
    Put(bytes, kOperations, static_cast<uint32_t>(operations.size() / 16));
    if (!rejects.empty()) Put(bytes, kFilterAt, rejects.data());
    Put(bytes, kFilterSize, static_cast<uint32_t>(rejects.size()));
    const int made = Control(ring_.get(), 0xc070f720U, bytes.data());
    if (made > 0) events_.emplace_back(made);
    return made;
  }
  int Add(std::string_view bytes, std::string_view program, const char* name = nullptr,
          std::string_view filter = "") {
    return Add(Bytes(bytes), program, name, filter);
  }

  // Returns the values that were recorded while `run` ran, sorted.
  template <typename Do>
  std::vector<uint64_t> Values(const Do& meanwhile) {
    EXPECT_EQ(Switch(session_.get(), 1), 0);
    meanwhile();
    EXPECT_EQ(Switch(session_.get(), 0), 0);
    std::vector<uint64_t> values;
    view_.DrainAll([&](uint32_t, const SeenRecord& r) { values.push_back(r.Field(0)); });
    EXPECT_EQ(view_.problem(), "");
    std::ranges::sort(values);
    return values;
  }

  UniqueFd device_ = OpenDevice();
  UniqueFd session_ = OpenSession(device_.get());
  UniqueFd ring_ = OpenRing(session_.get());
  RingView view_{ring_.get()};
  std::vector<UniqueFd> events_;
};

using Numbers = std::vector<uint64_t>;

void CallWith(uint64_t second) { ::syscall(146, kFirstPolicy, second); }

TEST_F(GoldenEventTest, Kind1IsATracepoint) {
  ASSERT_GT(Add(kTracepoint, kTrusted, "itimer_state"), 0);
  EXPECT_EQ(Values([] { Sources()[0].emit(77); }), Numbers{77});
}

TEST_F(GoldenEventTest, Kind2IsASystemCallsEntry) {
  ASSERT_GT(Add(kSyscallEntry, kArgument1), 0);
  EXPECT_EQ(Values([] { CallWith(78); }), Numbers{78});
}

TEST_F(GoldenEventTest, Table1IsThatOf32Bits) {
  ASSERT_GT(Add(kCompatEntry, kArgument1), 0);
  EXPECT_EQ(Values([] {
              CallWith(1);
              // Makes the call through the gate of 32-bit programs, with their numbers and
              // registers.
              long result = 159;
              asm volatile("int $0x80"
                           : "+a"(result)
                           : "b"(kFirstPolicy), "c"(3L)
                           : "memory", "r8", "r9", "r10", "r11");
              EXPECT_EQ(result, long{kOfFirstPolicy});
            }),
            Numbers{3});
}

TEST_F(GoldenEventTest, Kind3IsASystemCallsExit) {
  ASSERT_GT(Add(kSyscallExit, kArgument7), 0);
  EXPECT_EQ(Values([] { CallWith(1); }), Numbers{kOfFirstPolicy});
}

TEST_F(GoldenEventTest, Kind4IsAnInstructionOfAFunction) {
  ASSERT_GT(Add(kKprobe, kSecondOfCall, kFunction), 0);
  EXPECT_EQ(Values([] { CallWith(79); }), Numbers{79});
  EXPECT_EQ(Add(kKprobeAtOffset, kSecondOfCall, kFunction), -EILSEQ);
}

TEST_F(GoldenEventTest, Kind5IsAFunctionsReturn) {
  ASSERT_GT(Add(kKretprobe, kArgument7, kFunction), 0);
  EXPECT_EQ(Values([] { CallWith(1); }), Numbers{kOfFirstPolicy});
}

// A file of two pages, as descriptor 9: the second is a function that returns its argument and one.
// Both are mapped.
class CodeFile {
 public:
  CodeFile() {
    const int file = ::memfd_create("weft-golden", MFD_CLOEXEC);
    const std::vector<uint8_t> code = Bytes("48 8d 47 01 c3 ");  // lea 1(%rdi), %rax; ret
    EXPECT_EQ(::ftruncate(file, 2 * kPage), 0);
    EXPECT_EQ(::pwrite(file, code.data(), code.size(), kPage), static_cast<ssize_t>(code.size()));
    EXPECT_EQ(::dup2(file, kDescriptor), kDescriptor);
    ::close(file);
    data_ = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, kDescriptor, 0);
    code_ = ::mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, kDescriptor, kPage);
    EXPECT_NE(data_, MAP_FAILED);
    EXPECT_NE(code_, MAP_FAILED);
  }
  ~CodeFile() {
    ::munmap(data_, kPage);
    ::munmap(code_, kPage);
    ::close(kDescriptor);
  }
  CodeFile(const CodeFile&) = delete;
  CodeFile& operator=(const CodeFile&) = delete;

  [[nodiscard]] uint64_t Call(uint64_t value) const {
    return reinterpret_cast<uint64_t (*)(uint64_t)>(code_)(value);
  }
  [[nodiscard]] uint16_t semaphore() const {
    return *reinterpret_cast<const volatile uint16_t*>(static_cast<const uint8_t*>(data_) + 2048);
  }

 private:
  static constexpr int kDescriptor = 9;
  static constexpr long kPage = 4096;
  void* data_;
  void* code_;
};

TEST_F(GoldenEventTest, Kind6IsAnInstructionOfAFileWithASemaphoreAndATwin) {
  const CodeFile file;
  ASSERT_GT(Add(kUprobe, kArgument0), 0);
  EXPECT_EQ(Values([&] {
              EXPECT_EQ(file.Call(80), 81U);
              EXPECT_EQ(file.semaphore(), 1);
            }),
            Numbers{80});
  EXPECT_EQ(file.semaphore(), 0);
  EXPECT_EQ(Add(kUprobe, kArgument0), -EEXIST);
  std::vector<uint8_t> second = Bytes(kUprobe);
  second[kTwin] = 2;
  EXPECT_GT(Add(second, kArgument0), 0);
}

TEST_F(GoldenEventTest, Kind7IsAReturnInAFile) {
  const CodeFile file;
  ASSERT_GT(Add(kUretprobe, kArgument7), 0);
  EXPECT_EQ(Values([&] { EXPECT_EQ(file.Call(82), 83U); }), Numbers{83});
}

TEST_F(GoldenEventTest, Kind8IsAState) {
  ASSERT_GT(Add(kState, kArgument2), 0);
  const Numbers values = Values([&] { EXPECT_EQ(Statedump(session_.get()), 0); });
  EXPECT_EQ(std::ranges::count(values, static_cast<uint64_t>(::gettid())), 1);
}

TEST_F(GoldenEventTest, Flag1MakesNoDescriptor) {
  std::vector<uint8_t> bytes = Bytes(kSyscallEntry);
  bytes[kFlags] = 1;
  ASSERT_EQ(Add(bytes, kArgument1), 0);
  EXPECT_EQ(Values([] { CallWith(84); }), Numbers{84});
}

TEST_F(GoldenEventTest, AFilterIsTheseBytes) {
  ASSERT_GT(Add(kSyscallEntry, kArgument1, nullptr, kFilter), 0);
  EXPECT_EQ(Values([] {
              for (const uint64_t value : {41, 42, 43}) CallWith(value);
            }),
            Numbers{42});
}

// A thread that waits until the object ends.
class Bystander {
 public:
  Bystander() { id_.wait(0); }
  ~Bystander() {
    over_ = true;
    over_.notify_all();
    thread_.join();
  }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;
  [[nodiscard]] pid_t id() const { return id_; }

 private:
  std::atomic<bool> over_{false};
  std::atomic<pid_t> id_{0};
  std::thread thread_{[this] {
    id_ = ::gettid();
    id_.notify_all();
    over_.wait(false);
  }};
};

// A state; whether its dump must have this value once, or at least once.
struct GoldenState {
  uint8_t number;
  std::string_view program;
  uint64_t value;
  bool is_once;
};

TEST_F(GoldenEventTest, StatesAreTheseNumbers) {
  constexpr int kRare = 900;  // a descriptor that no other process has
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd file(::fcntl(null.get(), F_DUPFD_CLOEXEC, kRare));
  const UniqueFd any(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd socket(::fcntl(any.get(), F_DUPFD_CLOEXEC, kRare));
  const Bystander thread;
  const auto self = static_cast<uint64_t>(::getpid());
  const std::vector<GoldenState> states = {
      {3, kArgument3, self, true},
      {4, kArgument2, static_cast<uint64_t>(thread.id()), true},
      {5, kArgument2, static_cast<uint64_t>(file.get()), true},
      {6, kArgument2, static_cast<uint64_t>(socket.get()), true},
      {7, kArgument3, self, false},
      {11, kArgument0, 1, true}};
  std::vector<uint8_t> bytes = Bytes(kState);
  for (const GoldenState& state : states) {
    bytes[kNumber] = state.number;
    EXPECT_GT(Add(bytes, state.program), 0) << int{state.number};
    const Numbers values = Values([&] { EXPECT_EQ(Statedump(session_.get()), 0); });
    const auto times = std::ranges::count(values, state.value);
    EXPECT_TRUE(state.is_once ? times == 1 : times > 1) << int{state.number} << ": " << times;
    events_.clear();
  }
  for (const uint8_t number : {8, 9, 10}) {  // what of these there is, is the guest's
    bytes[kNumber] = number;
    EXPECT_GT(Add(bytes, kArgument0), 0) << int{number};
  }
}

TEST_F(GoldenEventTest, State1BeginsADumpAndState2EndsIt) {
  std::vector<uint8_t> bytes = Bytes(kState);
  for (const uint8_t number : {1, 4, 2}) {
    bytes[kNumber] = number;
    ASSERT_GT(Add(bytes, kArgument0), 0);
  }
  ASSERT_EQ(Switch(session_.get(), 1), 0);
  ASSERT_EQ(Statedump(session_.get()), 0);
  std::multimap<uint64_t, uint16_t> events;  // by time
  view_.DrainAll([&](uint32_t, const SeenRecord& r) { events.emplace(r.time, r.event); });
  ASSERT_GT(events.size(), 2U);
  EXPECT_EQ(events.begin()->second, 0);
  EXPECT_EQ(events.rbegin()->second, 2);
}

// A context's number in a channel's list, what it is called, and its bytes in a record.
struct GoldenContext {
  uint16_t id;
  const char* name;
  uint32_t size;
};
constexpr GoldenContext kFixedContexts[] = {{1, "vpid", 4},
                                            {2, "vtid", 4},
                                            {4, "procname", 16},
                                            {6, "cpu_id", 4},
                                            {7, "vuid", 4},
                                            {8, "veuid", 4},
                                            {9, "vsuid", 4},
                                            {10, "vgid", 4},
                                            {11, "vegid", 4},
                                            {12, "vsgid", 4},
                                            {13, "cgroup_ns", 8},
                                            {14, "ipc_ns", 8},
                                            {15, "mnt_ns", 8},
                                            {16, "net_ns", 8},
                                            {17, "pid_ns", 8},
                                            {18, "user_ns", 8},
                                            {19, "uts_ns", 8},
                                            {20, "time_ns", 8},
                                            {128, "pid", 4},
                                            {129, "tid", 4},
                                            {130, "ppid", 4},
                                            {131, "vppid", 4},
                                            {132, "prio", 4},
                                            {133, "nice", 4},
                                            {134, "uid", 4},
                                            {135, "euid", 4},
                                            {136, "suid", 4},
                                            {137, "gid", 4},
                                            {138, "egid", 4},
                                            {139, "sgid", 4},
                                            {140, "cgroup_id", 8},
                                            {141, "hostname", 65},
                                            {142, "interruptible", 4},
                                            {143, "preemptible", 4},
                                            {144, "need_reschedule", 4},
                                            {145, "migratable", 4}};

class GoldenContextTest : public GoldenEventTest {
 protected:
  // Makes a ring with these contexts; returns its descriptor or -errno. An entry is 24 bytes: its
  // number, then zeros, but for a counter's type at 16.
  int AddChannel(const std::vector<uint16_t>& ids) {
    std::vector<uint8_t> list(24 * ids.size());
    for (size_t i = 0; i < ids.size(); i++) {
      Put(list, 24 * i, ids[i]);
      if (ids[i] == 148) list[24 * i + 16] = 1;
    }
    std::vector<uint8_t> bytes = Bytes(kChannel);
    Put(bytes, kContextCount, static_cast<uint32_t>(ids.size()));
    Put(bytes, kContexts, list.data());
    return Control(session_.get(), 0x4040f712U, bytes.data());
  }
};

TEST_F(GoldenContextTest, ContextsAreTheseNumbers) {
  for (const GoldenContext& context : kFixedContexts) {
    EXPECT_TRUE(UniqueFd(AddChannel({context.id}))) << context.name;
    const weft_context_info* info = weft_context_by_id(context.id);
    ASSERT_NE(info, nullptr) << context.id;
    EXPECT_STREQ(info->name, context.name);
    EXPECT_EQ(info->size, context.size) << context.name;
  }
  for (const uint16_t id : {146, 147, 148}) EXPECT_TRUE(UniqueFd(AddChannel({id}))) << id;
  EXPECT_STREQ(weft_context_by_id(146)->name, "callstack-kernel");
  EXPECT_STREQ(weft_context_by_id(147)->name, "callstack-user");
  EXPECT_STREQ(weft_context_by_id(148)->name, "perf:cpu:");
  for (const uint16_t id : {3, 5, 21, 22}) EXPECT_EQ(AddChannel({id}), -EOPNOTSUPP) << id;
}

TEST_F(GoldenContextTest, ContextsStandBeforeTheFieldsInTheListsOrder) {
  ring_ = UniqueFd(AddChannel({2, 141, 1, 128}));
  ASSERT_TRUE(ring_);
  RingView view(ring_.get());
  ASSERT_GT(Add(kSyscallEntry, kArgument1), 0);
  ASSERT_EQ(Switch(session_.get(), 1), 0);
  CallWith(85);
  ASSERT_EQ(Switch(session_.get(), 0), 0);
  std::vector<uint8_t> expected(4 + 65 + 4 + 4 + 8);
  Put(expected, 0, ::gettid());
  ASSERT_EQ(::gethostname(reinterpret_cast<char*>(expected.data()) + 4, 65), 0);
  Put(expected, 69, ::getpid());
  Put(expected, 73, ::getpid());
  expected[77] = 85;
  std::vector<std::vector<uint8_t>> records;
  view.DrainAll([&](uint32_t, const SeenRecord& r) {
    records.emplace_back(r.payload.begin(), r.payload.end());
  });
  EXPECT_EQ(records, std::vector<std::vector<uint8_t>>{expected});
}

}  // namespace
}  // namespace weft::kmod
