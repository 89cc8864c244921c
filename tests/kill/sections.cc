// SPDX-License-Identifier: Apache-2.0
// See sections.h.
#include "tests/kill/sections.h"

#include <Zydis/Zydis.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "lib/base/unique_fd.h"

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

// The places to which an instruction leads; 0: none.
struct Step {
  uint64_t next = 0;    // right behind it
  uint64_t target = 0;  // of a jump
};

// Returns false if something is no instruction, or jumps to where a register says.
bool FollowSteps(const std::string& file, const Range& range, std::map<uint64_t, Step>* out) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (uint64_t at = range.start; at < range.start + range.bytes;) {
    ZydisDecodedInstruction i;
    const uint64_t offset = FileOffset(file, at);
    if (offset + 15 > file.size() || !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
                                         &decoder, nullptr, file.data() + offset, 15, &i))) {
      return false;
    }
    const auto category = i.meta.category;
    const bool jumps = category == ZYDIS_CATEGORY_UNCOND_BR || category == ZYDIS_CATEGORY_COND_BR;
    if (jumps && !i.raw.imm[0].is_relative) return false;
    Step step;
    if (category != ZYDIS_CATEGORY_UNCOND_BR && category != ZYDIS_CATEGORY_RET)
      step.next = at + i.length;
    if (jumps) step.target = at + i.length + static_cast<uint64_t>(i.raw.imm[0].value.s);
    (*out)[at] = step;
    at += i.length;
  }
  return true;
}

// Returns the instructions that are executed one after the other from `at` on, up to a jump.
std::vector<uint64_t> Straight(const std::map<uint64_t, Step>& steps, uint64_t at) {
  std::vector<uint64_t> out;
  for (auto i = steps.find(at); i != steps.end(); i = steps.find(i->second.next)) {
    out.push_back(i->first);
    if (i->second.target != 0) break;
  }
  return out;
}

// Maps instructions to source lines, from the library's debug information.
class Lines {
 public:
  explicit Lines(const std::string& library)
      : fd_(open(library.c_str(), O_RDONLY | O_CLOEXEC)),
        dwarf_(dwarf_begin(fd_.get(), DWARF_C_READ)) {}
  ~Lines() { dwarf_end(dwarf_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Does it contain one of these texts?
  [[nodiscard]] bool Has(uint64_t instruction, const std::vector<std::string>& texts) const {
    const std::string line = Line(instruction);
    return std::ranges::any_of(
        texts, [&](const std::string& text) { return line.find(text) != std::string::npos; });
  }

  // Returns the path of the source file that was compiled to it.
  [[nodiscard]] std::string SourceFile(uint64_t instruction) const {
    Dwarf_Die unit;
    if (dwarf_addrdie(dwarf_, instruction, &unit) == nullptr) return "";
    const char* const name = dwarf_diename(&unit);
    return name == nullptr ? "" : name;
  }

 private:
  [[nodiscard]] std::string Line(uint64_t instruction) const {
    Dwarf_Die unit;
    if (dwarf_addrdie(dwarf_, instruction, &unit) == nullptr) return "";
    Dwarf_Line* const at = dwarf_getsrc_die(&unit, instruction);
    int number = 0;
    if (at == nullptr || dwarf_lineno(at, &number) != 0) return "";
    // The path is relative to the folder in which the compiler ran.
    std::ifstream source(std::filesystem::path(WEFT_BINARY_DIR) /
                         dwarf_linesrc(at, nullptr, nullptr));
    std::string line;
    for (int n = 0; n < number; ++n) std::getline(source, line);
    return line;
  }

  UniqueFd fd_;
  Dwarf* dwarf_;
};

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

std::vector<uint64_t> SectionInstructions(const std::string& library,
                                          const std::vector<std::string>& without_files) {
  const std::string file = ReadWhole(library);
  const Lines lines(library);
  std::map<uint64_t, Step> steps;
  std::set<std::string> left_out;
  for (const Range& range : Descriptors(file)) {
    const std::string source = lines.SourceFile(range.start);
    const auto without = std::ranges::find_if(
        without_files, [&](const std::string& name) { return source.ends_with("/" + name); });
    if (without != without_files.end()) {
      left_out.insert(*without);
      continue;
    }
    // The first instruction behind the commit is included.
    if (!FollowSteps(file, {range.start, range.bytes + 1}, &steps)) return {};
  }
  if (left_out.size() != without_files.size()) return {};
  std::vector<uint64_t> out;
  out.reserve(steps.size());
  for (const auto& [at, step] : steps) out.push_back(at);
  return out;
}

std::vector<uint64_t> FunctionInstructions(const std::string& library,
                                           const std::vector<std::string>& names,
                                           const std::vector<std::string>& without) {
  const std::string file = ReadWhole(library);
  const Lines lines(library);
  std::map<uint64_t, Step> steps;
  std::vector<uint64_t> todo;
  for (const std::string& name : names) {
    const std::vector<Range> ranges = Functions(file, name);
    if (ranges.empty()) return {};
    for (const Range& range : ranges) {
      if (!FollowSteps(file, range, &steps)) return {};
      todo.push_back(range.start);
    }
  }
  for (const std::string& text : without)
    if (std::ranges::none_of(steps, [&](const auto& s) { return lines.Has(s.first, {text}); }))
      return {};
  std::set<uint64_t> out;
  while (!todo.empty()) {
    const uint64_t at = todo.back();
    todo.pop_back();
    if (!steps.contains(at) || out.contains(at)) continue;
    const std::vector<uint64_t> run = Straight(steps, at);
    if (std::ranges::any_of(run, [&](uint64_t i) { return lines.Has(i, without); })) continue;
    out.insert(run.begin(), run.end());
    todo.push_back(steps[run.back()].target);
    todo.push_back(steps[run.back()].next);
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
