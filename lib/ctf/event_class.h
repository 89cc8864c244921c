// SPDX-License-Identifier: Apache-2.0
// A channel and its events, ready to write: their types (for the metadata) and plans (for packets).
// The consumer makes one Channel per channel of a trace and one EventClass per event seen in it.
// Thread-safety: immutable once made; any thread may read.
#ifndef WEFT_LIB_CTF_EVENT_CLASS_H_
#define WEFT_LIB_CTF_EVENT_CLASS_H_

#include <cstdint>
#include <string>

#include "lib/base/result.h"
#include "lib/ctf/plan.h"
#include "lib/ctf/schema.h"
#include "lib/ctf/type.h"
#include "lib/event/description.h"

namespace weft::ctf {

struct Channel {
  uint32_t id = 0;
  std::string name;
  Type context;  // kStruct; without members: no event context
  Plan context_plan;
};

struct EventClass {
  uint32_t id = 0;  // unique in its channel; small ids make small files
  uint32_t channel = 0;
  std::string name;
  std::string uri;
  int32_t loglevel = -1;
  Type payload;
  Plan plan;
  // The texts of its events that are empty; see PacketWriter::Append and docs/adr/0034.
  EmptyTexts empty_texts = 0;
};

// kUnsupported: a context id that this version does not know (what follows it cannot be decoded).
Result<Channel> MakeChannel(const ChannelSchema& schema);

// kInvalid: a field's size or kind is none of lib/abi/event.h's.
Result<EventClass> MakeEventClass(uint32_t id, const Channel& channel,
                                  const EventDescription& schema);

}  // namespace weft::ctf

#endif  // WEFT_LIB_CTF_EVENT_CLASS_H_
