// SPDX-License-Identifier: Apache-2.0
// Any text as the kernel's list of symbols; the rest of its first line is what is looked for.
#include "node-agent/kernel/symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto symbols = weft::kernel::KernelSymbols::Parse(text);
  if (symbols) (void)symbols->CheckFunction(text.substr(0, text.find('\n')), size);
  return 0;
}
