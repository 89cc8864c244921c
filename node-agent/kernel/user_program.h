// SPDX-License-Identifier: Apache-2.0
// Finds functions and USDT probes in the file of a program or library, as places in the file. The
// file is foreign: it comes from a pod's image. Formats: lib/elf/elf_image.h; systemtap's wiki,
// "User Space Probe Implementation" (.note.stapsdt, version 3). Thread-safety: none.
#ifndef WEFT_NODE_AGENT_KERNEL_USER_PROGRAM_H_
#define WEFT_NODE_AGENT_KERNEL_USER_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/elf/elf_image.h"

namespace weft::kernel {

// One place where a program has a USDT probe; an inlined function has several.
struct UsdtSite {
  std::string provider, name;
  std::string arguments;   // as the compiler wrote them: usdt_operand.h
  uint64_t address = 0;    // of the probe, as the file was linked
  uint64_t offset = 0;     // in the file
  uint64_t semaphore = 0;  // offset in the file; 0: none
};

class UserProgram {
 public:
  // The file stays the caller's, and open as long as this lives. kInvalid: no program or library;
  // kUnsupported: not of 64 bits, or of another machine than this.
  static Result<UserProgram> Read(int file);
  static Result<UserProgram> Parse(Bytes bytes);

  // Built by Go: its stacks move, so that returns of its functions cannot be probed, and it passes
  // arguments in registers of its own.
  [[nodiscard]] bool is_go() const { return is_go_; }

  // Where in the file the instruction `offset` bytes behind the function's start is. kNotFound;
  // kConflict: several functions have that name; kInvalid: beyond its end; kUnsupported.
  [[nodiscard]] Result<uint64_t> FindFunction(const std::string& name, uint64_t offset) const;

  // All places of one probe, up to kMaxUsdtSites. Those that are left out are counted in
  // `left_out`, for people, each number with its reason. kNotFound; kCorrupt; of a probe that has
  // no other place: why not.
  [[nodiscard]] Result<std::vector<UsdtSite>> FindUsdt(
      std::string_view provider, std::string_view name,
      std::vector<std::string>* left_out = nullptr) const;

  // The address of a variable, as the file was linked: what operands of USDT probes name.
  [[nodiscard]] std::optional<uint64_t> AddressOf(const std::string& variable) const;

 private:
  struct Segment {
    uint64_t address = 0, size = 0, offset = 0;
    bool executable = false, writable = false;
  };
  struct Symbol {
    std::string_view name;
    uint64_t address = 0, size = 0;
    uint8_t type = 0;
  };

  // As the file has it.
  struct UsdtNote {
    std::string provider, name, arguments;
    uint64_t address = 0, base = 0, semaphore = 0;
  };

  explicit UserProgram(ElfImage image) : image_(std::move(image)) {}
  static Result<UserProgram> Make(Result<ElfImage> image);

  Status ReadHeaders();
  // Visits the symbols of .symtab and .dynsym, as long as `use` returns true.
  template <typename Use>
  void EachSymbol(const Use& use) const;
  // Visits the notes of USDT probes: what libelf calls their description.
  template <typename Use>
  void EachUsdtNote(const Use& use) const;
  [[nodiscard]] std::optional<uint64_t> OffsetOf(uint64_t address, bool executable) const;
  // The place in the file of a counter that the kernel raises.
  [[nodiscard]] Result<uint64_t> SemaphoreAt(uint64_t address) const;
  [[nodiscard]] static Result<UsdtNote> ReadNote(Bytes note);
  [[nodiscard]] Result<UsdtSite> FindSite(const UsdtNote& note) const;

  ElfImage image_;
  std::vector<Segment> segments_;
  uint64_t usdt_base_ = 0;  // address of .stapsdt.base; 0: it has none
  bool is_go_ = false;
};

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_USER_PROGRAM_H_
