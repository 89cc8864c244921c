// SPDX-License-Identifier: Apache-2.0
// The step after parsing, the same for TSDL and CTF 2: finds the integer behind every reference of a
// variant or sequence. Called by the parsers.
#ifndef WEFT_LIB_CTF_RESOLVE_H_
#define WEFT_LIB_CTF_RESOLVE_H_

#include "lib/base/result.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// Counts the Types in `type`; fails over `budget` or kMaxTypeDepth, else takes them from `budget`.
Status TakeNodes(const Type& type, uint32_t& budget);

// Sets reference_saved, saved and, for variants selected by an enumeration's labels (TSDL), the
// options' selectors. kCorrupt: a reference to nothing, or to what is no unsigned integer before it.
Status ResolveReferences(TraceClass& trace);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_RESOLVE_H_
