// SPDX-License-Identifier: Apache-2.0
// Metadata of CTF 2 as weft writes it, and the field classes that other tracers share with it:
// integers, floats, strings, structures, arrays, variants, UUID blobs, aliases of them.
// Not read: bit arrays, booleans, options, LEB128, UTF-16 and UTF-32, locations that climb.
// Foreign bytes: bounded by trace_class.h's limits.
// Thread-safety: pure function.
#ifndef WEFT_LIB_CTF_CTF2_PARSER_H_
#define WEFT_LIB_CTF_CTF2_PARSER_H_

#include <string_view>

#include "lib/base/result.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// References are resolved.
Result<TraceClass> ParseCtf2(std::string_view text);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_CTF2_PARSER_H_
