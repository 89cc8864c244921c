// SPDX-License-Identifier: Apache-2.0
// See library_image.h. System V ABI and its supplement for x86-64: relocation.
#include "node-agent/attach/library_image.h"

#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "lib/elf/elf_image.h"
#include "node-agent/attach/limits.h"

namespace weft::attach {
namespace {

std::unexpected<Error> Corrupt() {
  return Fail(ErrorCode::kCorrupt, "libweft.so contradicts itself; install weft again");
}

template <typename T>
T ReadAs(Bytes bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

}  // namespace

Result<LibraryImage> LibraryImage::Parse(std::vector<uint8_t> file) {
  LibraryImage image;
  image.file_ = std::move(file);
  if (image.file_.size() > kMaxLibraryBytes)
    return Fail(ErrorCode::kLimit, "libweft.so is larger than 16 MiB");
  WEFT_TRY(image.ReadSegments());
  WEFT_TRY(image.ReadDynamic());
  return image;
}

Status LibraryImage::ReadSegments() {
  WEFT_ASSIGN(const ElfImage elf, ElfImage::Parse(file_));
  if (elf.header().e_type != ET_DYN || elf.header().e_machine != EM_X86_64)
    return Fail(ErrorCode::kUnsupported, "libweft.so is no library for x86-64");
  bool is_sound = true;
  elf.EachSegment([&](const GElf_Phdr& s) {
    if (s.p_type != PT_LOAD) return true;
    is_sound = is_sound && s.p_filesz <= s.p_memsz && s.p_memsz <= kMaxSpanBytes &&
               s.p_vaddr <= kMaxSpanBytes && s.p_offset <= file_.size() &&
               s.p_filesz <= file_.size() - s.p_offset &&
               s.p_vaddr % kPageBytes == s.p_offset % kPageBytes && PageDown(s.p_vaddr) >= span_;
    const uint64_t inside = s.p_vaddr % kPageBytes;
    segments_.push_back({.address = s.p_vaddr - inside,
                         .offset = s.p_offset - inside,
                         .file_bytes = s.p_filesz + inside,
                         .memory_bytes = s.p_memsz + inside,
                         .protection = ((s.p_flags & PF_R) != 0 ? PROT_READ : 0) |
                                       ((s.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                                       ((s.p_flags & PF_X) != 0 ? PROT_EXEC : 0)});
    span_ = PageUp(s.p_vaddr + s.p_memsz);
    return is_sound;
  });
  // Offsets are from its first page.
  if (!is_sound || segments_.empty() || segments_.front().address != 0 ||
      segments_.front().offset != 0)
    return Corrupt();
  return {};
}

Status LibraryImage::ReadDynamic() {
  WEFT_ASSIGN(const ElfImage elf, ElfImage::Parse(file_));
  uint64_t address = 0, bytes = 0;
  elf.EachSegment([&](const GElf_Phdr& s) {
    if (s.p_type != PT_DYNAMIC) return true;
    address = s.p_vaddr;
    bytes = s.p_filesz;
    return false;
  });
  WEFT_ASSIGN(const Bytes table, At(address, bytes));
  for (size_t at = 0; at + sizeof(Elf64_Dyn) <= table.size(); at += sizeof(Elf64_Dyn)) {
    const auto entry = ReadAs<Elf64_Dyn>(table.subspan(at));
    if (entry.d_tag == DT_NULL) break;
    dynamic_[entry.d_tag] = entry.d_un.d_val;
  }
  for (const int64_t tag : {DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_RELA, DT_RELASZ})
    if (!dynamic_.contains(tag)) return Corrupt();
  for (const int64_t tag : {DT_REL, DT_RELR, DT_TEXTREL, DT_NEEDED, DT_INIT})
    if (dynamic_.contains(tag))
      return Fail(ErrorCode::kUnsupported,
                  "libweft.so was linked in a way that weft cannot load; build it as weft does");
  return {};
}

Result<Bytes> LibraryImage::At(uint64_t address, uint64_t bytes) const {
  for (const LibrarySegment& s : segments_)
    if (address >= s.address && address - s.address <= s.file_bytes &&
        bytes <= s.file_bytes - (address - s.address))
      return Bytes(file_).subspan(s.offset + (address - s.address), bytes);
  return Corrupt();
}

Result<LibraryImage::Symbol> LibraryImage::SymbolAt(uint64_t number) const {
  if (number > kMaxLibraryBytes) return Corrupt();
  WEFT_ASSIGN(const Bytes bytes,
              At(dynamic_.at(DT_SYMTAB) + number * sizeof(Elf64_Sym), sizeof(Elf64_Sym)));
  const auto symbol = ReadAs<Elf64_Sym>(bytes);
  WEFT_ASSIGN(const Bytes names, At(dynamic_.at(DT_STRTAB), dynamic_.at(DT_STRSZ)));
  if (symbol.st_name >= names.size()) return Corrupt();
  const char* name = reinterpret_cast<const char*>(names.data() + symbol.st_name);
  return Symbol{.name = std::string(name, strnlen(name, names.size() - symbol.st_name)),
                .value = symbol.st_value,
                .is_own = symbol.st_shndx != SHN_UNDEF,
                .is_weak = ELF64_ST_BIND(symbol.st_info) == STB_WEAK};
}

Status LibraryImage::Relocate(uint64_t table, uint64_t bytes, uint64_t base,
                              const std::map<std::string, uint64_t>& given,
                              std::vector<RelocatedWord>& words) const {
  if (bytes / sizeof(Elf64_Rela) > kMaxRelocations) return Corrupt();
  WEFT_ASSIGN(const Bytes entries, At(table, bytes));
  for (size_t at = 0; at + sizeof(Elf64_Rela) <= entries.size(); at += sizeof(Elf64_Rela)) {
    const auto entry = ReadAs<Elf64_Rela>(entries.subspan(at));
    if (span_ < sizeof(uint64_t) || entry.r_offset > span_ - sizeof(uint64_t)) return Corrupt();
    RelocatedWord word{.address = base + entry.r_offset};
    const auto addend = static_cast<uint64_t>(entry.r_addend);
    const auto type = ELF64_R_TYPE(entry.r_info);
    if (type == R_X86_64_RELATIVE) {
      word.value = base + addend;
    } else if (type == R_X86_64_64 || type == R_X86_64_GLOB_DAT || type == R_X86_64_JUMP_SLOT) {
      WEFT_ASSIGN(const Symbol symbol, SymbolAt(ELF64_R_SYM(entry.r_info)));
      const auto found = given.find(symbol.name);
      if (!symbol.is_own && !symbol.is_weak && found == given.end())
        return Fail(ErrorCode::kUnsupported, "libweft.so needs " + symbol.name);
      word.value = symbol.is_own ? base + symbol.value : found == given.end() ? 0 : found->second;
      if (type == R_X86_64_64) word.value += addend;
    } else {
      return Fail(ErrorCode::kUnsupported,
                  "libweft.so has a relocation of type " + std::to_string(type));
    }
    words.push_back(word);
  }
  return {};
}

Result<std::vector<RelocatedWord>> LibraryImage::Relocate(
    uint64_t base, const std::map<std::string, uint64_t>& given) const {
  std::vector<RelocatedWord> words;
  WEFT_TRY(Relocate(dynamic_.at(DT_RELA), dynamic_.at(DT_RELASZ), base, given, words));
  const auto plt = dynamic_.find(DT_JMPREL), size = dynamic_.find(DT_PLTRELSZ);
  if (plt != dynamic_.end() && size != dynamic_.end())
    WEFT_TRY(Relocate(plt->second, size->second, base, given, words));
  return words;
}

std::vector<uint64_t> LibraryImage::Constructors(uint64_t base,
                                                 const std::vector<RelocatedWord>& words) const {
  std::vector<uint64_t> functions;
  const auto array = dynamic_.find(DT_INIT_ARRAY), size = dynamic_.find(DT_INIT_ARRAYSZ);
  if (array == dynamic_.end() || size == dynamic_.end()) return functions;
  const size_t count = std::min<uint64_t>(size->second / sizeof(uint64_t), kMaxConstructors);
  for (size_t i = 0; i < count; ++i)
    for (const RelocatedWord& word : words)
      if (word.address == base + array->second + i * sizeof(uint64_t))
        functions.push_back(word.value);
  return functions;
}

Result<uint64_t> LibraryImage::SymbolOffset(const std::string& name) const {
  const auto hash = dynamic_.find(DT_HASH);
  if (hash == dynamic_.end()) return Corrupt();
  WEFT_ASSIGN(const Bytes head, At(hash->second, 2 * sizeof(uint32_t)));
  const uint64_t count = ReadAs<uint32_t>(head.subspan(sizeof(uint32_t)));
  for (uint64_t i = 0; i < std::min<uint64_t>(count, kMaxRelocations); ++i) {
    WEFT_ASSIGN(const Symbol symbol, SymbolAt(i));
    if (symbol.is_own && symbol.name == name) return symbol.value;
  }
  return Fail(ErrorCode::kNotFound, "libweft.so has no " + name + "; install weft again");
}

}  // namespace weft::attach
