// SPDX-License-Identifier: Apache-2.0
// Writes CTF 2 metadata: JSON text sequences (CTF2-SPEC-2.0, diamon.org/ctf). Called
// by metadata_writer.cc. Packets equal those of CTF 1.8. Thread-safety: pure
// functions.
#ifndef WEFT_LIB_CTF_CTF2_WRITER_H_
#define WEFT_LIB_CTF_CTF2_WRITER_H_

#include <string>

#include "lib/ctf/event_class.h"
#include "lib/ctf/schema.h"

namespace weft::ctf {

std::string Ctf2Trace(const TraceInfo& trace);
std::string Ctf2Channel(const TraceInfo& trace, const Channel& channel);
std::string Ctf2Event(const EventClass& event);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_CTF2_WRITER_H_
