// SPDX-License-Identifier: Apache-2.0
#include "lib/elf/elf_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lib/base/unique_fd.h"

namespace weft {
namespace {

std::vector<uint8_t> ThisProgram() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// "name type size" of each section, and the number of segments.
std::vector<std::string> Summary(const ElfImage& image) {
  std::vector<std::string> lines;
  image.EachSection([&lines](const ElfSection& section) {
    const auto bytes = section.bytes();
    std::string line(section.name);
    line.append(" ").append(std::to_string(section.header.sh_type)).append(" ");
    lines.push_back(line.append(bytes ? std::to_string(bytes->size()) : "none"));
    return true;
  });
  size_t segments = 0;
  image.EachSegment([&segments](const GElf_Phdr&) { return ++segments > 0; });
  lines.push_back(std::to_string(segments));
  return lines;
}

TEST(ElfImage, ReadsAFileAndItsBytesAlike) {
  const std::vector<uint8_t> bytes = ThisProgram();
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto parsed = ElfImage::Parse(bytes);
  const auto read = ElfImage::Read(file.get());
  ASSERT_TRUE(parsed) << parsed.error().message;
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(Summary(*parsed), Summary(*read));
  EXPECT_GT(Summary(*parsed).size(), 10U);
}

TEST(ElfImage, RefusesOtherFiles) {
  const std::vector<uint8_t> program = ThisProgram();
  std::vector<uint8_t> start(program.begin(), program.begin() + 64);
  EXPECT_EQ(ElfImage::Parse({}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ElfImage::Parse(Bytes(start).first(10)).error().code, ErrorCode::kInvalid);
  start[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(ElfImage::Parse(start).error().code, ErrorCode::kUnsupported);
  start[EI_CLASS] = ELFCLASS64;
  start[EI_DATA] = ELFDATA2MSB;
  EXPECT_EQ(ElfImage::Parse(start).error().code, ErrorCode::kUnsupported);
  start[0] = 'x';
  EXPECT_EQ(ElfImage::Parse(start).error().code, ErrorCode::kInvalid);
}

TEST(ElfImage, HasNoBytesOfASectionBeyondTheEnd) {
  std::vector<uint8_t> program = ThisProgram();
  Elf64_Ehdr header{};
  std::memcpy(&header, program.data(), sizeof(header));
  const uint64_t beyond = program.size() + 1;
  std::memcpy(&program[header.e_shoff + sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_offset)],
              &beyond, sizeof(beyond));
  const auto image = ElfImage::Parse(program);
  ASSERT_TRUE(image) << image.error().message;
  size_t without = 0;
  image->EachSection([&without](const ElfSection& section) {
    if (elf_ndxscn(section.handle) == 1) without += section.bytes() ? 0 : 1;
    return true;
  });
  EXPECT_EQ(without, 1U);
}

TEST(ElfImage, ReadsWhatIsLeftOfACutOffFile) {
  const std::vector<uint8_t> program = ThisProgram();
  for (size_t size = 0; size < 4096; size += 7) {
    const std::vector<uint8_t> part(program.begin(), program.begin() + static_cast<long>(size));
    const auto image = ElfImage::Parse(part);
    if (image) (void)Summary(*image);
  }
}

}  // namespace
}  // namespace weft
