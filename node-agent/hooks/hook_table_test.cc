// SPDX-License-Identifier: Apache-2.0
// The bytes of docs/formats/hooks.md are those that the agent writes and that libweft.so has.
#include "node-agent/hooks/hook_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/unique_fd.h"
#include "lib/elf/elf_image.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/functions.h"
#include "node-agent/hooks/hook_process.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/process_claim.h"

namespace weft::hooks {
namespace {

// Returns the bytes behind a word at the begin of the page's lines.
std::vector<uint8_t> Golden(const std::string& word) {
  std::ifstream page(WEFT_SOURCE_DIR "/docs/formats/hooks.md");
  std::vector<uint8_t> bytes;
  for (std::string line; std::getline(page, line);) {
    std::istringstream words(line);
    std::string first, byte;
    if (!(words >> first) || first != word) continue;
    while (words >> byte && byte.size() == 2 &&
           byte.find_first_not_of("0123456789abcdef") == std::string::npos)
      bytes.push_back(static_cast<uint8_t>(std::stoul(byte, nullptr, 16)));
  }
  return bytes;
}

const std::vector<uint8_t> kFunction{0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x53, 0xc3};
constexpr uint64_t kAddress = 0x10000, kThunk = 0x50000, kHook = 0x90020;
constexpr uint64_t kEnter = 0x7f0012345678;

TEST(HooksPage, HasTheJumpAndTheThunkThatAreWritten) {
  const auto jump = JumpFrom(kAddress, kThunk);
  ASSERT_TRUE(jump);
  EXPECT_EQ(*jump, Golden("golden-jump"));
  const auto thunk = MakeThunk(kThunk, kHook, kEnter, kAddress, kFunction);
  ASSERT_TRUE(thunk);
  EXPECT_EQ(*thunk, Golden("golden-thunk"));
  const auto detour = MakeDetour(kThunk, kEnter, kAddress, kFunction);
  ASSERT_TRUE(detour);
  EXPECT_EQ(*detour, Golden("golden-detour"));
}

TEST(HooksPage, HasTheStructsThatAreShared) {
  weft_hook hook{.address = kAddress,
                 .resume = kThunk + 32,
                 .entry = 0x90100,
                 .exit = 0x90200,
                 .call = 0x90300,
                 .next = 0x90400,
                 .digest = 0x1122334455667788,
                 .value_count = 2,
                 .flags = WEFT_HOOK_EXIT_ARGUMENTS,
                 .floating_count = 1,
                 .result = {.source = WEFT_HOOK_RESULT, .size = 8},
                 .details = 0x900c0};
  hook.values[0] = {.source = WEFT_HOOK_GENERAL, .size = 4};
  hook.values[1] = {.source = WEFT_HOOK_FLOATING, .size = 8};
  std::memcpy(hook.original, kFunction.data(), WEFT_HOOK_JUMP_BYTES);
  std::ranges::copy(Golden("golden-jump"), hook.jump);
  const auto* bytes = reinterpret_cast<const uint8_t*>(&hook);
  EXPECT_EQ(std::vector<uint8_t>(bytes, bytes + sizeof(hook)), Golden("golden-hook"));
  const weft_hook_detail detail{
      .offsets = {24, -8},
      .tail = 64,
      .length_of = {.source = WEFT_HOOK_GENERAL, .index = 2, .size = 4, .kind = WEFT_HOOK_SIGNED},
      .steps = 2};
  const auto* detail_bytes = reinterpret_cast<const uint8_t*>(&detail);
  EXPECT_EQ(std::vector<uint8_t>(detail_bytes, detail_bytes + sizeof(detail)),
            Golden("golden-detail"));
  const weft_hook_table table{
      .first = kHook, .last = 0x90400, .code_used = 0x60, .data_used = 0x600};
  const auto* table_bytes = reinterpret_cast<const uint8_t*>(&table);
  EXPECT_EQ(std::vector<uint8_t>(table_bytes, table_bytes + sizeof(table)), Golden("golden-table"));
}

TEST(ProcessClaimTest, AProcessIsOneOwnersAtATime) {
  {
    auto first = ProcessClaim::Take(7);
    ASSERT_TRUE(first);
    const ProcessClaim moved = std::move(*first);
    const auto second = ProcessClaim::Take(7);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
    EXPECT_TRUE(ProcessClaim::Take(8));
  }
  EXPECT_TRUE(ProcessClaim::Take(7));
}

#ifdef WEFT_LIBRARY
// Finds bytes of the library at the address of a symbol.
std::vector<uint8_t> BytesAt(const ElfImage& image, int file, const char* name, size_t count) {
  uint64_t address = 0;
  image.EachSection([&](const ElfSection& section) {
    if (section.header.sh_type != SHT_SYMTAB) return true;
    for (int i = 0;; ++i) {
      GElf_Sym symbol{};
      if (gelf_getsym(section.data(), i, &symbol) == nullptr) break;
      const char* text = image.Text(section.header.sh_link, symbol.st_name);
      if (text != nullptr && std::strcmp(text, name) == 0) address = symbol.st_value;
    }
    return true;
  });
  std::vector<uint8_t> bytes(count);
  image.EachSegment([&](const GElf_Phdr& segment) {
    const bool has = segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
                     address < segment.p_vaddr + segment.p_filesz;
    const auto at = static_cast<off_t>(segment.p_offset + address - segment.p_vaddr);
    if (has) {
      EXPECT_EQ(pread(file, bytes.data(), count, at), static_cast<ssize_t>(count));
    }
    return true;
  });
  return bytes;
}

// What the linker fills in differs from build to build.
TEST(HooksPage, HasTheStubsOfTheLibrary) {
  const UniqueFd file(open(WEFT_LIBRARY, O_RDONLY | O_CLOEXEC));
  const auto image = ElfImage::Read(file.get());
  ASSERT_TRUE(image) << image.error().message;
  const auto stubs = BytesAt(*image, file.get(), "weft_hook_stubs", 32);
  const std::vector<uint8_t> golden = Golden("golden-stub");
  ASSERT_EQ(golden.size(), 16u);
  for (const size_t at : {0, 1, 6, 7, 8, 9, 10, 11}) EXPECT_EQ(stubs[16 + at], golden[at]) << at;
}

// What a process with the library has, in this process: an area, and a function that is data.
class OwnTable {
 public:
  OwnTable() {
    const UniqueFd file(open(WEFT_LIBRARY, O_RDONLY | O_CLOEXEC));
    struct stat status{};
    const auto distance = FindDynamicSymbol(file.get(), WEFT_HOOKS_SYMBOL);
    if (!distance || fstat(file.get(), &status) != 0) return;
    const size_t image = (*distance + sizeof(weft_hooks) + 4095) & ~size_t{4095};
    void* const map = mmap(nullptr, image + kFunctionBytes + kCodeBytes + kDataBytes,
                           PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return;
    bytes_ = image + kFunctionBytes + kCodeBytes + kDataBytes;
    begin_ = static_cast<uint8_t*>(map);
    function_ = begin_ + image;
    std::ranges::copy(kFunction, function_);
    weft_hooks hooks{.magic = WEFT_HOOKS_MAGIC, .version = WEFT_HOOKS_VERSION, .enter = kEnter};
    const auto code = reinterpret_cast<uint64_t>(function_ + kFunctionBytes);
    hooks.areas[0] = {.code = code,
                      .code_bytes = kCodeBytes,
                      .data = code + kCodeBytes,
                      .data_bytes = kDataBytes};
    const weft_hook_table table{.data_used = sizeof(weft_hook_table)};
    std::memcpy(begin_ + *distance, &hooks, sizeof(hooks));
    std::memcpy(function_ + kFunctionBytes + kCodeBytes, &table, sizeof(table));
    library_.path = WEFT_LIBRARY;
    library_.name = "libweft.so";
    library_.inode = status.st_ino;
    library_.begin = reinterpret_cast<uint64_t>(begin_);
  }
  OwnTable(const OwnTable&) = delete;
  OwnTable& operator=(const OwnTable&) = delete;
  ~OwnTable() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }

