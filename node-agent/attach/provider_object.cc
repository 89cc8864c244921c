// SPDX-License-Identifier: Apache-2.0
// See provider_object.h.
#include "node-agent/attach/provider_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

#include "lib/elf/elf_image.h"
#include "node-agent/attach/limits.h"

namespace weft::attach {
namespace {

constexpr uint64_t kMaxAddress = uint64_t{1} << 47;
constexpr uint64_t kMaxEntries = 1 << 20;
constexpr uint64_t kMaxNoteBytes = 4096;  // it has some 30

// Behind the head: a name of 8 bytes, then the distance of the object from there.
constexpr char kName[8] = "weft";
constexpr size_t kDistanceOffset = sizeof(Elf64_Nhdr) + sizeof(kName);

// Returns the address of the object that the first note names; 0: none does.
uint64_t ObjectOf(Bytes notes, uint64_t address) {
  Elf64_Nhdr head{};
  int64_t distance = 0;
  if (notes.size() < kDistanceOffset + sizeof(distance)) return 0;
  std::memcpy(&head, notes.data(), sizeof(head));
  std::memcpy(&distance, notes.data() + kDistanceOffset, sizeof(distance));
  if (head.n_type != WEFT_NOTE_OBJECT || head.n_namesz != 5 || head.n_descsz != sizeof(distance) ||
      std::memcmp(notes.data() + sizeof(head), kName, sizeof(kName)) != 0)
    return 0;
  return address + kDistanceOffset + static_cast<uint64_t>(distance);
}

}  // namespace

Result<std::optional<ProviderObject>> FindProviderObject(int file) {
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  uint64_t lowest = UINT64_MAX, end = 0;
  image.EachSegment([&](const GElf_Phdr& segment) {
    if (segment.p_type != PT_LOAD) return true;
    lowest = std::min<uint64_t>(lowest, segment.p_vaddr);
    // The object is zero at first, and may lie behind what the file has of its segment.
    const uint64_t bytes = std::min<uint64_t>(segment.p_memsz, kMaxAddress);
    end = std::max(end, std::min<uint64_t>(segment.p_vaddr, kMaxAddress) + bytes);
    return true;
  });
  if (lowest > kMaxAddress) return std::nullopt;
  lowest &= ~(kPageBytes - 1);
  ProviderObject found;
  bool is_sound = true, is_noted = false;
  image.EachSection([&](const ElfSection& section) {
    const GElf_Shdr& h = section.header;
    if (section.name == ".note.weft") {
      if (is_noted || h.sh_size > kMaxNoteBytes) return true;
      is_noted = true;
      if (const auto bytes = section.bytes()) found.object = ObjectOf(*bytes, h.sh_addr);
      return true;
    }
    const bool is_tracepoints = section.name == "weft_tracepoints";
    const bool is_events = section.name == "weft_events";
    if (!is_tracepoints && !is_events && section.name != "weft_arguments") return true;
    const uint64_t count = h.sh_size / sizeof(uint64_t);
    is_sound = is_sound && h.sh_addr >= lowest && h.sh_addr < kMaxAddress &&
               h.sh_addr % sizeof(uint64_t) == 0 && count <= kMaxEntries;
    const uint64_t address = h.sh_addr - lowest;
    if (is_tracepoints) {
      found.tracepoints = address;
      found.tracepoint_count = static_cast<uint32_t>(count);
    } else if (is_events) {
      found.events = address;
      found.event_count = static_cast<uint32_t>(count);
    } else {
      found.arguments = address;
      found.argument_bytes = h.sh_size;
    }
    return true;
  });
  if (found.object == 0) return std::nullopt;
  if (!is_sound || found.object < lowest || found.object >= kMaxAddress || found.object % 8 != 0 ||
      found.object + sizeof(weft_object) > end)
    return Fail(ErrorCode::kCorrupt, "its tracepoints contradict themselves");
  found.object -= lowest;
  return found;
}

weft_object MakeObject(const ProviderObject& provider, uint64_t base, uint64_t list) {
  weft_object object{};
  object.size = sizeof(object);
  object.abi = WEFT_TRACEPOINT_ABI;
  if (provider.tracepoint_count != 0)
    object.tracepoints = reinterpret_cast<weft_tracepoint* const*>(base + provider.tracepoints);
  if (provider.event_count != 0)
    object.events = reinterpret_cast<weft_event* const*>(base + provider.events);
  object.tracepoint_count = provider.tracepoint_count;
  object.event_count = provider.event_count;
  object.arguments = reinterpret_cast<const weft_arguments_list*>(list);
  return object;
}

}  // namespace weft::attach
