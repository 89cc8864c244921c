// SPDX-License-Identifier: Apache-2.0
// See state.h.
#include "node-agent/consumer/state.h"

#include "lib/fields/binary.h"

namespace weft::consumer {

const char* LostReasonName(LostReason reason) {
  switch (reason) {
    case kLostMalformed:
      return "consumer/malformed";
    case kLostCorrupt:
      return "consumer/corrupt";
    case kLostLimit:
      return "consumer/limit";
    case kLostStore:
      return "store/write";
    case kLostMemory:
      return "consumer/memory";
    case kLostReasons:
      break;
  }
  return "unknown";
}

void Encode(const OutputRecord& record, std::vector<uint8_t>& out) {
  fields::BinaryWriter(out).Value(record);
}

Result<std::vector<OutputRecord>> DecodeOutputs(Bytes bytes) {
  std::vector<OutputRecord> outputs;
  fields::BinaryReader reader(bytes);
  while (reader.more()) reader.Value(outputs.emplace_back());
  if (!reader.ok()) return Fail(ErrorCode::kCorrupt, "journal: record");
  return outputs;
}

}  // namespace weft::consumer
