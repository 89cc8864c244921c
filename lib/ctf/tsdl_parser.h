// SPDX-License-Identifier: Apache-2.0
// Parses TSDL, the metadata language of CTF 1.8, as weft and LTTng write it: typealias,
// typedef, named structures, variants and enumerations, trace, env, clock, stream, event,
// callsite (skipped). Not supported: floats of other sizes than 32 and 64 bits. Foreign
// bytes: bounded by trace_class.h's limits; an error names its line. Thread-safety: pure
// function.
#ifndef WEFT_LIB_CTF_TSDL_PARSER_H_
#define WEFT_LIB_CTF_TSDL_PARSER_H_

#include <string_view>

#include "lib/base/result.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// References are resolved; names are without TSDL's leading underscore.
Result<TraceClass> ParseTsdl(std::string_view text);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TSDL_PARSER_H_
