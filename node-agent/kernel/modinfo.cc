// SPDX-License-Identifier: Apache-2.0
// See modinfo.h.
#include "node-agent/kernel/modinfo.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <vector>

#include "lib/elf/elf_image.h"
#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

// Behind a signed module (the kernel's include/linux/module_signature.h).
constexpr std::string_view kSignature = "~Module signature appended~\n";

Result<Bytes> FindSection(const ElfImage& image, std::string_view name) {
  Result<Bytes> found = Fail(ErrorCode::kNotFound, "no kernel module");
  image.EachSection([&](const ElfSection& section) {
    if (section.name != name) return true;
    const auto bytes = section.bytes();
    if (bytes) found = *bytes;
    if (!bytes) found = Fail(ErrorCode::kCorrupt, "a section is not within the file");
    return false;
  });
  return found;
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
  // The preprocessor wrote the number: "1u".
  if (key == "weft_abi") (void)std::from_chars(value.data(), value.data() + value.size(), info.abi);
}

}  // namespace

Result<ModuleInfo> ParseModuleInfo(Bytes file) {
  const auto image = ElfImage::Parse(file);
  if (!image) {
    const bool is_other = image.error().code == ErrorCode::kUnsupported;
    return Fail(is_other ? ErrorCode::kUnsupported : ErrorCode::kCorrupt, image.error().message);
  }
  WEFT_ASSIGN(const Bytes section, FindSection(*image, ".modinfo"));
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
