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
  // The caller owns the file and keeps it open as long as this object lives. kInvalid: it is no
  // program or library; kUnsupported: it is not of 64 bits, or is for another machine.
  static Result<UserProgram> Read(int file);
  static Result<UserProgram> Parse(Bytes bytes);

  // Built by Go: its stacks move, so that returns of its functions cannot be probed, and it passes
  // arguments in registers of its own.
  [[nodiscard]] bool is_go() const { return is_go_; }

  // Returns where in the file the instruction `offset` bytes behind the function's start is.
  // kNotFound; kConflict: several functions have that name; kInvalid: the offset is beyond its end;
  // kUnsupported.
  [[nodiscard]] Result<uint64_t> FindFunction(const std::string& name, uint64_t offset) const;

  // Returns all places of one probe, up to kMaxUsdtSites. `left_out` gets, for messages, the number
  // of places that are left out, for each reason. Errors: kNotFound; kCorrupt; if no place is left,
  // the reason of one that is left out.
  [[nodiscard]] Result<std::vector<UsdtSite>> FindUsdt(
      std::string_view provider, std::string_view name,
      std::vector<std::string>* left_out = nullptr) const;

  // Returns the address of a variable, as the file was linked. Operands of USDT probes name
  // variables.
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

  // A note as it is in the file.
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
  // Returns the place in the file of a counter that the kernel raises.
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
