// SPDX-License-Identifier: Apache-2.0
// Functions of Go (docs/adr/0066): which of them can be hooked, and their thunks. x86-64, Go 1.17
// and later. Thread-safety: pure functions.
#ifndef WEFT_NODE_AGENT_HOOKS_GO_FUNCTIONS_H_
#define WEFT_NODE_AGENT_HOOKS_GO_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::hooks {

// What most functions of Go begin with: they compare the stack with its limit, and go to code that
// makes it grow, and then begins anew, if there is no room. Goroutines are not paused inside it.
struct GoStackCheck {
  size_t compare_bytes = 0;  // code without addresses
  size_t bytes = 0;          // with the branch behind it
  uint64_t grows = 0;        // where the branch goes
};

// kUnsupported, with the reason: it does not begin so. `code`: the function, which lies at
// `address`.
Result<GoStackCheck> FindGoStackCheck(uint64_t address, Bytes code);

struct GoThunk {
  std::vector<uint8_t> bytes;
  size_t resume = 0;  // where the library goes back to
};
// Returns the thunk at `thunk` of a function at `address`: it does what the check does, gives the
// hook at `hook` to the library at `enter`, and goes to the rest of the function. A call whose
// stack grows thus counts once. kUnsupported: it is too far.
Result<GoThunk> MakeGoThunk(uint64_t thunk, uint64_t hook, uint64_t enter, uint64_t address,
                            const GoStackCheck& check, Bytes code);

// Is it a function of the runtime, which are not hooked?
bool IsOfGoRuntime(std::string_view symbol);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_GO_FUNCTIONS_H_
