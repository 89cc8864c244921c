// SPDX-License-Identifier: Apache-2.0
// Any text as a filter: refused with a place inside it, or a valid program that links and runs
// within the event's memory.
#include <cstdlib>
#include <string_view>

#include "lib/event/filter_compiler.h"
#include "lib/event/filter_fuzz_event.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static weft::testing::EventAndContexts input;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto program = weft::CompileFilter(text);
  if (!program) {
    if (program.error().offset > text.size() || program.error().Excerpt(text).empty()) std::abort();
    return 0;
  }
  if (weft_filter_validate(program->data(), static_cast<uint32_t>(program->size())) != 0)
    std::abort();
  const weft::testing::LinkedFilter filter(*program, input.event.encoded(), &input.contexts);
  if (filter.error != 0 && filter.error != -ENOENT && filter.error != -EPROTOTYPE) std::abort();
  (void)filter.Run(input.event, &input.contexts);
  return 0;
}
