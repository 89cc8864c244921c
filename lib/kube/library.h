// SPDX-License-Identifier: Apache-2.0
// Names on which controller (which makes the library's ConfigMap), webhook (which names it in pods)
// and agent (which looks for its volume) agree, and the digest by which the first two know the
// library: docs/formats/delivery.md. Thread-safety: constants and pure functions.
#ifndef WEFT_LIB_KUBE_LIBRARY_H_
#define WEFT_LIB_KUBE_LIBRARY_H_

#include <map>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/kube/json.h"

namespace weft::kube {

// Its name is this and the first digits of the SHA-256 of what is in it.
inline constexpr std::string_view kLibraryPrefix = "weft-lib-";
// kLibraryCurrent on the one that new pods get; kLibraryOld on those that pods from before still
// name.
inline constexpr std::string_view kLibraryLabel = "weft.dev/library";
inline constexpr std::string_view kLibraryCurrent = "current";
inline constexpr std::string_view kLibraryOld = "old";
// In weft's own namespace: on a ConfigMap of the library's name that has no library, but its whole
// digest as data[kDigestKey]. There is one per version that the controller ever delivered.
inline constexpr std::string_view kLibraryReference = "reference";
inline constexpr std::string_view kDigestKey = "sha256";
// The keys of binaryData are this and an architecture as nodes name it: "libweft.so.amd64".
inline constexpr std::string_view kLibraryKeyPrefix = "libweft.so.";

// In a pod: the volume's name, where containers have it, and the library there.
inline constexpr std::string_view kVolume = "weft";
inline constexpr std::string_view kFolder = "/weft";
inline constexpr std::string_view kLibraryFile = "libweft.so";
inline constexpr std::string_view kLibraryPath = "/weft/libweft.so";
// The key of the ConfigMap's data: a container's envFrom, which names the ConfigMap first, sets
// LD_PRELOAD to the library unless a later source sets it.
inline constexpr std::string_view kPreloadVariable = "LD_PRELOAD";
// In each container's environment: the container's name.
inline constexpr std::string_view kContainerVariable = "WEFT_CONTAINER";

// On namespaces and pods: "enabled", "disabled".
inline constexpr std::string_view kInjectLabel = "weft.dev/inject";
// Annotation of Traces and namespaces, "true": pods that were made before the library was there are
// evicted, so that their owners make them anew.
inline constexpr std::string_view kRestartMissed = "weft.dev/restart-missed";

// Whether a container has the library: the webhook gives the volume, at its place, to each that it
// changes.
bool MountsLibrary(const Json& container);

// The files' bytes, by architecture.
using LibraryFiles = std::map<std::string, std::string>;

// The SHA-256 of the files, as 64 hexadecimal digits. kUnsupported: OpenSSL has none.
Result<std::string> LibraryDigest(const LibraryFiles& files);

// The name of the ConfigMaps of the library with this digest: "weft-lib-0123456789abcdef".
std::string LibraryName(std::string_view digest);

// The data of the library's ConfigMap: LD_PRELOAD for envFrom.
Json PreloadData();

// The digest of the library in a ConfigMap, computed from its bytes. "": there is none, or it may
// still change, since the ConfigMap is not immutable, or it has other data than PreloadData().
// Older versions of weft made it without data.
std::string DigestOf(const Json& config_map);

}  // namespace weft::kube

#endif  // WEFT_LIB_KUBE_LIBRARY_H_
