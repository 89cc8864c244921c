// SPDX-License-Identifier: Apache-2.0
// Foreign event descriptions: both readers survive any bytes and agree; what was parsed encodes to
// what parses the same.
#include <cstdlib>
#include <vector>

#include "lib/event/description.h"
#include "lib/event/description_walk.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void WalkAll(const std::vector<uint8_t>& bytes, const weft_description_layout& layout) {
  for (uint32_t i = 0; i < layout.field_count; ++i) {
    weft_description_field field;
    weft_description_field found;
    Require(weft_description_field_at(bytes.data(), &layout, i, &field) == 0);
    Require(field.fixed_offset + field.fixed_bytes <= layout.fixed_size + layout.nowrite_size);
    Require(field.segment == WEFT_NO_SEGMENT ||
            field.segment < uint32_t{layout.segment_count} + layout.nowrite_segments);
    Require(weft_description_find(bytes.data(), &layout, field.name, field.name_size, &found) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<uint8_t> bytes(data, data + size);
  weft_description_layout layout;
  const int walked = weft_description_check(bytes.data(), static_cast<uint32_t>(size), &layout);
  if (walked == 0) WalkAll(bytes, layout);
  const auto event = weft::EventDescription::Parse(bytes, weft::FieldNames::kPaths);
  if (!event) {
    // Names are the one thing that only the parser looks at.
    Require(walked != 0 || event.error().code == weft::ErrorCode::kInvalid);
    return 0;
  }
  Require(walked == 0 && layout.fixed_size == event->fixed_size &&
          layout.nowrite_size == event->nowrite_size &&
          layout.segment_count == event->segment_count &&
          layout.nowrite_segments == event->nowrite_segments);
  const auto again = event->Encode();
  Require(again.has_value());
  Require(*weft::EventDescription::Parse(*again, weft::FieldNames::kPaths) == *event);
  return 0;
}
