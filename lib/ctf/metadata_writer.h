// SPDX-License-Identifier: Apache-2.0
// The metadata of a trace as text: TSDL (CTF 1.8) or JSON text sequences (CTF 2).
// Metadata only grows: the trace's part first, then a channel before its events, an event before
// the first packet that holds one. Each function returns one fragment; a metadata file is their
// concatenation and can be read after every fragment. A fragment ends with an empty line and has no
// other, so that a partial last one can be recognised. Thread-safety: pure functions.
#ifndef WEFT_LIB_CTF_METADATA_WRITER_H_
#define WEFT_LIB_CTF_METADATA_WRITER_H_

#include <string>
#include <vector>

#include "lib/ctf/event_class.h"
#include "lib/ctf/schema.h"

namespace weft::ctf {

std::string TraceMetadata(const TraceInfo& trace);
std::string ChannelMetadata(const TraceInfo& trace, const Channel& channel);
std::string EventMetadata(const TraceInfo& trace, const EventClass& event);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_METADATA_WRITER_H_
