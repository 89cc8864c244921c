// SPDX-License-Identifier: Apache-2.0
// Decides whether the first bytes of a function can be replaced by a jump, and makes the
// instructions that run in their place elsewhere. x86-64, by Zydis.
//
// The jump takes 5 bytes, so the instructions that begin in them are moved. A moved instruction
// does what it did: addresses relative to the instruction pointer are changed. Refused are
// functions in which that is not possible, or in which something else leads into the 5 bytes:
// branches of the function itself, its jump tables, another symbol. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_DISPLACE_H_
#define WEFT_NODE_AGENT_HOOKS_DISPLACE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::hooks {

// Reads memory of the process; false: there is none.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t size)>;

// kUnsupported, with the reason: the function's entry cannot be hooked. `code`: the whole function,
// which lies at `address`.
Status CheckEntry(uint64_t address, Bytes code, const ReadMemory& read);

// Returns the code that runs at `to` in place of the function's first instructions, and then jumps
// to the rest of the function. kUnsupported: it would not do what they do.
Result<std::vector<uint8_t>> Displace(uint64_t address, Bytes code, uint64_t to);

// Returns the jump of WEFT_HOOK_JUMP_BYTES from one address to another, with 3 zero bytes behind
// it. kUnsupported: it is too far.
Result<std::vector<uint8_t>> JumpFrom(uint64_t from, uint64_t to);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_DISPLACE_H_
