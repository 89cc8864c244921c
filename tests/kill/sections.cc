// SPDX-License-Identifier: Apache-2.0
// See sections.h.
#include "tests/kill/sections.h"

#include <Zydis/Zydis.h>
#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <set>

namespace weft::kill_test {
namespace {

template <typename T>
T At(const std::string& file, uint64_t offset) {
  T value{};
  if (offset + sizeof(T) <= file.size()) memcpy(&value, file.data() + offset, sizeof(T));
  return value;
}

struct Range {
  uint64_t start;
  uint64_t bytes;
};

// The table's pointers are relative relocations: their addends are the addresses.
std::vector<Range> Descriptors(const std::string& file) {
  std::vector<Range> out;
  const auto elf = At<Elf64_Ehdr>(file, 0);
  const auto section = [&](int i) { return At<Elf64_Shdr>(file, elf.e_shoff + 64ULL * i); };
  const auto names = section(elf.e_shstrndx);
  Elf64_Shdr table{};
  for (int i = 0; i < elf.e_shnum; ++i) {
    const auto s = section(i);
    if (std::string(file.c_str() + names.sh_offset + s.sh_name) == "weft_rseq_cs") table = s;
  }
  for (int i = 0; i < elf.e_shnum; ++i) {
    const auto s = section(i);
    if (s.sh_type != SHT_RELA) continue;
    for (uint64_t at = 0; at < s.sh_size; at += sizeof(Elf64_Rela)) {
      const auto r = At<Elf64_Rela>(file, s.sh_offset + at);
      const uint64_t in_table = r.r_offset - table.sh_addr;
      if (in_table >= table.sh_size || in_table % 32 != 8) continue;  // start_ip
      out.push_back(
          {static_cast<uint64_t>(r.r_addend), At<uint64_t>(file, table.sh_offset + in_table + 8)});
    }
  }
  return out;
}

std::vector<Range> Functions(const std::string& file, const std::string& name) {
  std::vector<Range> out;
  const auto elf = At<Elf64_Ehdr>(file, 0);
  const auto section = [&](uint64_t i) {
    return At<Elf64_Shdr>(file, elf.e_shoff + sizeof(Elf64_Shdr) * i);
  };
  for (int i = 0; i < elf.e_shnum; ++i) {
    const auto table = section(i);
    if (table.sh_type != SHT_SYMTAB) continue;
    const uint64_t names = section(table.sh_link).sh_offset;
    for (uint64_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = At<Elf64_Sym>(file, table.sh_offset + at);
      const std::string found = file.c_str() + names + symbol.st_name;
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0) continue;
      if (found == name || found.starts_with(name + "."))
        out.push_back({symbol.st_value, symbol.st_size});
    }
  }
  return out;
}

uint64_t FileOffset(const std::string& file, uint64_t address) {
  const auto elf = At<Elf64_Ehdr>(file, 0);
  for (int i = 0; i < elf.e_phnum; ++i) {
    const auto p = At<Elf64_Phdr>(file, elf.e_phoff + 56ULL * i);
    if (p.p_type == PT_LOAD && address - p.p_vaddr < p.p_filesz) {
      return p.p_offset + address - p.p_vaddr;
    }
  }
  return file.size();
}

// False: there is something that is no instruction.
bool Disassemble(const std::string& file, const Range& range, std::set<uint64_t>* out) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (uint64_t at = range.start; at < range.start + range.bytes;) {
    ZydisDecodedInstruction instruction;
    const uint64_t offset = FileOffset(file, at);
    if (offset + 15 > file.size() ||
        !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, file.data() + offset, 15,
                                                    &instruction))) {
      return false;
    }
    out->insert(at);
    at += instruction.length;
  }
  return true;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<uint64_t> SectionInstructions(const std::string& library) {
  const std::string file = ReadWhole(library);
  std::set<uint64_t> out;
  for (const Range& range : Descriptors(file)) {
    // The first one behind the commit included.
    if (!Disassemble(file, {range.start, range.bytes + 1}, &out)) return {};
  }
  return {out.begin(), out.end()};
}

std::vector<uint64_t> FunctionInstructions(const std::string& library,
                                           const std::vector<std::string>& names) {
  const std::string file = ReadWhole(library);
  std::set<uint64_t> out;
  for (const std::string& name : names) {
    const std::vector<Range> ranges = Functions(file, name);
    if (ranges.empty()) return {};
    for (const Range& range : ranges) {
      if (!Disassemble(file, range, &out)) return {};
    }
  }
  return {out.begin(), out.end()};
}

uint64_t LibraryBase(pid_t pid) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("/libweft.so") != std::string::npos) return std::stoull(line, nullptr, 16);
  }
  return 0;
}

}  // namespace weft::kill_test
