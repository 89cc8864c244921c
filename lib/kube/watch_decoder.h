// SPDX-License-Identifier: Apache-2.0
// Decodes the body of a watch: one JSON object per line, in pieces as they come from the network.
// Thread-safety: one thread.
#ifndef WEFT_LIB_KUBE_WATCH_DECODER_H_
#define WEFT_LIB_KUBE_WATCH_DECODER_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/kube/json.h"

namespace weft::kube {

enum class WatchType {
  kAdded,
  kModified,
  kDeleted,
  kBookmark,  // only metadata.resourceVersion means anything
  kError,     // object is a Status; code 410: list again
};

struct WatchEvent {
  WatchType type = WatchType::kError;
  Json object;  // an object, always
};

class WatchDecoder {
 public:
  // etcd holds 1.5 MiB; the JSON of an object that was written as protobuf can be a few times that.
  static constexpr std::size_t kMaxLine = std::size_t{16} << 20;

  // Hands every whole line's event to `on_event` until that returns false, which ends the watch.
  // kCorrupt: not a watch event. kLimit: a line without an end. kClosed: on_event said so.
  Status Feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event);

 private:
  std::string line_;
};

// One line, without its newline.
Result<WatchEvent> DecodeWatchLine(std::string_view line);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_WATCH_DECODER_H_
