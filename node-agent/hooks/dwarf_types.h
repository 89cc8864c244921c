// SPDX-License-Identifier: Apache-2.0
// Reads the types of functions from DWARF, by elfutils' libdw. The file is a tenant's: this code
// runs in weft-types, a sandboxed process with limits on memory and time (types_main.cc).
// Thread-safety: pure function.
#ifndef WEFT_NODE_AGENT_HOOKS_DWARF_TYPES_H_
#define WEFT_NODE_AGENT_HOOKS_DWARF_TYPES_H_

#include <cstdint>
#include <vector>

#include "lib/base/result.h"
#include "node-agent/hooks/function_types.h"

namespace weft::hooks {

// Returns what the file knows of the functions that begin at these addresses (sorted); those that
// are not in C or C++ are left out. `paths`: to members, as FunctionTypes has them. kInvalid: it
// has no DWARF that can be read. `shared`: the file into which dwz has moved parts of it; -1: none.
Result<TypesByAddress> ReadDwarfTypes(int file, const std::vector<uint64_t>& addresses,
                                      const std::vector<std::string>& paths = {}, int shared = -1);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_DWARF_TYPES_H_
