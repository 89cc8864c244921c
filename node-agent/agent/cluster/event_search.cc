// SPDX-License-Identifier: Apache-2.0
// See event_search.h.
#include "node-agent/agent/cluster/event_search.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "lib/base/processes.h"
#include "lib/elf/offered_events.h"
#include "node-agent/agent/base/limits.h"
#include "node-agent/agent/discovery/memory_maps.h"

namespace weft::agent {
namespace {

using FileId = std::pair<dev_t, uint64_t>;

// The library's file, also where an agent loaded it (attach/load_library.h). A tenant may map a
// file with such a name: its program then counts, which does no harm.
bool HasLibrary(const std::vector<Mapping>& mappings) {
  return std::ranges::any_of(mappings, [](const Mapping& mapping) {
    return mapping.name.find("libweft.so") != std::string::npos;
  });
}

// libelf reads the whole table of sections' names. A file may also have none.
bool HasShortNames(const ElfImage& image) {
  size_t index = 0;
  GElf_Shdr header{};
  return elf_getshdrstrndx(image.get(), &index) == 0 &&
         gelf_getshdr(elf_getscn(image.get(), index), &header) != nullptr &&
         header.sh_size <= kMaxSectionNames;
}

class Search {
 public:
  void LookAt(int32_t pid) {
    const auto mappings = ReadMappings(pid, kMaxMapsBytes);
    if (!mappings || !HasLibrary(*mappings)) return;  // it may have ended
    if (found_.processes++ >= kMaxSearchedProcesses) {
      found_.is_complete = false;
      return;
    }
    for (const Mapping& mapping : *mappings)
      if (mapping.name.starts_with('/') && seen_.insert({mapping.device, mapping.inode}).second)
        ReadFile(pid, mapping);
  }
  OfferedBySome Take() { return std::move(found_); }

 private:
  void ReadFile(int32_t pid, const Mapping& mapping) {
    if (seen_.size() > kMaxSearchedFiles || found_.events.size() >= kMaxOfferedEvents) {
      found_.is_complete = false;
      return;
    }
    const auto file = OpenMappedFile(pid, mapping);
    if (!file) {
      // It is unmapped by now, or not regular and so no object. Else it may be one.
      const ErrorCode code = file.error().code;
      found_.is_complete &= code == ErrorCode::kNotFound || code == ErrorCode::kInvalid;
      return;
    }
    const auto image = ElfImage::Read(file->get());
    if (!image) {
      // Data, or an object of another kind of machine.
      const ErrorCode code = image.error().code;
      found_.is_complete &= code == ErrorCode::kInvalid || code == ErrorCode::kUnsupported;
      return;
    }
    auto events = HasShortNames(*image) ? OfferedEvents(*image, bytes_left_)
                                        : Fail(ErrorCode::kLimit, "no names, or too many");
    if (!events) {
      found_.is_complete = false;
      return;
    }
    std::ranges::move(*events, std::back_inserter(found_.events));
  }

  OfferedBySome found_;
  uint64_t bytes_left_ = kMaxDescriptionBytes;
  std::set<FileId> seen_;
};

}  // namespace

OfferedBySome SearchEvents(const std::function<bool(int32_t pid)>& is_meant) {
  Search search;
  for (const int32_t pid : AllProcesses())
    if (is_meant(pid)) search.LookAt(pid);
  return search.Take();
}

}  // namespace weft::agent
