// SPDX-License-Identifier: Apache-2.0
// Probes of this very program: its functions, and a USDT probe of systemtap's own header.
#include "node-agent/kernel/user_probes.h"

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include "lib/base/unique_fd.h"
#include "lib/event/description.h"

extern "C" {
[[gnu::section(".probes")]] unsigned short weft_test_order_semaphore = 0;

[[gnu::noinline]] int WeftTestFunction(int number, const char* text) {
  DTRACE_PROBE2(weft_test, order, number, text);
  return number + 1;
}
}

// WEFT_NOTES(NAME, COUNT) makes COUNT places of one probe, all at the same instruction, as
// sys/sdt.h writes them.
#define WEFT_NOTES(name, count)                 \
  ".pushsection .note.stapsdt,\"\",\"note\"\n"  \
  ".rept " count                                \
  "\n"                                          \
  ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
  "991: .asciz \"stapsdt\"\n992: .balign 4\n"   \
  "993: .8byte 990b, 0, 0\n"                    \
  ".asciz \"weft_test\"\n.asciz \"" name        \
  "\"\n.asciz \"-4@$5\"\n"                      \
  "994: .balign 4\n.endr\n.popsection\n"

extern "C" [[gnu::noinline, gnu::used]] void WeftTestManyPlaces() {
  asm volatile("990: nop\n" WEFT_NOTES("inlined", "302") WEFT_NOTES("beyond", "4100"));
}

namespace weft::kernel {
namespace {

using api::ValueType;

class UserProbesTest : public ::testing::Test {
 protected:
  UserProbesTest() : file_(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)) {
    auto program = UserProgram::Read(file_.get());
    EXPECT_TRUE(program) << program.error().message;
    program_ = std::make_unique<UserProgram>(std::move(*program));
  }

  static std::string Fields(const Result<Resolved>& resolved) {
    if (!resolved) return resolved.error().message;
    std::string names;
    const EventDescription event = EventDescription::Parse(resolved->description).value();
    for (const FieldDescription& field : event.fields)
      names += (names.empty() ? "" : " ") + field.name + (field.is_signed() ? "-" : "") +
               std::to_string(field.elem_size);
    return names;
  }

