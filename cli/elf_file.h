// SPDX-License-Identifier: Apache-2.0
// Reads the parts of an ELF file that tell which tracepoints it offers: its event descriptions, the
// libraries that it needs, and the folders where the dynamic linker looks for them. ELF files are
// foreign bytes: every offset is checked. Thread-safety: plain values.
#ifndef WEFT_CLI_ELF_FILE_H_
#define WEFT_CLI_ELF_FILE_H_

#include <string>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"
#include "lib/event/description.h"

namespace weft::cli {

struct ElfFile {
  std::vector<EventDescription> events;  // of the section `weft_desc`, in the file's order
  std::vector<std::string> needed;
  std::vector<std::string> search;  // DT_RPATH and DT_RUNPATH, parts as they are written
  bool has_interpreter = false;     // false in a program: statically linked
  bool is_program = false;          // ET_EXEC, or ET_DYN with an entry point
};

// kInvalid: no ELF file; kUnsupported: not of 64 bits, little-endian; kCorrupt.
Result<ElfFile> ParseElf(Bytes bytes);

}  // namespace weft::cli

#endif  // WEFT_CLI_ELF_FILE_H_
