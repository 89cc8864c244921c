// SPDX-License-Identifier: Apache-2.0
// Reads from an ELF file which tracepoints it offers: the event descriptions in its section
// `weft_desc` (docs/formats/provider.md). Files are foreign bytes. Thread-safety: a pure function.
#ifndef WEFT_LIB_ELF_OFFERED_EVENTS_H_
#define WEFT_LIB_ELF_OFFERED_EVENTS_H_

#include <vector>

#include "lib/base/result.h"
#include "lib/elf/elf_image.h"
#include "lib/event/description.h"

namespace weft {

// A description has some 200 bytes; a parsed one may need ten times as many as it has in the file.
inline constexpr uint64_t kMaxDescriptionBytes = uint64_t{4} << 20;
inline constexpr size_t kMaxOfferedEvents = 16384;

// Returns at most kMaxOfferedEvents events in the file's order; none: it offers none. `bytes_left`:
// how many bytes of descriptions may still be read; the call subtracts its own. kLimit: there are
// more; kCorrupt and the errors of EventDescription::Parse: a description is damaged.
Result<std::vector<EventDescription>> OfferedEvents(const ElfImage& image, uint64_t& bytes_left);

}  // namespace weft

#endif  // WEFT_LIB_ELF_OFFERED_EVENTS_H_
