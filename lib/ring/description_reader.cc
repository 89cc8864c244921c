// SPDX-License-Identifier: Apache-2.0
// See description_reader.h.
#include "lib/ring/description_reader.h"

#include <algorithm>
#include <cstring>

#include "lib/ring/reader_limits.h"

namespace weft::ring {
namespace {

std::unexpected<Error> CorruptDescriptions(const char* what) {
  return Fail(ErrorCode::kCorrupt, std::string("descriptions: ") + what);
}

}  // namespace

Result<uint64_t> ParseDescriptions(Bytes bytes, const DescriptionReader::Sink& sink) {
  uint64_t at = 0;
  while (bytes.size() - at >= sizeof(weft_description_entry)) {
    weft_description_entry entry;
    std::memcpy(&entry, bytes.data() + at, sizeof(entry));
    if (entry.reserved != 0) return CorruptDescriptions("reserved is not zero");
    if (entry.size < sizeof(entry) + sizeof(weft_event_desc) ||
        entry.size > sizeof(entry) + WEFT_EVENT_DESC_MAX_BYTES) {
      return CorruptDescriptions("an entry's size");
    }
    if (RoundUp8(entry.size) > bytes.size() - at) break;
    const Bytes description = bytes.subspan(at + sizeof(entry), entry.size - sizeof(entry));
    uint32_t own_size;
    std::memcpy(&own_size, description.data(), sizeof(own_size));
    if (own_size != description.size())
      return CorruptDescriptions("an entry's size is not its description's");
    WEFT_TRY(sink(entry.event, description));
    at += RoundUp8(entry.size);
  }
  return at;
}

Result<bool> DescriptionReader::Poll(const Sink& sink) {
  const Geometry& geometry = ring_->geometry();
  const uint64_t used = ring_->LoadDescriptionsUsed();
  if (used == used_) return false;
  if (used < used_ || used > geometry.descriptions_size || used % 8 != 0) {
    return CorruptDescriptions("descriptions_used");
  }
  std::vector<uint8_t> copy(std::min(used - used_, kDescriptionsPerPoll));
  WEFT_TRY(ring_->ReadAt(geometry.descriptions_offset + used_, copy));
  WEFT_ASSIGN(const uint64_t taken,
              ParseDescriptions(copy, [&](uint16_t event, Bytes description) -> Status {
                if (++count_ > kMaxDescriptions) return CorruptDescriptions("too many");
                return sink(event, description);
              }));
  // The largest entry is smaller than what one poll copies, and entries are committed whole.
  if (taken == 0) return CorruptDescriptions("an entry beyond descriptions_used");
  used_ += taken;
  return used_ < used;
}

}  // namespace weft::ring
