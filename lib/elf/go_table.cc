// SPDX-License-Identifier: Apache-2.0
// See go_table.h.
#include "lib/elf/go_table.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace weft {
namespace {

// The table, and what it points to, lie at addresses that are multiples of this.
constexpr uint64_t kWord = 8;
constexpr size_t kMaxSegments = 64;
constexpr size_t kPieceBytes = size_t{64} << 10;
constexpr size_t kMaxNotesBytes = size_t{64} << 10;
constexpr char kGoNote[] = {'G', 'o', '\0', '\0'};  // name of the note with Go's build id
constexpr const char* kContradicts = "its table of Go's functions (.gopclntab) contradicts itself";

// Bytes 0 to 7: a number for the layout, two zeros, bytes of the shortest instruction and of a
// pointer.
constexpr uint64_t kGo116 = 0x08010000fffffffa;
constexpr uint64_t kGo118 = 0x08010000fffffff0;
constexpr uint64_t kGo120 = 0x08010000fffffff1;

struct Slice {
  uint64_t address, size, capacity;
};

// The begin of runtime.moduledata, which Go 1.16 to 1.26 have.
struct ModuleData {
  uint64_t table;
  Slice names, units, files, counters, records, functions;
  uint64_t search, first, last, text, text_end;
};
static_assert(sizeof(ModuleData) == 192);

struct Header {
  uint64_t address = 0;
  bool is_old = false;  // Go 1.16 and 1.17
  uint64_t functions = 0;
  uint64_t names = 0, records = 0;  // addresses
};

struct Segment {
  GElf_Phdr of;
  [[nodiscard]] bool Has(uint64_t address, uint64_t size) const {
    const uint64_t at = address - of.p_vaddr;
    return address >= of.p_vaddr && at <= of.p_filesz && size <= of.p_filesz - at;
  }
};

// What the program loads of the file, by address.
class LoadedFile {
 public:
  LoadedFile(int file, const ElfImage& image) : file_(file) {
    struct stat st{};
    const uint64_t file_bytes = ::fstat(file, &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
    image.EachSegment([&](const GElf_Phdr& segment) {
      if (segment.p_type == PT_LOAD && segment.p_filesz <= file_bytes &&
          segment.p_offset <= file_bytes - segment.p_filesz &&
          segment.p_vaddr <= UINT64_MAX - segment.p_filesz)
        segments_.push_back({segment});
      return segments_.size() < kMaxSegments;
    });
  }

  bool Read(uint64_t address, void* to, size_t size) const {
    const Segment* segment = Find(address, size);
    if (segment == nullptr) return false;
    const uint64_t offset = segment->of.p_offset + (address - segment->of.p_vaddr);
    return ::pread(file_, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }

  [[nodiscard]] bool IsCode(uint64_t address, uint64_t size) const {
    const Segment* segment = Find(address, size);
    return segment != nullptr && (segment->of.p_flags & PF_X) != 0;
  }

  // Calls `use` with the address and the value of each word of the segments with `flags`, as far as
  // the limit allows, until it returns false.
  template <typename Use>
  void EachWord(uint32_t flags, const Use& use) const {
    std::vector<uint64_t> piece(kPieceBytes / kWord);
    uint64_t left = kMaxGoSearchBytes;
    for (const Segment& segment : segments_) {
      if ((segment.of.p_flags & flags) != flags) continue;
      const uint64_t end = segment.of.p_vaddr + segment.of.p_filesz;
      uint64_t at = (segment.of.p_vaddr + kWord - 1) / kWord * kWord;
      while (at < end && end - at >= kWord && left >= kWord) {
        const uint64_t size = std::min({uint64_t{kPieceBytes}, left, end - at}) / kWord * kWord;
        if (!Read(at, piece.data(), size)) break;
        for (size_t i = 0; i < size / kWord; ++i)
          if (!use(at + i * kWord, piece[i])) return;
        at += size;
        left -= size;
      }
    }
  }

 private:
  [[nodiscard]] const Segment* Find(uint64_t address, uint64_t size) const {
    const auto found = std::ranges::find_if(
        segments_, [&](const Segment& segment) { return segment.Has(address, size); });
    return found == segments_.end() ? nullptr : &*found;
  }

  int file_;
  std::vector<Segment> segments_;
};

bool IsLayout(uint64_t word) { return word == kGo116 || word == kGo118 || word == kGo120; }

std::optional<Header> ReadHeader(const LoadedFile& file, uint64_t address) {
  // Since Go 1.18: the begin of the text stands between the counts and the distances. Not used: the
  // linker may leave it to ld.so, and since Go 1.26 it is empty.
  uint64_t words[9];
  if (!file.Read(address, words, sizeof(words)) || !IsLayout(words[0])) return std::nullopt;
  Header header{.address = address, .is_old = words[0] == kGo116, .functions = words[1]};
  const uint64_t* distances = header.is_old ? words + 3 : words + 4;
  const uint64_t names = distances[0], records = distances[4];
  if (header.functions == 0 || names >= records || records > kMaxElfSectionBytes ||
      address > UINT64_MAX - records)
    return std::nullopt;
  header.names = address + names;
  header.records = address + records;
  return header;
}

std::vector<Header> FindHeaders(const LoadedFile& file, const ElfImage& image) {
  std::vector<Header> found;
  const auto add = [&](uint64_t address) {
    if (const auto header = ReadHeader(file, address)) found.push_back(*header);
    return found.size() < kMaxGoCandidates;
  };
  image.EachSection([&](const ElfSection& section) {
    const bool is_it = section.name == ".gopclntab" || section.name == ".data.rel.ro.gopclntab";
    return !is_it || add(section.header.sh_addr);
  });
  // gcc puts the latter into .data.rel.ro, and a program may have no sections.
  if (found.empty())
    file.EachWord(PF_R,
                  [&](uint64_t address, uint64_t word) { return !IsLayout(word) || add(address); });
  return found;
}

bool IsModuleOf(const ModuleData& module, const Header& header, const LoadedFile& file) {
  return module.table == header.address && module.names.address == header.names &&
         module.records.address == header.records && module.functions.address == header.records &&
         module.functions.size == header.functions + 1 && module.text <= module.first &&
         module.first < module.last && module.last <= module.text_end &&
         file.IsCode(module.text, module.text_end - module.text);
}

struct Table {
  Header header;
  ModuleData module;
};

std::optional<Table> FindTable(const LoadedFile& file, const ElfImage& image) {
  const std::vector<Header> headers = FindHeaders(file, image);
  if (headers.empty()) return std::nullopt;
  std::optional<Table> found;
  size_t candidates = 0;
  file.EachWord(PF_R | PF_W, [&](uint64_t address, uint64_t word) {
    const auto header = std::ranges::find(headers, word, &Header::address);
    if (header == headers.end()) return true;
    ModuleData module{};
    if (file.Read(address, &module, sizeof(module)) && IsModuleOf(module, *header, file))
      found = {*header, module};
    return !found && ++candidates < kMaxGoCandidates;
  });
  return found;
}

// The bytes of a table's two parts.
class TableBytes {
 public:
  Status Read(const LoadedFile& file, const Table& table) {
    table_ = table;
    const Slice& names = table.module.names;
    const Slice& records = table.module.records;
    if (table.header.functions > kMaxGoFunctions || names.size > kMaxElfSectionBytes ||
        records.size > kMaxElfSectionBytes)
      return Fail(ErrorCode::kLimit, "its table of Go's functions (.gopclntab) is too long");
    const uint64_t fields = table.header.functions * 2 + 1;
    if (fields * field_bytes() > records.size) return Fail(ErrorCode::kInvalid, kContradicts);
    names_.resize(names.size);
    records_.resize(records.size);
    if (!file.Read(names.address, names_.data(), names_.size()) ||
        !file.Read(records.address, records_.data(), records_.size()))
      return Fail(ErrorCode::kInvalid, kContradicts);
    return {};
  }

  // `index`: at most the number of functions; that one is the end.
  [[nodiscard]] uint64_t Address(size_t index) const {
    return (table_.header.is_old ? 0 : table_.module.text) + Field(index * 2);
  }

  // Empty: there is none.
  [[nodiscard]] std::string_view Name(size_t index) const {
    const uint64_t record = Field(index * 2 + 1);
    const size_t behind_address = field_bytes();
    uint32_t name = 0;
    if (record > records_.size() || records_.size() - record < behind_address + sizeof(name))
      return {};
    std::memcpy(&name, records_.data() + record + behind_address, sizeof(name));
    if (name >= names_.size()) return {};
    const char* text = names_.data() + name;
    const size_t size = ::strnlen(text, names_.size() - name);
    return size == names_.size() - name ? std::string_view() : std::string_view(text, size);
  }

 private:
  [[nodiscard]] size_t field_bytes() const {
    return table_.header.is_old ? sizeof(uint64_t) : sizeof(uint32_t);
  }

  [[nodiscard]] uint64_t Field(size_t index) const {
    uint64_t value = 0;
    std::memcpy(&value, records_.data() + index * field_bytes(), field_bytes());
    return value;
  }

  Table table_{};
  std::vector<char> names_;
  std::vector<uint8_t> records_;
};

bool HasGoNote(const ElfImage& image, const GElf_Phdr& segment) {
  if (segment.p_filesz > kMaxNotesBytes || segment.p_offset > INT64_MAX) return false;
  Elf_Data* data = elf_getdata_rawchunk(image.get(), static_cast<int64_t>(segment.p_offset),
                                        segment.p_filesz, ELF_T_NHDR);
  if (data == nullptr || data->d_buf == nullptr) return false;
  size_t at = 0, name = 0, content = 0;
  GElf_Nhdr note{};
  while ((at = gelf_getnote(data, at, &note, &name, &content)) != 0)
    if (note.n_namesz == sizeof(kGoNote) &&
        std::memcmp(static_cast<const char*>(data->d_buf) + name, kGoNote, sizeof(kGoNote)) == 0)
      return true;
  return false;
}

}  // namespace

bool IsGoProgram(const ElfImage& image) {
  bool is_go = false;
  image.EachSection([&](const ElfSection& section) {
    is_go = section.name == ".gopclntab" || section.name == ".go.buildinfo" ||
            section.name == ".note.go.buildid";
    return !is_go;
  });
  if (is_go) return true;
  size_t seen = 0;
  image.EachSegment([&](const GElf_Phdr& segment) {
    is_go = segment.p_type == PT_NOTE && HasGoNote(image, segment);
    return !is_go && ++seen < kMaxSegments;
  });
  return is_go;
}

Status EachGoFunction(int file, const ElfImage& image,
                      const std::function<void(const GoFunction&)>& use) {
  const LoadedFile loaded(file, image);
  const auto found = FindTable(loaded, image);
  if (!found)
    return Fail(ErrorCode::kNotFound,
                "it has no table of Go's functions (.gopclntab) as Go 1.16 to 1.26 write it");
  TableBytes table;
  WEFT_TRY(table.Read(loaded, *found));
  const uint64_t count = found->header.functions;
  for (size_t i = 0; i < count; ++i)
    if (table.Address(i) < found->module.text || table.Address(i) >= table.Address(i + 1) ||
        table.Address(i + 1) > found->module.text_end)
      return Fail(ErrorCode::kInvalid, kContradicts);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = table.Name(i);
    if (name.empty()) continue;
    use({.name = name,
         .address = table.Address(i),
         .size = table.Address(i + 1) - table.Address(i)});
  }
  return {};
}

}  // namespace weft
