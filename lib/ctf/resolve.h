// SPDX-License-Identifier: Apache-2.0
// Finds the integer behind every reference of a variant or sequence: the step after parsing, for
// TSDL and CTF 2 alike. Called by the parsers.
#ifndef WEFT_LIB_CTF_RESOLVE_H_
#define WEFT_LIB_CTF_RESOLVE_H_

#include "lib/base/result.h"
#include "lib/ctf/trace_class.h"

namespace weft::ctf {

// Counts the Types in `type`; fails over `budget` or kMaxTypeDepth, else takes them from `budget`.
Status TakeNodes(const Type& type, uint32_t& budget);

// Sets reference_saved, saved, constant_bits, plain, printable and, for variants selected by an
// enumeration's labels (TSDL), the options' selectors. A class becomes unreadable if a reference
// names nothing, or no unsigned integer before it. kCorrupt: the packet header has such a
// reference.
Status ResolveReferences(TraceClass& trace);

// Notes that a class cannot be decoded, with a line for people. `reason`: "metadata, line 3: ...".
void MarkUnreadable(TraceClass& trace, DataStreamClass& stream, const std::string& reason);
void MarkUnreadable(TraceClass& trace, EventRecordClass& event, const std::string& reason);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_RESOLVE_H_
