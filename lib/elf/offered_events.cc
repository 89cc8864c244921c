// SPDX-License-Identifier: Apache-2.0
// See offered_events.h.
#include "lib/elf/offered_events.h"

#include <cstring>

namespace weft {
namespace {

Status ReadEvents(Bytes section, std::vector<EventDescription>& events) {
  while (section.size() >= sizeof(weft_event_desc) && events.size() < kMaxOfferedEvents) {
    weft_event_desc header{};
    std::memcpy(&header, section.data(), sizeof(header));
    if (header.size < sizeof(header) || header.size > section.size())
      return Fail(ErrorCode::kCorrupt, "event descriptions: wrong size");
    WEFT_ASSIGN(EventDescription event, EventDescription::Parse(section.first(header.size)));
    events.push_back(std::move(event));
    section = section.subspan(header.size);
  }
  return {};
}

}  // namespace

Result<std::vector<EventDescription>> OfferedEvents(const ElfImage& image, uint64_t& bytes_left) {
  std::vector<EventDescription> events;
  Status status;
  image.EachSection([&](const ElfSection& section) {
    if (section.header.sh_type != SHT_PROGBITS || section.name != "weft_desc") return true;
    if (section.header.sh_size > bytes_left) {
      status = Fail(ErrorCode::kLimit, "too many event descriptions");
      return false;
    }
    bytes_left -= section.header.sh_size;
    status = ReadEvents(section.bytes().value_or(Bytes()), events);
    return status.has_value();
  });
  if (!status) return std::unexpected(std::move(status.error()));
  return events;
}

}  // namespace weft
