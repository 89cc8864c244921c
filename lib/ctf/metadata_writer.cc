// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/metadata_writer.h"

#include "lib/ctf/tsdl_writer.h"

namespace weft::ctf {

std::string TraceMetadata(const TraceInfo& trace) { return TsdlTrace(trace); }

std::string ChannelMetadata(const TraceInfo&, const Channel& channel) {
  return TsdlChannel(channel);
}

std::string EventMetadata(const TraceInfo&, const EventClass& event) { return TsdlEvent(event); }

}  // namespace weft::ctf
