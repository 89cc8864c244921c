// SPDX-License-Identifier: Apache-2.0
// See views.h.
#include "controller/views.h"

#include "lib/kube/json.h"

namespace weft::controller {

using kube::TextAt;

Result<std::chrono::milliseconds> Views::Reconcile(kube::WallTime now) {
  const auto views = client_.List({.resource = kube::kTraceViews});
  // A cluster whose definitions are older has none.
  if (!views && views.error().code == ErrorCode::kNotFound) return kInterval;
  if (!views) return std::unexpected(views.error());
  for (const kube::Json& view : views->items) {
    const auto expires = kube::ParseTime(TextAt(view, {"spec", "expires"}));
    if (expires && now < *expires + kMargin) continue;
    const Status deleted = client_.Delete({.resource = kube::kTraceViews,
                                           .name_space = TextAt(view, {"metadata", "namespace"}),
                                           .name = TextAt(view, {"metadata", "name"})},
                                          TextAt(view, {"metadata", "uid"}));
    const bool is_gone = !deleted && (deleted.error().code == ErrorCode::kNotFound ||
                                      deleted.error().code == ErrorCode::kConflict);
    if (!deleted && !is_gone) return std::unexpected(deleted.error());
  }
  return kInterval;
}

}  // namespace weft::controller
