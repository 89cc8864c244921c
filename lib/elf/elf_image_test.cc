// SPDX-License-Identifier: Apache-2.0
#include "lib/elf/elf_image.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
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

// Returns a file with a header, four sections' headers behind it, and a hole of 16 GiB.
UniqueFd FileWithAHole(Elf64_Ehdr header, const std::array<Elf64_Shdr, 4>& sections) {
  UniqueFd file(memfd_create("elf", MFD_CLOEXEC));
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_version = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = EM_X86_64;
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof(header);
  EXPECT_EQ(::pwrite(file.get(), &header, sizeof(header), 0), ssize_t{sizeof(header)});
  EXPECT_EQ(::pwrite(file.get(), sections.data(), sizeof(sections), sizeof(header)),
            ssize_t{sizeof(sections)});
  EXPECT_EQ(::ftruncate(file.get(), off_t{16} << 30), 0);
  return file;
}

// A sparse file costs its owner nothing. What it says it has must cost weft nothing, either.
TEST(ElfImage, RefusesMoreThanFilesHave) {
  std::array<Elf64_Shdr, 4> sections{};
  sections[0].sh_size = 1 << 26;
  sections[0].sh_info = 1 << 26;
  Elf64_Ehdr header{};
  header.e_shnum = 0;
  const UniqueFd many_sections = FileWithAHole(header, sections);
  EXPECT_EQ(ElfImage::Read(many_sections.get()).error().code, ErrorCode::kLimit);
  header.e_shnum = 4;
  header.e_phnum = PN_XNUM;
  header.e_phoff = 4096;
  const UniqueFd many_segments = FileWithAHole(header, sections);
  EXPECT_EQ(ElfImage::Read(many_segments.get()).error().code, ErrorCode::kLimit);

  header.e_phnum = 0;
  header.e_shstrndx = 1;
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = 4096;
  sections[1].sh_size = kMaxElfTextBytes + 1;
  const UniqueFd long_names = FileWithAHole(header, sections);
  EXPECT_EQ(ElfImage::Read(long_names.get()).error().code, ErrorCode::kLimit);
  // Each of them alone is short enough.
  sections[1].sh_size = kMaxElfTextBytes / 2;
  sections[2] = sections[3] = sections[1];
  const UniqueFd many_names = FileWithAHole(header, sections);
  EXPECT_EQ(ElfImage::Read(many_names.get()).error().code, ErrorCode::kLimit);
  sections[2] = sections[3] = {};
  sections[1].sh_size = 64;
  sections[1].sh_flags = SHF_COMPRESSED;
  const UniqueFd packed_names = FileWithAHole(header, sections);
  EXPECT_EQ(ElfImage::Read(packed_names.get()).error().code, ErrorCode::kLimit);
}

TEST(ElfImage, HasNoBytesOfASectionThatIsTooLong) {
  std::array<Elf64_Shdr, 4> sections{};
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = 4096;
  sections[1].sh_size = 64;
  sections[2].sh_type = SHT_PROGBITS;
  sections[2].sh_offset = 4096;
  sections[2].sh_size = kMaxElfSectionBytes + 1;
  Elf64_Ehdr header{};
  header.e_shnum = 4;
  header.e_shstrndx = 1;
  const UniqueFd file = FileWithAHole(header, sections);
  const auto image = ElfImage::Read(file.get());
  ASSERT_TRUE(image) << image.error().message;
  size_t seen = 0;
  image->EachSection([&seen](const ElfSection& section) {
    if (section.header.sh_type != SHT_PROGBITS) return true;
    EXPECT_FALSE(section.bytes());
    EXPECT_EQ(section.data(), nullptr);
    return ++seen > 0;
  });
  EXPECT_EQ(seen, 1U);
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
