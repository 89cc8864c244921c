// SPDX-License-Identifier: Apache-2.0
// See elf_file.h.
#include "cli/elf_file.h"

#include <cstring>

#include "lib/elf/elf_image.h"

namespace weft::cli {
namespace {

// A file with more of these is not worth looking at.
constexpr size_t kMaxEvents = 16384;
constexpr size_t kMaxNeeded = 1024;

void AddSearch(std::string_view list, ElfFile& file) {
  while (!list.empty()) {
    const size_t colon = list.find(':');
    file.search.emplace_back(list.substr(0, colon));
    list.remove_prefix(colon == std::string_view::npos ? list.size() : colon + 1);
  }
}

void ReadDynamic(const ElfImage& image, const ElfSection& section, ElfFile& file) {
  Elf_Data* data = section.data();
  GElf_Dyn entry{};
  for (int i = 0; data != nullptr && gelf_getdyn(data, i, &entry) != nullptr; ++i) {
    if (entry.d_tag == DT_NULL) return;
    const bool is_needed = entry.d_tag == DT_NEEDED && file.needed.size() < kMaxNeeded;
    const bool is_search = entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH;
    if (!is_needed && !is_search) continue;
    const char* text = image.Text(section.header.sh_link, entry.d_un.d_val);
    if (text == nullptr) continue;
    if (is_needed) file.needed.emplace_back(text);
    if (is_search) AddSearch(text, file);
  }
}

Status ReadEvents(Bytes section, ElfFile& file) {
  while (section.size() >= sizeof(weft_event_desc) && file.events.size() < kMaxEvents) {
    weft_event_desc header{};
    std::memcpy(&header, section.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > section.size())
      return Fail(ErrorCode::kCorrupt, "event descriptions: wrong size");
    WEFT_ASSIGN(EventDescription event, EventDescription::Parse(section.first(header.size)));
    file.events.push_back(std::move(event));
    section = section.subspan(header.size);
  }
  return {};
}

}  // namespace

Result<ElfFile> ParseElf(Bytes bytes) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Parse(bytes));
  ElfFile file;
  file.is_program = image.header().e_type == ET_EXEC || image.header().e_entry != 0;
  image.EachSegment([&file](const GElf_Phdr& segment) {
    file.has_interpreter = file.has_interpreter || segment.p_type == PT_INTERP;
    return true;
  });
  Status status;
  image.EachSection([&](const ElfSection& section) {
    if (section.header.sh_type == SHT_DYNAMIC) ReadDynamic(image, section, file);
    if (section.header.sh_type == SHT_PROGBITS && section.name == "weft_desc")
      status = ReadEvents(section.bytes().value_or(Bytes()), file);
    return status.has_value();
  });
  if (!status) return std::unexpected(std::move(status.error()));
  return file;
}

}  // namespace weft::cli
