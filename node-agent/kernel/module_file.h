// SPDX-License-Identifier: Apache-2.0
// For tests: makes the smallest ELF file with a .modinfo.
#ifndef WEFT_NODE_AGENT_KERNEL_MODULE_FILE_H_
#define WEFT_NODE_AGENT_KERNEL_MODULE_FILE_H_

#include <elf.h>

#include <cstring>
#include <string>
#include <vector>

namespace weft::kernel::testing {

// Texts "key=value" to the bytes of a module's file.
inline std::string ModuleFile(const std::vector<std::string>& texts) {
  std::string modinfo;
  for (const std::string& text : texts) modinfo += text + '\0';
  const std::string names("\0.modinfo\0.shstrtab\0", 20);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_version = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_shoff = sizeof(header);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 2;
  Elf64_Shdr sections[3] = {};
  const uint64_t begin = sizeof(header) + sizeof(sections);
  sections[1] = {
      .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = begin, .sh_size = modinfo.size()};
  sections[2] = {.sh_name = 10,
                 .sh_type = SHT_STRTAB,
                 .sh_offset = begin + modinfo.size(),
                 .sh_size = names.size()};
  std::string file(reinterpret_cast<const char*>(&header), sizeof(header));
  file.append(reinterpret_cast<const char*>(sections), sizeof(sections));
  return file + modinfo + names;
}

}  // namespace weft::kernel::testing

#endif  // WEFT_NODE_AGENT_KERNEL_MODULE_FILE_H_
