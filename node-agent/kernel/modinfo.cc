// SPDX-License-Identifier: Apache-2.0
// See modinfo.h.
#include "node-agent/kernel/modinfo.h"

#include <elf.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

// Behind a signed module (the kernel's include/linux/module_signature.h).
constexpr std::string_view kSignature = "~Module signature appended~\n";

// What the reader of `bytes` finds at `offset`.
template <typename T>
Result<T> At(Bytes bytes, uint64_t offset, const char* what) {
  if (offset <= bytes.size()) {
    ByteReader reader(bytes.subspan(offset));
    const T value = reader.Read<T>();
    if (reader.ok()) return value;
  }
  return Fail(ErrorCode::kCorrupt, std::string(what) + ": beyond the file's end");
}

Result<Bytes> ContentOf(Bytes file, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > file.size() ||
      section.sh_size > file.size() - section.sh_offset)
    return Fail(ErrorCode::kCorrupt, "a section is not within the file");
  return file.subspan(section.sh_offset, section.sh_size);
}

bool IsNamed(Bytes names, uint32_t at, std::string_view name) {
  if (at > names.size()) return false;
  ByteReader reader(names.subspan(at));
  return reader.ReadCString() == name && reader.ok();
}

Result<Bytes> FindSection(Bytes file, std::string_view name) {
  WEFT_ASSIGN(const auto header, At<Elf64_Ehdr>(file, 0, "the header"));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return Fail(ErrorCode::kCorrupt, "no ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return Fail(ErrorCode::kUnsupported, "not of 64 bits, little-endian");
  if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > file.size())
    return Fail(ErrorCode::kCorrupt, "the sections are not within the file");
  const auto section = [&](uint16_t number) {
    return At<Elf64_Shdr>(file, header.e_shoff + uint64_t{number} * sizeof(Elf64_Shdr),
                          "a section's header");
  };
  WEFT_ASSIGN(const Elf64_Shdr of_names, section(header.e_shstrndx));
  WEFT_ASSIGN(const Bytes names, ContentOf(file, of_names));
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    WEFT_ASSIGN(const Elf64_Shdr one, section(i));
    if (IsNamed(names, one.sh_name, name)) return ContentOf(file, one);
  }
  return Fail(ErrorCode::kNotFound, "no kernel module");
}

void Take(std::string_view text, ModuleInfo& info) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return;
  const std::string_view key = text.substr(0, equals);
  const std::string_view value = text.substr(equals + 1, kMaxModinfoText);
  if (key == "name") info.name = value;
  if (key == "version") info.version = value;
  if (key == "srcversion") info.srcversion = value;
  if (key == "vermagic") info.vermagic = value;
  // As the preprocessor has it: "1u".
  if (key == "weft_abi") (void)std::from_chars(value.data(), value.data() + value.size(), info.abi);
}

}  // namespace

Result<ModuleInfo> ParseModuleInfo(Bytes file) {
  WEFT_ASSIGN(const Bytes section, FindSection(file, ".modinfo"));
  ModuleInfo info;
  ByteReader reader(section);
  while (reader.remaining() > 0) {
    const std::string_view text = reader.ReadCString();
    if (!reader.ok()) return Fail(ErrorCode::kCorrupt, ".modinfo: its last text has no end");
    Take(text, info);
  }
  const std::string_view whole(reinterpret_cast<const char*>(file.data()), file.size());
  info.is_signed = whole.ends_with(kSignature);
  return info;
}

Result<ModuleInfo> ReadModuleInfo(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return Fail(ErrorCode::kNotFound, path + ": not there");
  const auto size = in.tellg();
  if (size < 0 || static_cast<uint64_t>(size) > kMaxModuleBytes)
    return Fail(ErrorCode::kLimit, path + ": too large for weft.ko");
  std::vector<uint8_t> bytes(static_cast<size_t>(size));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), size);
  if (in.gcount() != size) return Fail(ErrorCode::kIo, path + ": cannot be read");
  auto info = ParseModuleInfo(bytes);
  if (!info) return std::unexpected(std::move(info.error()).Context(path));
  return info;
}

}  // namespace weft::kernel
