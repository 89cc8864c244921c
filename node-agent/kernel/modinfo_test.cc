// SPDX-License-Identifier: Apache-2.0
// What a module's file says of itself, and files that contradict themselves.
#include "node-agent/kernel/modinfo.h"

#include <gtest/gtest.h>

#include "node-agent/kernel/module_file.h"

namespace weft::kernel {
namespace {

Result<ModuleInfo> Parse(const std::string& file) {
  return ParseModuleInfo({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
}

const std::vector<std::string> kTexts = {"license=GPL",    "name=weft",
                                         "version=0.1",    "srcversion=ABCDEF",
                                         "weft_abi=1u",    "vermagic=6.1.0-56-amd64 SMP preempt ",
                                         "no equals sign", "depends="};

TEST(ModuleInfo, IsReadFromItsSection) {
  const auto info = Parse(testing::ModuleFile(kTexts));
  ASSERT_TRUE(info) << info.error().message;
  EXPECT_EQ(info->name, "weft");
  EXPECT_EQ(info->version, "0.1");
  EXPECT_EQ(info->srcversion, "ABCDEF");
  EXPECT_EQ(info->abi, 1u);
  EXPECT_EQ(info->release(), "6.1.0-56-amd64");
  EXPECT_FALSE(info->is_signed);
}

TEST(ModuleInfo, SaysWhetherItIsSigned) {
  const auto info = Parse(testing::ModuleFile(kTexts) + "...~Module signature appended~\n");
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->is_signed);
}

TEST(ModuleInfo, OtherFilesAreRefused) {
  EXPECT_EQ(Parse("").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(Parse(std::string(4096, 'x')).error().code, ErrorCode::kCorrupt);
  std::string of_32_bits = testing::ModuleFile(kTexts);
  of_32_bits[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(Parse(of_32_bits).error().code, ErrorCode::kUnsupported);
  std::string other_name = testing::ModuleFile(kTexts);
  other_name.replace(other_name.find(".modinfo"), 8, ".modxxxx");
  EXPECT_EQ(Parse(other_name).error().code, ErrorCode::kNotFound);
}

TEST(ModuleInfo, RefusesATruncatedFile) {
  const std::string file = testing::ModuleFile(kTexts);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(Parse(file.substr(0, size))) << size;
}

// Cuts the section's text before its last NUL, and puts sections beyond the end.
TEST(ModuleInfo, ContradictionsAreCorrupt) {
  std::string open_end = testing::ModuleFile({"name=weft", "x"});
  open_end.replace(open_end.find(std::string("x\0", 2)), 2, "xx");
  EXPECT_EQ(Parse(open_end).error().code, ErrorCode::kCorrupt);
  std::string beyond = testing::ModuleFile(kTexts);
  const uint64_t huge = UINT64_MAX - 7;
  const size_t offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset);
  beyond.replace(offset, sizeof(huge), reinterpret_cast<const char*>(&huge), sizeof(huge));
  EXPECT_EQ(Parse(beyond).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace weft::kernel
