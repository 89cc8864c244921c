// SPDX-License-Identifier: Apache-2.0
// The programs are the seeds of the fuzz target, made by scripts/fuzz_seeds.py. Real ones are in
// tests/local/attach_test.py.
#include "lib/elf/go_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"

namespace weft {
namespace {

// In the seeds.
constexpr size_t kTable = 768;
constexpr uint64_t kTableAddress = 0x402000, kText = 0x401000;
constexpr size_t kModuleBytes = 192;

using Program = std::vector<uint8_t>;

Program Seed(const std::string& name) {
  std::ifstream file(std::string(WEFT_SEEDS "/") + name, std::ios::binary);
  Program bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_GT(bytes.size(), kTable + kModuleBytes) << name;
  return bytes;
}

template <typename T>
T At(const Program& program, size_t at) {
  T value{};
  std::memcpy(&value, program.data() + at, sizeof(value));
  return value;
}

template <typename T>
Program With(Program program, size_t at, T value) {
  std::memcpy(program.data() + at, &value, sizeof(value));
  return program;
}

struct Read {
  bool is_go = false;
  std::vector<std::string> functions;  // "address size name"
  Status status;
};

Read ReadProgram(const Program& program) {
  const UniqueFd file(memfd_create("program", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), program.data(), program.size()),
            static_cast<ssize_t>(program.size()));
  const auto image = ElfImage::Read(file.get());
  Read read;
  if (!image) return {.status = std::unexpected(image.error())};
  read.is_go = IsGoProgram(*image);
  read.status = EachGoFunction(file.get(), *image, [&](const GoFunction& function) {
    std::string line = std::to_string(function.address - kText);
    line.append(" ").append(std::to_string(function.size)).append(" ").append(function.name);
    read.functions.push_back(line);
  });
  return read;
}

const std::vector<std::string> kFunctions{"0 64 runtime.text", "64 64 main.(*service).handle",
                                          "128 64 main.F[...]"};

// Where the module's data begin: with the address of the table.
size_t ModuleOf(const Program& program) {
  for (size_t at = kTable + 8; at + kModuleBytes <= program.size(); at += 8)
    if (At<uint64_t>(program, at) == kTableAddress) return at;
  ADD_FAILURE() << "the program has no module's data";
  return kTable;
}

TEST(GoTable, IsReadInEachLayout) {
  for (const char* seed : {"go_1_16", "go_1_18", "go_1_20", "no_sections"}) {
    const Read read = ReadProgram(Seed(seed));
    EXPECT_TRUE(read.is_go) << seed;
    ASSERT_TRUE(read.status) << seed << ": " << read.status.error().message;
    EXPECT_EQ(read.functions, kFunctions) << seed;
  }
}

TEST(GoTable, OfAnUnknownLayoutIsNone) {
  const Program program = With<uint32_t>(Seed("go_1_20"), kTable, 0xfffffff2);
  const Read read = ReadProgram(program);
  ASSERT_FALSE(read.status);
  EXPECT_EQ(read.status.error().code, ErrorCode::kNotFound);
  EXPECT_NE(read.status.error().message.find(".gopclntab"), std::string::npos);
}

TEST(GoTable, IsNoneWithoutDataOfItsModule) {
  const Program program = Seed("go_1_20");
  // A distance of the table's, a count, and each address: only the unused ones may differ.
  for (const size_t word : {0, 1, 13, 16, 17, 20, 21, 22, 23}) {
    const size_t at = ModuleOf(program) + word * 8;
    const Read read = ReadProgram(With(program, at, At<uint64_t>(program, at) ^ (1ull << 40)));
    ASSERT_FALSE(read.status) << word;
    EXPECT_EQ(read.status.error().code, ErrorCode::kNotFound) << word;
  }
}

TEST(GoTable, ThatContradictsItselfHasNoFunctions) {
  const Program program = Seed("go_1_20");
  const size_t pairs = kTable + At<uint64_t>(program, kTable + 64);
  for (const Program& other : {
           With<uint32_t>(program, pairs + 8, 0),      // two functions at one address
           With<uint32_t>(program, pairs + 16, 4096),  // beyond the text
           With<uint32_t>(program, pairs + 24, 128),   // the end before the last function
           With<uint64_t>(program, ModuleOf(program) + 14 * 8, 8),      // too short for its pairs
           With<uint64_t>(program, ModuleOf(program) + 2 * 8, 1 << 20)  // names beyond the file
       }) {
    const Read read = ReadProgram(other);
    ASSERT_FALSE(read.status);
    EXPECT_EQ(read.status.error().code, ErrorCode::kInvalid);
    EXPECT_TRUE(read.functions.empty());
  }
}

TEST(GoTable, ThatIsTooLongIsNotRead) {
  const Program program = Seed("go_1_20");
  const Program many = With(program, kTable + 8, kMaxGoFunctions + 1);
  const Program counted = With(many, ModuleOf(program) + 17 * 8, kMaxGoFunctions + 2);
  const Program named = With<uint64_t>(program, ModuleOf(program) + 2 * 8, kMaxElfSectionBytes + 1);
  for (const Program& other : {counted, named})
    EXPECT_EQ(ReadProgram(other).status.error().code, ErrorCode::kLimit);
}

TEST(GoTable, LeavesOutFunctionsWithoutANameInIt) {
  const Program program = Seed("go_1_20");
  const size_t pairs = kTable + At<uint64_t>(program, kTable + 64);
  for (const uint32_t record : {1u << 20, UINT32_MAX}) {
    const Read read = ReadProgram(With(program, pairs + 4, record));
    ASSERT_TRUE(read.status);
    EXPECT_EQ(read.functions, std::vector(kFunctions.begin() + 1, kFunctions.end()));
  }
  const uint32_t record = At<uint32_t>(program, pairs + 4);
  const Read read = ReadProgram(With(program, pairs + record + 4, UINT32_MAX));
  ASSERT_TRUE(read.status);
  EXPECT_EQ(read.functions.size(), 2u);
}

TEST(GoTable, OfACutOffFileIsNone) {
  const Program program = Seed("no_sections");
  for (size_t size = 0; size < program.size(); size += 5)
    EXPECT_FALSE(
        ReadProgram(Program(program.begin(), program.begin() + static_cast<long>(size))).status)
        << size;
}

}  // namespace
}  // namespace weft
