// SPDX-License-Identifier: Apache-2.0
// What an ELF file says of its debug information: whether it has it, its build-id, and the names of
// files that were split off. Files are foreign: what contradicts itself counts as absent.
// Thread-safety: pure function.
#ifndef WEFT_NODE_AGENT_HOOKS_DEBUG_NOTES_H_
#define WEFT_NODE_AGENT_HOOKS_DEBUG_NOTES_H_

#include <string>

#include "lib/base/result.h"

namespace weft::hooks {

struct DebugNotes {
  bool has_types = false;
  bool has_symbols = false;
  bool has_packed_symbols = false;
  std::string build_id;  // hexadecimal
  std::string link;      // a file name
  // The path, and in hexadecimal the build-id, of the file into which dwz has moved what several
  // files have.
  std::string shared, shared_id;
};

// kInvalid, kUnsupported: it is no ELF file of 64 bits.
Result<DebugNotes> NotesOf(int file);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_DEBUG_NOTES_H_
