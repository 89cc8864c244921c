// SPDX-License-Identifier: Apache-2.0
// libweft.so as the controller delivers it: an immutable ConfigMap whose name is a hash of its
// contents, so that two versions are two objects. In weft's own namespace, which tenants cannot
// write to, a reference tells the webhook which contents are weft's. Thread-safety: plain values
// and pure functions.
#ifndef WEFT_CONTROLLER_DELIVERY_LIBRARY_H_
#define WEFT_CONTROLLER_DELIVERY_LIBRARY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/kube/json.h"
#include "lib/kube/library.h"

namespace weft::controller {

using kube::Json;

// The API refuses a ConfigMap of more than 1 MiB; base64 does not count, names and metadata do.
inline constexpr std::size_t kMaxLibraryBytes = 1'000'000;

struct Library {
  std::string name;  // "weft-lib-0123456789abcdef"
  std::string digest;
  kube::LibraryFiles files;
};

// kInvalid: none, or one that is no ELF file. kLimit: together too large.
Result<Library> MakeLibrary(kube::LibraryFiles files);

// `specs` are "amd64=/path/to/libweft.so".
Result<Library> LoadLibrary(const std::vector<std::string>& specs);

// The ConfigMap as it is applied to a namespace.
Json LibraryConfigMap(const Library& library, std::string_view name_space);

// The reference to it, in weft's own namespace.
Json LibraryReference(const Library& library, std::string_view own_namespace);

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_DELIVERY_LIBRARY_H_
