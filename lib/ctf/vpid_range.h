// SPDX-License-Identifier: Apache-2.0
// The range of vpids in a trace's environment (`vpid_min`, `vpid_max`), which grows as processes
// start. It is written once, at the beginning, in a fixed width; later ranges overwrite it in
// place. The metadata therefore needs no second environment (CTF 2 allows none), and a reader, or a
// kill, at any moment finds two valid numbers. Pure functions.
#ifndef WEFT_LIB_CTF_VPID_RANGE_H_
#define WEFT_LIB_CTF_VPID_RANGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/ctf/schema.h"

namespace weft::ctf {

// Returns the bytes of both entries as metadata has them, without the separators to other entries.
std::string VpidRangeText(Version version, const VpidRange& range);

// Returns where they are in metadata, or in its first fragment; npos: they are not there. In the
// environment, no text that people choose comes before them.
size_t FindVpidRange(Version version, std::string_view metadata);

// Parses what VpidRangeText wrote; std::nullopt: it is something else.
std::optional<VpidRange> ParseVpidRange(Version version, std::string_view text);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_VPID_RANGE_H_
