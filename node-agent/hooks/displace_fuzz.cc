// SPDX-License-Identifier: Apache-2.0
// Any bytes are a function that can be hooked, or not. What is moved fits into a thunk.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "lib/abi/hooks.h"
#include "node-agent/hooks/displace.h"
#include "node-agent/hooks/go_functions.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kAddress = 0x400000;
  const weft::Bytes code(data, size);
  if (const auto check = weft::hooks::FindGoStackCheck(kAddress, code)) {
    const auto thunk =
        weft::hooks::MakeGoThunk(kAddress + 0x1000000, kAddress, kAddress, kAddress, *check, code);
    if (!thunk || thunk->bytes.size() > WEFT_HOOK_THUNK_BYTES) __builtin_trap();
  }
  // Tables are read from the same bytes.
  const auto read = [&](uint64_t address, void* to, size_t bytes) {
    if (size < bytes) return false;
    std::memcpy(to, data + address % (size - bytes + 1), bytes);
    return true;
  };
  if (!weft::hooks::CheckEntry(kAddress, code, read)) return 0;
  const auto moved = weft::hooks::Displace(kAddress, code, kAddress + 0x1000000);
  if (moved && moved->size() > WEFT_HOOK_THUNK_BYTES - 32) __builtin_trap();
  return 0;
}
