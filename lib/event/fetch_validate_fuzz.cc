// SPDX-License-Identifier: Apache-2.0
// Any description with any fetch program: refused, or within the limits that weft.ko relies on. The
// first two bytes are the description's size, the third is the kind of event; the rest is the
// program.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "lib/event/fetch_validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const size_t wanted = data[0] | data[1] << 8;
  const uint32_t kind = data[2];
  data += 3;
  size -= 3;
  const size_t description_size = wanted < size ? wanted : size;
  const std::vector<uint8_t> description(data, data + description_size);
  const std::vector<uint8_t> program(data + description_size, data + size);
  const auto count = static_cast<uint32_t>(program.size() / sizeof(weft_fetch_op));

  weft_description_layout layout{};
  if (weft_description_check(description.data(), static_cast<uint32_t>(description.size()),
                             &layout) != 0)
    return 0;
  weft_fetch_needs needs{};
  if (weft_fetch_validate(program.data(), count, kind, description.data(), &layout, &needs) != 0)
    return 0;
  uint32_t outputs = 0;
  for (uint32_t i = 0; i < count; ++i) {
    weft_fetch_op op{};
    std::memcpy(&op, program.data() + i * sizeof(op), sizeof(op));
    outputs += op.code >= WEFT_FETCH_STORE ? 1 : 0;
  }
  if (outputs != layout.field_count ||
      layout.fixed_size + layout.nowrite_size > WEFT_FETCH_MAX_FIXED ||
      needs.segment_bytes + needs.nowrite_segment_bytes > WEFT_FETCH_MAX_BYTES ||
      needs.args >> weft_fetch_arg_count(kind) != 0)
    std::abort();
  return 0;
}
