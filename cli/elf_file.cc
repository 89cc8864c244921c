// SPDX-License-Identifier: Apache-2.0
// See elf_file.h.
#include "cli/elf_file.h"

#include "lib/elf/elf_image.h"
#include "lib/elf/offered_events.h"

namespace weft::cli {
namespace {

// A file that needs more libraries is not worth looking at.
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

}  // namespace

Result<ElfFile> ParseElf(Bytes bytes) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Parse(bytes));
  ElfFile file;
  file.is_program = image.header().e_type == ET_EXEC || image.header().e_entry != 0;
  image.EachSegment([&file](const GElf_Phdr& segment) {
    file.has_interpreter = file.has_interpreter || segment.p_type == PT_INTERP;
    return true;
  });
  image.EachSection([&](const ElfSection& section) {
    if (section.header.sh_type == SHT_DYNAMIC) ReadDynamic(image, section, file);
    return true;
  });
  uint64_t bytes_left = kMaxDescriptionBytes;
  WEFT_ASSIGN(file.events, OfferedEvents(image, bytes_left));
  return file;
}

}  // namespace weft::cli
