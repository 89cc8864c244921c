// SPDX-License-Identifier: Apache-2.0
// Parses CTF 2 metadata: every field class of the specification. Not supported:
// floats of other sizes than 32 and 64 bits, bit arrays of more than 64,
// locations that climb. A class that has one is unreadable (TraceClass).
// Foreign bytes: bounded by trace_class.h's limits. Thread-safety: pure
// function.
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