  [[nodiscard]] uint8_t* function() const { return function_; }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uint64_t>(function_); }
  [[nodiscard]] Result<HookTable> Open(const ProcessMemory& memory) const {
    return HookTable::Open(memory, {library_});
  }

 private:
  static constexpr size_t kFunctionBytes = 4096, kCodeBytes = 65536, kDataBytes = 65536;
  uint8_t* begin_ = nullptr;
  uint8_t* function_ = nullptr;
  size_t bytes_ = 0;
  LoadedObject library_;
};

TEST(HookTableTest, HookThatIsOnIsFoundThoughAnAgentDiedBeforeItPutANewerOneOn) {
  const OwnTable own;
  ASSERT_NE(own.function(), nullptr);
  const auto memory = ProcessMemory::Open(getpid());
  ASSERT_TRUE(memory) << memory.error().message;
  const api::FunctionRule rule;
  NewHook wanted{.address = own.address(), .code = kFunction, .rule = &rule, .function = "f"};
  wanted.moments = {Moment::kEntry};
  weft_hook older{}, newer{};
  {
    auto table = own.Open(*memory);
    ASSERT_TRUE(table) << table.error().message;
    older = table->Add(wanted).value();
    std::memcpy(own.function(), older.jump, WEFT_HOOK_JUMP_BYTES);
    wanted.moments = {Moment::kExit};
    newer = table->Add(wanted).value();
    ASSERT_NE(older.digest, newer.digest);
  }
  const auto digest = [&] {
    const auto table = own.Open(*memory);
    return table ? table->hooks().at(own.address()).digest : 0;
  };
  EXPECT_EQ(digest(), older.digest);
  std::memcpy(own.function(), newer.jump, WEFT_HOOK_JUMP_BYTES);
  EXPECT_EQ(digest(), newer.digest);
  std::ranges::copy(kFunction, own.function());
  EXPECT_EQ(digest(), newer.digest);
}
#endif

TEST(HookReport, OneLineStandsForAllThatAreTooMany) {
  HookReport report;
  for (size_t i = 0; i < kMaxRefused + 100; ++i)
    report.Refuse({.rule = 1,
                   .object = "app",
                   .function = "f" + std::to_string(i),
                   .why = "it is too short"});
  ASSERT_EQ(report.refused.size(), kMaxRefused);
  EXPECT_TRUE(report.is_full());
  EXPECT_EQ(report.refused.front().function, "f0");
  EXPECT_EQ(report.refused[kMaxRefused - 2].why, "it is too short");
  EXPECT_EQ(report.refused.back().function, "");
  EXPECT_EQ(report.refused.back().why,
            "more than " + std::to_string(kMaxRefused) +
                " functions of the process cannot be hooked, so those of further files are not "
                "either: name fewer");
}

}  // namespace
}  // namespace weft::hooks
