// SPDX-License-Identifier: Apache-2.0
// See elf_file.h. Format: System V ABI, ELF-64.
#include "cli/elf_file.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace weft::cli {
namespace {

// A file with more of these is not worth looking at.
constexpr size_t kMaxEvents = 16384;
constexpr size_t kMaxNeeded = 1024;

class Parser {
 public:
  explicit Parser(Bytes bytes) : bytes_(bytes) {}

  Result<ElfFile> Parse() {
    if (!Get(0, header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0)
      return Fail(ErrorCode::kInvalid, "not an ELF file");
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
      return Fail(ErrorCode::kUnsupported, "not a 64-bit little-endian ELF file");
    file_.is_program = header_.e_type == ET_EXEC || header_.e_entry != 0;
    ReadSegments();
    WEFT_TRY(ReadSections());
    return std::move(file_);
  }

 private:
  template <typename T>
  bool Get(uint64_t offset, T& out) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset) return false;
    std::memcpy(&out, bytes_.data() + offset, sizeof(T));
    return true;
  }

  [[nodiscard]] Bytes Part(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
    return bytes_.subspan(offset, size);
  }

  static std::string TextAt(Bytes table, uint64_t offset) {
    if (offset >= table.size()) return "";
    const auto* begin = reinterpret_cast<const char*>(table.data()) + offset;
    return {begin, strnlen(begin, table.size() - offset)};
  }

  void ReadSegments() {
    for (uint64_t i = 0; i < header_.e_phnum; ++i) {
      Elf64_Phdr segment{};
      if (!Get(header_.e_phoff + i * header_.e_phentsize, segment)) return;
      if (segment.p_type == PT_INTERP) file_.has_interpreter = true;
    }
  }

  Status ReadSections() {
    Elf64_Shdr names{};
    if (header_.e_shoff == 0 ||
        !Get(header_.e_shoff + uint64_t{header_.e_shstrndx} * header_.e_shentsize, names))
      return {};
    const Bytes texts = Part(names.sh_offset, names.sh_size);
    for (uint64_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr section{};
      if (!Get(header_.e_shoff + i * header_.e_shentsize, section)) break;
      if (section.sh_type == SHT_DYNAMIC) ReadDynamic(section);
      if (section.sh_type == SHT_PROGBITS && TextAt(texts, section.sh_name) == "weft_desc")
        WEFT_TRY(ReadEvents(Part(section.sh_offset, section.sh_size)));
    }
    return {};
  }

  void ReadDynamic(const Elf64_Shdr& section) {
    Elf64_Shdr strings{};
    if (!Get(header_.e_shoff + uint64_t{section.sh_link} * header_.e_shentsize, strings)) return;
    const Bytes texts = Part(strings.sh_offset, strings.sh_size);
    const Bytes entries = Part(section.sh_offset, section.sh_size);
    for (size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry{};
      std::memcpy(&entry, entries.data() + at, sizeof(entry));
      if (entry.d_tag == DT_NULL) return;
      const std::string text = TextAt(texts, entry.d_un.d_val);
      if (entry.d_tag == DT_NEEDED && file_.needed.size() < kMaxNeeded)
        file_.needed.push_back(text);
      if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) AddSearch(text);
    }
  }

  void AddSearch(std::string_view list) {
    while (!list.empty()) {
      const size_t colon = list.find(':');
      file_.search.emplace_back(list.substr(0, colon));
      list.remove_prefix(colon == std::string_view::npos ? list.size() : colon + 1);
    }
  }

  Status ReadEvents(Bytes section) {
    while (section.size() >= sizeof(weft_event_desc) && file_.events.size() < kMaxEvents) {
      weft_event_desc header{};
      std::memcpy(&header, section.data(), sizeof(header));
      if (header.size < sizeof(header) || header.size > section.size())
        return Fail(ErrorCode::kCorrupt, "event descriptions: wrong size");
      WEFT_ASSIGN(EventDescription event, EventDescription::Parse(section.first(header.size)));
      file_.events.push_back(std::move(event));
      section = section.subspan(header.size);
    }
    return {};
  }

  Bytes bytes_;
  Elf64_Ehdr header_{};
  ElfFile file_;
};

}  // namespace

Result<ElfFile> ParseElf(Bytes bytes) { return Parser(bytes).Parse(); }

}  // namespace weft::cli
