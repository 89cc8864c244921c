// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/metadata_writer.h"

#include "lib/ctf/ctf2_writer.h"
#include "lib/ctf/tsdl_writer.h"

namespace weft::ctf {

std::string TraceMetadata(const TraceInfo& trace) {
  return trace.version == Version::k2 ? Ctf2Trace(trace) : TsdlTrace(trace);
}

std::string ChannelMetadata(const TraceInfo& trace, const Channel& channel) {
  return trace.version == Version::k2 ? Ctf2Channel(trace, channel) : TsdlChannel(channel);
}

std::string EventMetadata(const TraceInfo& trace, const EventClass& event) {
  return trace.version == Version::k2 ? Ctf2Event(event) : TsdlEvent(event);
}

}  // namespace weft::ctf
