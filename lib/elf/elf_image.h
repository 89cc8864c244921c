// SPDX-License-Identifier: Apache-2.0
// An ELF file of 64 bits in little-endian order, read by elfutils' libelf: its header, its
// sections by name and their bytes. Files are foreign: a section that is not within the file has no
// bytes, one whose name is not within the file has none and is passed over. A file with holes can
// say that it has gigabytes of anything, and libelf would read them: the limits below are checked
// first.
// Format: System V ABI, ELF-64. Thread-safety: none.
#ifndef WEFT_LIB_ELF_ELF_IMAGE_H_
#define WEFT_LIB_ELF_ELF_IMAGE_H_

#include <gelf.h>
#include <libelf.h>

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft {

// Bytes of one section, and of all string tables of one file together. Programs of 100 MB have some
// MB of symbols and of their names.
inline constexpr uint64_t kMaxElfSectionBytes = uint64_t{128} << 20;
inline constexpr uint64_t kMaxElfTextBytes = uint64_t{256} << 20;

struct ElfSection {
  std::string_view name;
  GElf_Shdr header;
  Elf_Scn* handle;

  // Null: its bytes are not within the file or are too many, or libelf cannot convert them.
  [[nodiscard]] Elf_Data* data() const;
  [[nodiscard]] std::optional<Bytes> bytes() const;
};

class ElfImage {
 public:
  // kInvalid: it is no ELF file, or its header contradicts itself. kUnsupported: it is not of 64
  // bits, little-endian. kLimit: it has more than 65,279 sections or 65,534 segments, or too long
  // string tables. The caller keeps the bytes as long as this object lives.
  static Result<ElfImage> Parse(Bytes bytes);
  // Reads piece by piece with pread, so that a file that shrinks meanwhile causes an error and no
  // signal. The caller keeps the file open as long as this object lives.
  static Result<ElfImage> Read(int file);

  [[nodiscard]] const GElf_Ehdr& header() const { return header_; }
  [[nodiscard]] Elf* get() const { return elf_.get(); }

  // Calls `use` with each segment in turn, and with each section, until it returns false.
  void EachSegment(const std::function<bool(const GElf_Phdr&)>& use) const;
  void EachSection(const std::function<bool(const ElfSection&)>& use) const;

  // Returns the text at `offset` of the string table in section `table`; nullptr: there is none.
  [[nodiscard]] const char* Text(size_t table, size_t offset) const {
    return elf_strptr(elf_.get(), table, offset);
  }

 private:
  ElfImage(Elf* elf, const GElf_Ehdr& header) : elf_(elf, elf_end), header_(header) {}
  static Result<ElfImage> Check(Bytes head, const std::function<Elf*()>& open);

  std::shared_ptr<Elf> elf_;
  GElf_Ehdr header_;
};

}  // namespace weft

#endif  // WEFT_LIB_ELF_ELF_IMAGE_H_
