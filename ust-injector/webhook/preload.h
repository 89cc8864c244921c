// SPDX-License-Identifier: Apache-2.0
// Rewrites LD_PRELOAD in the env of one container. Each rule was tried on a real kubelet:
//   no LD_PRELOAD              LD_PRELOAD=/weft/libweft.so; it wins over the image's
//   ... weft.dev/preload       LD_PRELOAD=/weft/libweft.so:ANNOTATION, which names the image's
//   ... envFrom                LD_PRELOAD=/weft/libweft.so:$(LD_PRELOAD), the key of envFrom. It
//                              cannot be seen here whether there is one, and without it ld.so would
//                              complain; so the library's ConfigMap is the first source, and has it
//   a plain value              our library behind it
//   a reference                renamed to WEFT_ORIG_LD_PRELOAD; LD_PRELOAD=/weft/libweft.so:$(...)
//   an optional reference      left alone: a missing one stays literal, and ld.so complains at each
//                              exec
// It is internal to the webhook. Thread-safety: all functions are pure.
#ifndef WEFT_UST_INJECTOR_WEBHOOK_PRELOAD_H_
#define WEFT_UST_INJECTOR_WEBHOOK_PRELOAD_H_

#include <expected>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lib/kube/library.h"

namespace weft::webhook {

using Json = nlohmann::json;
using kube::kContainerVariable;
using kube::kLibraryPath;

// An LD_PRELOAD that is a reference moves to this variable.
inline constexpr std::string_view kOriginalPreload = "WEFT_ORIG_LD_PRELOAD";

// Why a pod or a container was left alone.
struct LeftAlone {
  std::string reason;  // CamelCase
  std::string note;
  bool quiet = false;  // no notice is needed: it was asked for
};

struct PreloadOptions {
  bool from_env = false;  // the pod says that its envFrom has LD_PRELOAD
  std::string of_image;   // the LD_PRELOAD of its image, which the pod's annotation repeats
  // A ConfigMap whose key LD_PRELOAD is the library; "": there is none.
  std::string default_source;
};

// Returns the operations that make `env` (of the container at `path`, such as "/spec/containers/0")
// load the library; none if it does already. `container` is what WEFT_CONTAINER becomes.
std::expected<Json, LeftAlone> PatchEnvironment(const Json& container, const std::string& path,
                                                const PreloadOptions& options);

}  // namespace weft::webhook

#endif  // WEFT_UST_INJECTOR_WEBHOOK_PRELOAD_H_
