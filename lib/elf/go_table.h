// SPDX-License-Identifier: Apache-2.0
// The functions of a program of Go by the table of its runtime (.gopclntab), which programs without
// symbols have, too. Layouts of Go 1.16 to 1.26 for x86-64. Files are foreign: all numbers are
// checked, and a table that contradicts itself has no functions.
//
//     header    its first 8 bytes tell the layout; number of functions; distances of the parts
//     names     texts that end with a NUL
//     functions pairs: address (since Go 1.18 its distance from the begin of the text), and
//               distance of a record that has the distance of the name; then the end's address
//
// The begin of the text stands in the module's data (runtime.moduledata), which lie in a writable
// segment and begin with addresses of the table's parts: they are searched by these, and confirm
// the header. Sources: Go's runtime/symtab.go, debug/gosym/pclntab.go,
// cmd/link/internal/ld/pcln.go. Thread-safety: pure functions.
#ifndef WEFT_LIB_ELF_GO_TABLE_H_
#define WEFT_LIB_ELF_GO_TABLE_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "lib/base/result.h"
#include "lib/elf/elf_image.h"

namespace weft {

// Functions of one program. Kubernetes in one program has 180,000.
inline constexpr uint64_t kMaxGoFunctions = uint64_t{2} << 20;
// Bytes that are searched for the header where no section is named after it, and of data that are
// searched for the module's; places that look like one of these.
inline constexpr uint64_t kMaxGoSearchBytes = uint64_t{256} << 20;
inline constexpr size_t kMaxGoCandidates = 16;

struct GoFunction {
  std::string_view name;
  uint64_t address = 0;  // in the file's own numbering
  uint64_t size = 0;     // to the next function
};

// Is it a program of Go, by its sections or its notes?
bool IsGoProgram(const ElfImage& image);

// Calls `use` with each function of the table, by address. `file` is that of `image`. kNotFound: it
// has no table of a known layout. kInvalid: the table contradicts itself. kLimit: it is too long.
Status EachGoFunction(int file, const ElfImage& image,
                      const std::function<void(const GoFunction&)>& use);

}  // namespace weft

#endif  // WEFT_LIB_ELF_GO_TABLE_H_
