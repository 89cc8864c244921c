// SPDX-License-Identifier: Apache-2.0
// Lines of a watch.
#include "lib/kube/watch_decoder.h"

#include <utility>

namespace weft::kube {
namespace {

// -1: unknown.
int TypeOf(std::string_view name) {
  if (name == "ADDED") return static_cast<int>(WatchType::kAdded);
  if (name == "MODIFIED") return static_cast<int>(WatchType::kModified);
  if (name == "DELETED") return static_cast<int>(WatchType::kDeleted);
  if (name == "BOOKMARK") return static_cast<int>(WatchType::kBookmark);
  if (name == "ERROR") return static_cast<int>(WatchType::kError);
  return -1;
}

}  // namespace

Result<WatchEvent> DecodeWatchLine(std::string_view line) {
  Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return Fail(ErrorCode::kCorrupt, "a line of a watch is no JSON object");
  const auto type = event.find("type");
  const auto object = event.find("object");
  if (type == event.end() || !type->is_string() || object == event.end() || !object->is_object())
    return Fail(ErrorCode::kCorrupt, "a line of a watch has no type or no object");
  const int known = TypeOf(type->get_ref<const std::string&>());
  if (known < 0) return Fail(ErrorCode::kCorrupt, "a line of a watch has an unknown type");
  return WatchEvent{static_cast<WatchType>(known), std::move(*object)};
}

Status WatchDecoder::Feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (line_.size() + part.size() > kMaxLine)
      return Fail(ErrorCode::kLimit, "a line of a watch is too long");
    line_ += part;
    if (end == std::string_view::npos) return {};
    bytes.remove_prefix(end + 1);
    const std::string line = std::exchange(line_, {});
    if (line.empty() || line == "\r") continue;
    WEFT_ASSIGN(WatchEvent event, DecodeWatchLine(line));
    if (!on_event(std::move(event))) return Fail(ErrorCode::kClosed, "ended by its reader");
  }
  return {};
}

}  // namespace weft::kube
