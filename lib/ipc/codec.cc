// SPDX-License-Identifier: Apache-2.0
// Messages to JSON and back, by the lists of fields in messages.h. Pure functions.
#include "lib/fields/json.h"
#include "lib/ipc/connection.h"
#include "lib/ipc/limits.h"

namespace weft::ipc {

using fields::Json;

std::string_view MessageName(const Message& message) { return fields::MessageName(message); }

Result<Wire> Encode(Message message) {
  Wire wire;
  const Json json = fields::MessageToJson(message, fields::JsonWriter(&wire.fds));
  // Names of processes and files are any bytes: what is no UTF-8 is replaced.
  wire.text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (wire.text.size() > kMaxMessageBytes || wire.fds.size() > kMaxMessageFds)
    return Fail(ErrorCode::kLimit, std::string(MessageName(message)) + ": message is too large");
  return wire;
}

Result<Message> Decode(Wire wire) {
  if (wire.text.size() > kMaxMessageBytes) return Fail(ErrorCode::kCorrupt, "message too large");
  const Json json = Json::parse(wire.text, nullptr, false);
  return fields::MessageFromJson<Message>(json, fields::JsonReader({}, &wire.fds));
}

}  // namespace weft::ipc
