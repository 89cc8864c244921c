// SPDX-License-Identifier: Apache-2.0
// See elf_image.h.
#include "lib/elf/elf_image.h"

#include <unistd.h>

#include <array>
#include <cstring>

namespace weft {

namespace {

// Larger numbers stand in the first section's header: no linker writes such programs. libelf would
// allocate memory for that many.
bool HasTooManyParts(Bytes head) {
  Elf64_Ehdr header{};
  if (head.size() < sizeof(header)) return false;
  std::memcpy(&header, head.data(), sizeof(header));
  return header.e_phnum == PN_XNUM || (header.e_shnum == 0 && header.e_shoff != 0) ||
         header.e_shnum >= SHN_LORESERVE;
}

// libelf reads a string table as a whole, and unpacks one that is packed.
bool HasTooLongTexts(Elf* elf) {
  uint64_t total = 0;
  for (Elf_Scn* handle = nullptr; (handle = elf_nextscn(elf, handle)) != nullptr;) {
    GElf_Shdr section{};
    if (gelf_getshdr(handle, &section) == nullptr || section.sh_type != SHT_STRTAB) continue;
    if (section.sh_size > kMaxElfTextBytes - total || (section.sh_flags & SHF_COMPRESSED) != 0)
      return true;
    total += section.sh_size;
  }
  return false;
}

}  // namespace

Elf_Data* ElfSection::data() const {
  return header.sh_size > kMaxElfSectionBytes ? nullptr : elf_getdata(handle, nullptr);
}

std::optional<Bytes> ElfSection::bytes() const {
  if (header.sh_type == SHT_NOBITS || header.sh_size > kMaxElfSectionBytes) return std::nullopt;
  const Elf_Data* raw = elf_rawdata(handle, nullptr);
  if (raw == nullptr) return std::nullopt;
  if (raw->d_buf == nullptr) return Bytes();
  return Bytes(static_cast<const uint8_t*>(raw->d_buf), raw->d_size);
}

Result<ElfImage> ElfImage::Parse(Bytes bytes) {
  return Check(bytes, [&bytes] {
    // libelf writes nowhere: it was opened for reading, and the byte order is this machine's.
    auto* image = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    return elf_memory(image, bytes.size());
  });
}

Result<ElfImage> ElfImage::Read(int file) {
  std::array<uint8_t, sizeof(Elf64_Ehdr)> head{};
  const ssize_t got = ::pread(file, head.data(), head.size(), 0);
  if (got < 0) return FailErrno("ELF file");
  return Check(Bytes(head).first(static_cast<size_t>(got)),
               [file] { return elf_begin(file, ELF_C_READ, nullptr); });
}

Result<ElfImage> ElfImage::Check(Bytes head, const std::function<Elf*()>& open) {
  if (head.size() < EI_NIDENT || std::memcmp(head.data(), ELFMAG, SELFMAG) != 0)
    return Fail(ErrorCode::kInvalid, "no ELF file");
  if (head[EI_CLASS] != ELFCLASS64 || head[EI_DATA] != ELFDATA2LSB)
    return Fail(ErrorCode::kUnsupported, "not a 64-bit little-endian ELF file");
  if (HasTooManyParts(head))
    return Fail(ErrorCode::kLimit, "ELF file with more sections or segments than linkers write");
  elf_version(EV_CURRENT);
  Elf* elf = open();
  GElf_Ehdr header{};
  if (elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) != nullptr) {
    ElfImage image(elf, header);
    if (HasTooLongTexts(elf))
      return Fail(ErrorCode::kLimit, "ELF file whose string tables are packed or over 256 MiB");
    return image;
  }
  const int number = elf_errno();
  elf_end(elf);
  return Fail(ErrorCode::kInvalid,
              number == 0 ? "no ELF file" : std::string("ELF file: ") + elf_errmsg(number));
}

void ElfImage::EachSegment(const std::function<bool(const GElf_Phdr&)>& use) const {
  size_t count = 0;
  if (elf_getphdrnum(elf_.get(), &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr segment{};
    if (gelf_getphdr(elf_.get(), static_cast<int>(i), &segment) == nullptr || !use(segment)) return;
  }
}

void ElfImage::EachSection(const std::function<bool(const ElfSection&)>& use) const {
  size_t names = 0;
  if (elf_getshdrstrndx(elf_.get(), &names) != 0) return;
  for (Elf_Scn* handle = nullptr; (handle = elf_nextscn(elf_.get(), handle)) != nullptr;) {
    ElfSection section{.name = {}, .header = {}, .handle = handle};
    if (gelf_getshdr(handle, &section.header) == nullptr) continue;
    const char* name = Text(names, section.header.sh_name);
    if (name == nullptr) continue;
    section.name = name;
    if (!use(section)) return;
  }
}

}  // namespace weft
