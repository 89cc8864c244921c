// SPDX-License-Identifier: Apache-2.0
// Decides whether the first bytes of a function can be replaced by a jump, and makes the
// instructions that run in their place elsewhere. x86-64, by Zydis.
//
// The jump takes 5 bytes, so the instructions that begin in them are moved. A moved instruction
// does what it did: addresses relative to the instruction pointer are changed. Refused are
// functions in which that is not possible, or in which something else leads into the 5 bytes:
// branches of the function itself, its jump tables, another symbol. A shorter function can be
// hooked if padding follows up to the next kFunctionAlignment. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_DISPLACE_H_
#define WEFT_NODE_AGENT_HOOKS_DISPLACE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "lib/abi/hooks.h"
#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::hooks {

// Reads memory of the process; false: there is none.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t size)>;

// kUnsupported, with the reason: the function's entry cannot be hooked. `code`: the whole function,
// which lies at `address`.
Status CheckEntry(uint64_t address, Bytes code, const ReadMemory& read);

// Functions begin at multiples of this where padding is put before them.
inline constexpr uint64_t kFunctionAlignment = 16;

// Returns how many bytes of code to read for a function: its own and, if these are fewer than the
// jump, those up to the next kFunctionAlignment.
constexpr uint64_t CodeBytes(uint64_t address, uint64_t size) {
  const uint64_t to_next = kFunctionAlignment - address % kFunctionAlignment;
  return size >= WEFT_HOOK_JUMP_BYTES || size > to_next ? size : to_next;
}

// Returns the code that runs at `to` in place of the function's first instructions, and then jumps
// to the rest of the function. kUnsupported: it would not do what they do.
Result<std::vector<uint8_t>> Displace(uint64_t address, Bytes code, uint64_t to);

// Does a function call another one in the bytes that are moved? Its moved form pushes the return
// address and jumps, which a shadow stack does not allow.
bool CallsInFirstBytes(Bytes code);

// Are these bytes what compilers and linkers put between functions: whole instructions that do
// nothing, or traps? Empty: false.
bool IsPadding(Bytes code);

// Returns the jump of WEFT_HOOK_JUMP_BYTES from one address to another, with 3 zero bytes behind
// it. kUnsupported: it is too far.
Result<std::vector<uint8_t>> JumpFrom(uint64_t from, uint64_t to);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_DISPLACE_H_