  UniqueFd file_;
  std::unique_ptr<UserProgram> program_;
};

// Are the bytes at a place of the file those of the process at that address?
bool IsAt(uint64_t offset, const void* address) {
  char bytes[16] = {};
  std::ifstream file("/proc/self/exe", std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes, sizeof(bytes));
  return std::memcmp(bytes, address, sizeof(bytes)) == 0;
}

TEST_F(UserProbesTest, FunctionsAreFoundWhereTheyAre) {
  EXPECT_FALSE(program_->is_go());
  const auto start = program_->FindFunction("WeftTestFunction", 0);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(IsAt(*start, reinterpret_cast<const void*>(&WeftTestFunction)));
  EXPECT_EQ(program_->FindFunction("WeftTestFunction", 1).value(), *start + 1);
  EXPECT_EQ(program_->FindFunction("WeftTestFunction", 1 << 20).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(program_->FindFunction("no_such", 0).error().message, "it has no function 'no_such'");
  EXPECT_EQ(program_->FindFunction("weft_test_order_semaphore", 0).error().code,
            ErrorCode::kNotFound)
      << "a variable";
  EXPECT_EQ(program_->FindFunction("open", 0).error().code, ErrorCode::kNotFound) << "libc's";
}

TEST_F(UserProbesTest, EntriesHaveTheirArguments) {
  UserPlace place{.event = "f", .function = "WeftTestFunction"};
  EXPECT_EQ(Fields(ResolveUprobe(*program_, place)), "ip8 arg08 arg18 arg28 arg38 arg48 arg58");
  place.arguments = {{"number", ValueType::kInt32},
                     {"share", ValueType::kDouble},
                     {"text", ValueType::kString},
                     {"flag", ValueType::kUint8}};
  const auto entry = ResolveUprobe(*program_, place);
  EXPECT_EQ(Fields(entry), "ip8 number-4 text1 flag1");
  ASSERT_EQ(entry->left_out.size(), 1u);
  EXPECT_EQ(entry->left_out[0], "share: floats are in registers that the kernel does not save");
  EXPECT_EQ(entry->fetch[4].arg, 1) << "the float took no register of integers";
  EXPECT_EQ(entry->kind, uint32_t{WEFT_KERNEL_UPROBE});
  EXPECT_EQ(entry->target, "");
}

TEST_F(UserProbesTest, ReturnsHaveValueAndDuration) {
  UserPlace place{.event = "f", .function = "WeftTestFunction"};
  EXPECT_EQ(Fields(ResolveUretprobe(*program_, place)), "ip8 ret8 duration8");
  place.returns = ValueType::kInt32;
  EXPECT_EQ(Fields(ResolveUretprobe(*program_, place)), "ip8 ret-4 duration8");
  place.offset = 4;
  EXPECT_FALSE(ResolveUretprobe(*program_, place));
}

TEST_F(UserProbesTest, UsdtProbesHavePlaceArgumentsAndSemaphore) {
  const auto events = ResolveUsdt(*program_, "order", "weft_test:order");
  ASSERT_TRUE(events) << events.error().message;
  ASSERT_EQ(events->size(), 1u);
  const Resolved& event = events->front();
  EXPECT_EQ(event.name, "order");
  EXPECT_EQ(Fields(event), "ip8 arg0-4 arg18");
  EXPECT_TRUE(event.left_out.empty());
  const uint64_t start = program_->FindFunction("WeftTestFunction", 0).value();
  EXPECT_GE(event.offset, start);
  EXPECT_LT(event.offset, start + 256);
  EXPECT_NE(event.semaphore, 0u);
  EXPECT_TRUE(program_->AddressOf("weft_test_order_semaphore"));
  EXPECT_EQ(ResolveUsdt(*program_, "x", "weft_test:no").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ResolveUsdt(*program_, "x", "order").error().code, ErrorCode::kInvalid);
}

TEST_F(UserProbesTest, AUsdtProbeHasAllPlacesOrReportsTheirNumber) {
  std::vector<std::string> left_out;
  const auto inlined = ResolveUsdt(*program_, "u", "weft_test:inlined", &left_out);
  ASSERT_TRUE(inlined) << inlined.error().message;
  EXPECT_EQ(inlined->size(), 302u);
  EXPECT_TRUE(left_out.empty());
  const auto beyond = ResolveUsdt(*program_, "u", "weft_test:beyond", &left_out);
  ASSERT_TRUE(beyond) << beyond.error().message;
  EXPECT_EQ(beyond->size(), 4096u);
  ASSERT_EQ(left_out.size(), 1u);
  EXPECT_EQ(left_out.front(),
            "4 of the places of USDT probe 'weft_test:beyond' are not recorded: at most 4096 "
            "places of a probe are");
}

TEST_F(UserProbesTest, MemoryAndFileGiveEqualProbes) {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto program = UserProgram::Parse(bytes);
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->FindFunction("WeftTestFunction", 0).value(),
            program_->FindFunction("WeftTestFunction", 0).value());
}

// Returns a program of 1.4 KB: int count; main(int a) with the probe p:n of a, count and 7. One
// page holds all of it.
std::vector<uint8_t> SmallProgram() {
  std::ifstream file(WEFT_SOURCE_DIR "/node-agent/kernel/kernel_user_program_fuzz_corpus/usdt",
                     std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(UserProgram, OperandsMayBeVariablesAndConstants) {
  const std::vector<uint8_t> bytes = SmallProgram();
  const auto program = UserProgram::Parse(bytes);
  ASSERT_TRUE(program) << program.error().message;
  const UsdtSite site = program->FindUsdt("p", "n").value().front();
  EXPECT_EQ(site.arguments, "-4@%edi -4@count(%rip) -4@$7");
  const Resolved event = ResolveUsdt(*program, "n", "p:n").value().front();
  EXPECT_TRUE(event.left_out.empty());
  ASSERT_EQ(event.fetch.size(), 10u);  // two of each, and one more of the last two
  const FetchStep& load = event.fetch[5];
  EXPECT_EQ(load.code, FetchCode::kLoad);
  EXPECT_EQ(load.flags, kFetchUser | kFetchSigned);
  EXPECT_EQ(site.address + static_cast<uint64_t>(int64_t{load.offset}),
            program->AddressOf("count"));
  EXPECT_EQ(event.fetch[8].offset, 7);
}

TEST(UserProgram, ASemaphoreThatTheKernelWouldMissIsRefused) {
  std::vector<uint8_t> bytes = SmallProgram();
  Elf64_Ehdr header{};
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t flags = header.e_phoff + offsetof(Elf64_Phdr, p_flags);
  ASSERT_EQ(bytes[flags], PF_R | PF_X) << "the first segment is the code's";
  bytes[flags] |= PF_W;
  const auto program = UserProgram::Parse(bytes);
  EXPECT_EQ(program->FindUsdt("p", "n").error().code, ErrorCode::kUnsupported);
}

TEST(UserProgram, RefusesFilesThatAreNoPrograms) {
  const std::string text = "#!/bin/sh\n";
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  EXPECT_EQ(UserProgram::Parse({bytes, text.size()}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(UserProgram::Parse({}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace weft::kernel
