// SPDX-License-Identifier: Apache-2.0
// Writes CTF 1.8 metadata: TSDL text (specification: diamon.org/ctf/v1.8.3). Called by
// metadata_writer.cc. User-defined names get a leading underscore, which readers remove, so that no
// name is a keyword. Thread-safety: pure functions.
#ifndef WEFT_LIB_CTF_TSDL_WRITER_H_
#define WEFT_LIB_CTF_TSDL_WRITER_H_

#include <string>
#include <vector>

#include "lib/ctf/event_class.h"
#include "lib/ctf/schema.h"

namespace weft::ctf {

std::string TsdlTrace(const TraceInfo& trace);
std::string TsdlChannel(const Channel& channel);
std::string TsdlEvent(const EventClass& event);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_TSDL_WRITER_H_
