// SPDX-License-Identifier: Apache-2.0
// Finds functions into whose first bytes another function branches. Assembly does that: GMP's
// mpn_mul_1c sets a register and jumps behind the instruction of mpn_mul_1 that clears it. A jump
// to a hook cannot replace such bytes. The file is foreign.
#ifndef WEFT_NODE_AGENT_HOOKS_SIDE_ENTRIES_H_
#define WEFT_NODE_AGENT_HOOKS_SIDE_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/elf/elf_image.h"

namespace weft::hooks {

class SideEntries {
 public:
  // `starts`: of all symbols of code; `functions`: those that are to be hooked. Both are sorted.
  SideEntries(const std::vector<uint64_t>& starts, const std::vector<uint64_t>& functions)
      : starts_(starts), functions_(functions) {}

  // Looks at the branches of all code of a file. kLimit: it has too much.
  Status Search(int file, const ElfImage& image);
  // Looks at code that lies at `address`: at its branches from the offset `from` on.
  void Look(uint64_t address, Bytes code, size_t from);

  // Functions whose first bytes a branch of other code leads into.
  [[nodiscard]] const std::set<uint64_t>& found() const { return found_; }

 private:
  Status SearchSection(int file, const GElf_Shdr& section);
  void Check(uint64_t address, Bytes code, size_t at, size_t bytes, uint64_t target);
  [[nodiscard]] uint64_t StartBefore(uint64_t address) const;

  const std::vector<uint64_t>& starts_;
  const std::vector<uint64_t>& functions_;
  std::set<uint64_t> found_;
  size_t checks_ = 0;
};

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_SIDE_ENTRIES_H_
