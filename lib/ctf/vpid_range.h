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

// The bytes of both entries as metadata has them: without what separates them from other entries.
std::string VpidRangeText(Version version, const VpidRange& range);

// Where they stand in metadata, or its first fragment; npos: they are not there. The environment
// holds nothing before them that people choose.
size_t FindVpidRange(Version version, std::string_view metadata);

// What VpidRangeText wrote; nullopt: something else.
std::optional<VpidRange> ParseVpidRange(Version version, std::string_view text);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_VPID_RANGE_H_
