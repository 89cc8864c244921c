// SPDX-License-Identifier: Apache-2.0
// Messages to JSON and back, by the lists of fields in control.h.
#include "lib/stream/control.h"

#include <cstring>
#include <utility>

#include "lib/base/json_depth.h"
#include "lib/fields/json.h"
#include "lib/stream/limits.h"

namespace weft::stream {
namespace {

using fields::Json;

constexpr size_t kLengthBytes = sizeof(uint32_t);

// A peer may nest as deep as its message is long, a parser should not.
constexpr int kMaxDepth = 4;

constexpr fields::JsonLimits kLimits = {
    .list = kMaxBeaconStreams, .map = kMaxReasons, .key = kMaxNameBytes};

}  // namespace

std::string_view MessageName(const Message& message) { return fields::MessageName(message); }

Status Append(const Message& message, std::string& out) {
  const Json json = fields::MessageToJson(message, fields::JsonWriter());
  std::string text;
  try {
    text = json.dump();
  } catch (const Json::exception&) {
    return Fail(ErrorCode::kInvalid, std::string(MessageName(message)) + ": text is no UTF-8");
  }
  if (text.size() > kMaxControlBytes) {
    return Fail(ErrorCode::kLimit, std::string(MessageName(message)) + ": message is too long");
  }
  const auto length = static_cast<uint32_t>(text.size());
  char bytes[kLengthBytes];
  std::memcpy(bytes, &length, sizeof(bytes));
  out.append(bytes, sizeof(bytes));
  out += text;
  return {};
}

Result<Message> Decode(std::string_view json_text) {
  if (NestsDeeperThan(json_text, kMaxDepth))
    return Fail(ErrorCode::kCorrupt, "message is nested too deeply");
  const Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  return fields::MessageFromJson<Message>(json, fields::JsonReader(kLimits));
}

void MessageReader::Push(Bytes bytes) {
  if (at_ > 0) buffer_.erase(0, std::exchange(at_, 0));
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<std::optional<Message>> MessageReader::Next() {
  const size_t there = buffer_.size() - at_;
  if (there < kLengthBytes) return std::nullopt;
  uint32_t length = 0;
  std::memcpy(&length, buffer_.data() + at_, sizeof(length));
  if (length > kMaxControlBytes) return Fail(ErrorCode::kCorrupt, "message is too long");
  if (there - kLengthBytes < length) return std::nullopt;
  auto message = Decode(std::string_view(buffer_).substr(at_ + kLengthBytes, length));
  if (!message) return std::unexpected(std::move(message).error());
  at_ += kLengthBytes + length;
  return std::optional<Message>(std::move(*message));
}

}  // namespace weft::stream
