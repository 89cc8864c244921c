// SPDX-License-Identifier: Apache-2.0
// See user_program.h.
#include "node-agent/kernel/user_program.h"

#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "node-agent/kernel/limits.h"

namespace weft::kernel {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#endif

constexpr std::string_view kUsdtSection = ".note.stapsdt";
constexpr std::string_view kUsdtOwner = "stapsdt";
constexpr uint32_t kUsdtType = 3;

// Takes text up to a NUL, which must be there.
std::optional<std::string> TakeText(std::string_view* bytes) {
  const size_t end = bytes->find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  std::string text(bytes->substr(0, end));
  bytes->remove_prefix(end + 1);
  return text;
}

std::string_view AsText(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

Result<UserProgram> UserProgram::Read(int file) { return Make(ElfImage::Read(file)); }

Result<UserProgram> UserProgram::Parse(Bytes bytes) { return Make(ElfImage::Parse(bytes)); }

Result<UserProgram> UserProgram::Make(Result<ElfImage> image) {
  if (!image) return std::unexpected(std::move(image.error()));
  UserProgram program(std::move(*image));
  WEFT_TRY(program.ReadHeaders());
  return program;
}

Status UserProgram::ReadHeaders() {
  const GElf_Ehdr& header = image_.header();
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
    return Fail(ErrorCode::kInvalid, "neither a program nor a library");
  if (header.e_machine != kMachine)
    return Fail(ErrorCode::kUnsupported, "a program of another machine");
  image_.EachSegment([this](const GElf_Phdr& segment) {
    if (segment.p_type == PT_LOAD)
      segments_.push_back({.address = segment.p_vaddr,
                           .size = segment.p_filesz,
                           .offset = segment.p_offset,
                           .executable = (segment.p_flags & PF_X) != 0,
                           .writable = (segment.p_flags & PF_W) != 0});
    return segments_.size() < kMaxSegments;
  });
  image_.EachSection([this](const ElfSection& section) {
    if (section.name == ".stapsdt.base") usdt_base_ = section.header.sh_addr;
    is_go_ |= section.name == ".go.buildinfo" || section.name == ".note.go.buildid";
    return true;
  });
  return {};
}

template <typename Use>
void UserProgram::EachSymbol(const Use& use) const {
  image_.EachSection([this, &use](const ElfSection& section) {
    const GElf_Shdr& header = section.header;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) return true;
    if (header.sh_size > kMaxSymbolBytes) return true;
    Elf_Data* data = section.data();
    if (data == nullptr || data->d_buf == nullptr) return true;
    const size_t count = data->d_size / sizeof(Elf64_Sym);
    for (size_t i = 0; i < count; ++i) {
      GElf_Sym symbol{};
      if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
      if (symbol.st_shndx == SHN_UNDEF) continue;
      const char* name = image_.Text(header.sh_link, symbol.st_name);
      if (name == nullptr) continue;
      if (!use(Symbol{.name = name,
                      .address = symbol.st_value,
                      .size = symbol.st_size,
                      .type = static_cast<uint8_t>(GELF_ST_TYPE(symbol.st_info))}))
        return false;
    }
    return true;
  });
}

std::optional<uint64_t> UserProgram::OffsetOf(uint64_t address, bool executable) const {
  for (const Segment& segment : segments_) {
    if (address < segment.address || address - segment.address >= segment.size) continue;
    if (executable && !segment.executable) continue;
    const uint64_t offset = segment.offset + (address - segment.address);
    if (offset >= segment.offset && offset <= INT64_MAX) return offset;
  }
  return std::nullopt;
}

Result<uint64_t> UserProgram::FindFunction(const std::string& name, uint64_t offset) const {
  std::set<uint64_t> addresses;
  uint64_t size = 0;
  bool indirect = false;
  EachSymbol([&](const Symbol& symbol) {
    if ((symbol.type != STT_FUNC && symbol.type != STT_GNU_IFUNC) || symbol.name != name)
      return true;
    indirect |= symbol.type == STT_GNU_IFUNC;
    addresses.insert(symbol.address);
    size = std::max(size, symbol.size);
    return true;
  });
  const std::string quoted = "function '" + name + "'";
  if (addresses.empty()) return Fail(ErrorCode::kNotFound, "it has no " + quoted);
  if (addresses.size() > 1)
    return Fail(ErrorCode::kConflict, "it has " + std::to_string(addresses.size()) +
                                          " functions of the name '" + name + "'");
  if (indirect)
    return Fail(ErrorCode::kUnsupported, quoted + " is chosen when the program starts (an ifunc)");
  if (offset != 0 && offset >= size)
    return Fail(ErrorCode::kInvalid, quoted + " has only " + std::to_string(size) + " bytes");
  const auto place = OffsetOf(*addresses.begin() + offset, /*executable=*/true);
  if (!place) return Fail(ErrorCode::kCorrupt, quoted + " is not in the file");
  return *place;
}

std::optional<uint64_t> UserProgram::AddressOf(const std::string& variable) const {
  std::optional<uint64_t> address;
  EachSymbol([&](const Symbol& symbol) {
    if (symbol.type == STT_TLS || symbol.type == STT_SECTION || symbol.name != variable)
      return true;
    address = symbol.address;
    return false;
  });
  return address;
}

template <typename Use>
void UserProgram::EachUsdtNote(const Use& use) const {
  image_.EachSection([&use](const ElfSection& section) {
    if (section.header.sh_type != SHT_NOTE || section.name != kUsdtSection) return true;
    if (section.header.sh_size > kMaxSymbolBytes) return true;
    Elf_Data* data = section.data();
    if (data == nullptr || data->d_buf == nullptr) return true;
    const Bytes bytes(static_cast<const uint8_t*>(data->d_buf), data->d_size);
    GElf_Nhdr note{};
    size_t at = 0;
    size_t owner = 0;
    size_t content = 0;
    while ((at = gelf_getnote(data, at, &note, &owner, &content)) > 0) {
      if (note.n_type != kUsdtType || note.n_namesz != kUsdtOwner.size() + 1 ||
          AsText(bytes.subspan(owner, kUsdtOwner.size())) != kUsdtOwner)
        continue;
      if (!use(bytes.subspan(content, note.n_descsz))) return false;
    }
    return true;
  });
}

// The kernel goes by the place in the file: it raises the counter in the first writable mapping of
// that page. If a linker lets two mappings share a page of the file (mold does, in small programs),
// that memory is not the counter.
Result<uint64_t> UserProgram::SemaphoreAt(uint64_t address) const {
  constexpr uint64_t kPage = 4096;
  const auto counter = OffsetOf(address, /*executable=*/false);
  if (!counter) return Fail(ErrorCode::kCorrupt, "a USDT probe's semaphore is not in the file");
  for (const Segment& segment : segments_) {
    const uint64_t page = *counter / kPage;
    if (!segment.writable || segment.size == 0 || page < segment.offset / kPage ||
        page - segment.offset / kPage > (segment.offset % kPage + segment.size - 1) / kPage)
      continue;
    if (address >= segment.address && address - segment.address < segment.size) return *counter;
    return Fail(
        ErrorCode::kUnsupported,
        "its semaphore's page of the file is mapped twice: the kernel would raise another place");
  }
  return Fail(ErrorCode::kCorrupt, "a USDT probe's semaphore cannot be written");
}

Result<UserProgram::UsdtNote> UserProgram::ReadNote(Bytes note) {
  ByteReader reader(note);
  UsdtNote read{.address = reader.Read<uint64_t>(),
                .base = reader.Read<uint64_t>(),
                .semaphore = reader.Read<uint64_t>()};
  if (!reader.ok()) return Fail(ErrorCode::kCorrupt, "a USDT probe's note is cut off");
  std::string_view rest = AsText(note.subspan(reader.offset()));
  auto provider = TakeText(&rest);
  auto name = TakeText(&rest);
  auto arguments = TakeText(&rest);
  if (!provider || !name || !arguments)
    return Fail(ErrorCode::kCorrupt, "a USDT probe's note is cut off");
  read.provider = std::move(*provider);
  read.name = std::move(*name);
  read.arguments = std::move(*arguments);
  return read;
}

Result<UsdtSite> UserProgram::FindSite(const UsdtNote& note) const {
  // A program that moved the file's sections (prelink) does not change the addresses in notes.
  const uint64_t moved = usdt_base_ != 0 && note.base != 0 ? usdt_base_ - note.base : 0;
  UsdtSite site{.provider = note.provider,
                .name = note.name,
                .arguments = note.arguments,
                .address = note.address + moved};
  const auto offset = OffsetOf(site.address, /*executable=*/true);
  if (!offset) return Fail(ErrorCode::kCorrupt, "a USDT probe is not in the file");
  site.offset = *offset;
  if (note.semaphore == 0) return site;
  WEFT_ASSIGN(site.semaphore, SemaphoreAt(note.semaphore + moved));
  return site;
}

Result<std::vector<UsdtSite>> UserProgram::FindUsdt(std::string_view provider,
                                                    std::string_view name,
                                                    std::vector<std::string>* left_out) const {
  std::vector<UsdtSite> sites;
  std::map<std::string, size_t> unusable;  // why, of how many places
  size_t beyond = 0;
  Status failed;
  EachUsdtNote([&](Bytes bytes) {
    const auto note = ReadNote(bytes);
    if (!note) {
      failed = std::unexpected(note.error());
      ++unusable["of a probe whose name cannot be read: " + note.error().message];
      return true;
    }
    if (note->provider != provider || note->name != name) return true;
    auto site = FindSite(*note);
    if (!site) {
      failed = std::unexpected(site.error());
      ++unusable[site.error().message];
    } else if (sites.size() < kMaxUsdtSites) {
      sites.push_back(std::move(*site));
    } else {
      ++beyond;
    }
    return true;
  });
  if (beyond != 0)
    unusable["at most " + std::to_string(kMaxUsdtSites) + " places of a probe are"] = beyond;
  const std::string quoted = "'" + std::string(provider) + ":" + std::string(name) + "'";
  if (sites.empty()) {
    if (!failed) return std::unexpected(failed.error());
    return Fail(ErrorCode::kNotFound, "it has no USDT probe " + quoted);
  }
  for (const auto& [why, count] : unusable) {
    if (left_out == nullptr) break;
    std::string said = std::to_string(count);
    said.append(" of the places of USDT probe ").append(quoted);
    said.append(" are not recorded: ").append(why);
    left_out->push_back(std::move(said));
  }
  return sites;
}

}  // namespace weft::kernel
