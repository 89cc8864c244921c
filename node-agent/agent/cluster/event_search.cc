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
    if (found_.processes >= kMaxSearchedProcesses) {
      found_.is_complete = false;
      return;
    }
    const auto mappings = ReadMappings(pid, kMaxMapsBytes);
    if (!mappings || !HasLibrary(*mappings)) return;  // it may have ended
    // One that ends meanwhile does not count: its files were not all read.
    bool is_there = true;
    for (const Mapping& mapping : *mappings)
      if (mapping.name.starts_with('/')) is_there &= ReadOnce(pid, mapping);
    found_.processes += is_there ? 1 : 0;
  }
  OfferedBySome Take() { return std::move(found_); }

 private:
  // Returns whether the file is still mapped. If not, it is read as soon as another process has it.
  bool ReadOnce(int32_t pid, const Mapping& mapping) {
    const FileId id{mapping.device, mapping.inode};
    if (seen_.contains(id)) return true;
    if (seen_.size() >= kMaxSearchedFiles || found_.events.size() >= kMaxOfferedEvents) {
      found_.is_complete = false;
      return true;
    }
    const auto file = OpenMappedFile(pid, mapping);
    if (!file && file.error().code == ErrorCode::kNotFound) return false;
    seen_.insert(id);
    if (file) {
      ReadFile(file->get());
    } else {
      // One that is not regular is no object. Another one may be.
      found_.is_complete &= file.error().code == ErrorCode::kInvalid;
    }
    return true;
  }

  void ReadFile(int file) {
    const auto image = ElfImage::Read(file);
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
    // A file may offer more than OfferedEvents returns.
    found_.is_complete &= events->size() < kMaxOfferedEvents;
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
