// SPDX-License-Identifier: Apache-2.0
// See library.h.
#include "lib/kube/library.h"

#include <algorithm>

#include "lib/kube/base64.h"
#include "lib/kube/digest.h"

namespace weft::kube {
namespace {

// Hexadecimal digits of the digest in a name: enough that two versions do not collide. What is
// checked is the whole digest.
constexpr std::size_t kNameDigits = 16;

}  // namespace

bool MountsLibrary(const Json& container) {
  const Json* mounts = At(container, {"volumeMounts"});
  return mounts != nullptr && mounts->is_array() &&
         std::ranges::any_of(*mounts, [](const Json& mount) {
           return TextAt(mount, {"name"}) == kVolume && TextAt(mount, {"mountPath"}) == kFolder;
         });
}

Result<std::string> LibraryDigest(const LibraryFiles& files) {
  std::string all;
  for (const auto& [architecture, bytes] : files) {
    all += architecture;
    all += '\0';
    all += std::to_string(bytes.size());
    all += '\0';
    all += bytes;
  }
  return Sha256(all);
}

std::string LibraryName(std::string_view digest) {
  return std::string(kLibraryPrefix) + std::string(digest.substr(0, kNameDigits));
}

Json PreloadData() { return {{kPreloadVariable, kLibraryPath}}; }

std::string DigestOf(const Json& config_map) {
  const Json* immutable = At(config_map, {"immutable"});
  const Json* variables = At(config_map, {"data"});
  if (variables != nullptr && *variables != PreloadData()) return "";
  const Json* data = At(config_map, {"binaryData"});
  if (immutable == nullptr || *immutable != true || data == nullptr || !data->is_object())
    return "";
  LibraryFiles files;
  for (const auto& [key, value] : data->items()) {
    if (!key.starts_with(kLibraryKeyPrefix) || !value.is_string()) continue;
    auto bytes = DecodeBase64(value.get_ref<const std::string&>());
    if (!bytes) return "";
    files[key.substr(kLibraryKeyPrefix.size())] = std::move(*bytes);
  }
  return files.empty() ? "" : LibraryDigest(files).value_or("");
}

}  // namespace weft::kube
