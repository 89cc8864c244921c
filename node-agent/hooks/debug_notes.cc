// SPDX-License-Identifier: Apache-2.0
// See debug_notes.h.
#include "node-agent/hooks/debug_notes.h"

#include <elf.h>

#include <cstring>

#include "lib/elf/elf_image.h"
#include "node-agent/hooks/limits.h"

namespace weft::hooks {
namespace {

std::string Hexadecimal(Bytes bytes) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) text.append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
  return text;
}

std::string BuildIdIn(Bytes notes) {
  constexpr size_t kHead = sizeof(Elf64_Nhdr), kName = 4;  // "GNU"
  for (size_t at = 0; at + kHead + kName <= notes.size();) {
    Elf64_Nhdr head{};
    std::memcpy(&head, notes.data() + at, kHead);
    const size_t desc = at + kHead + ((size_t{head.n_namesz} + 3) & ~size_t{3});
    if (head.n_namesz > kMaxNoteBytes || head.n_descsz > kMaxNoteBytes ||
        desc + head.n_descsz > notes.size())
      return "";
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == kName && head.n_descsz > 1 &&
        std::memcmp(notes.data() + at + kHead, "GNU", kName) == 0)
      return Hexadecimal(notes.subspan(desc, head.n_descsz));
    at = desc + ((size_t{head.n_descsz} + 3) & ~size_t{3});
  }
  return "";
}

}  // namespace

Result<DebugNotes> NotesOf(int file) {
  DebugNotes notes;
  WEFT_ASSIGN(const ElfImage image, ElfImage::Read(file));
  image.EachSection([&](const ElfSection& section) {
    if (section.name == ".debug_info" && section.header.sh_type != SHT_NOBITS)
      notes.has_types = true;
    if (section.header.sh_type == SHT_SYMTAB) notes.has_symbols = true;
    if (section.name == kPackedSymbols) notes.has_packed_symbols = true;
    const bool is_id = section.name == ".note.gnu.build-id",
               is_link = section.name == ".gnu_debuglink",
               is_shared = section.name == ".gnu_debugaltlink";
    if ((!is_id && !is_link && !is_shared) || section.header.sh_size > kMaxNoteBytes) return true;
    const auto bytes = section.bytes();
    if (bytes && is_id) notes.build_id = BuildIdIn(*bytes);
    if (bytes && is_link) {
      const auto* text = reinterpret_cast<const char*>(bytes->data());
      notes.link.assign(text, strnlen(text, bytes->size()));
    }
    if (bytes && is_shared) {
      const auto* text = reinterpret_cast<const char*>(bytes->data());
      notes.shared.assign(text, strnlen(text, bytes->size()));
      if (notes.shared.size() < bytes->size())
        notes.shared_id = Hexadecimal(bytes->subspan(notes.shared.size() + 1));
    }
    return true;
  });
  if (notes.link.find('/') != std::string::npos) notes.link.clear();
  return notes;
}

}  // namespace weft::hooks
