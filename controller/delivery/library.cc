// SPDX-License-Identifier: Apache-2.0
// The library's ConfigMap.
#include "controller/delivery/library.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "lib/kube/base64.h"

namespace weft::controller {
namespace {

Json ConfigMap(const Library& library, std::string_view name_space, std::string_view label) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", library.name},
            {"namespace", name_space},
            {"labels", {{kube::kLibraryLabel, label}}}}},
          {"immutable", true}};
}

}  // namespace

Result<Library> MakeLibrary(kube::LibraryFiles files) {
  if (files.empty()) return Fail(ErrorCode::kInvalid, "no library was given");
  std::size_t total = 0;
  for (const auto& [architecture, bytes] : files) {
    if (architecture.empty() || !bytes.starts_with("\177ELF"))
      return Fail(ErrorCode::kInvalid, "the library for '" + architecture + "' is no ELF file");
    total += bytes.size();
  }
  if (total > kMaxLibraryBytes)
    return Fail(ErrorCode::kLimit, "the libraries have " + std::to_string(total) +
                                       " bytes, more than fit into a ConfigMap");
  WEFT_ASSIGN(std::string digest, kube::LibraryDigest(files));
  std::string name = kube::LibraryName(digest);
  return Library{std::move(name), std::move(digest), std::move(files)};
}

Result<Library> LoadLibrary(const std::vector<std::string>& specs) {
  kube::LibraryFiles files;
  for (const std::string& spec : specs) {
    const std::size_t equals = spec.find('=');
    if (equals == std::string::npos)
      return Fail(ErrorCode::kInvalid, "not ARCHITECTURE=FILE: " + spec);
    const std::string path = spec.substr(equals + 1);
    std::ifstream in(path, std::ios::binary);
    if (!in) return Fail(ErrorCode::kNotFound, "cannot read " + path);
    files[spec.substr(0, equals)] =
        std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return MakeLibrary(std::move(files));
}

Json LibraryConfigMap(const Library& library, std::string_view name_space) {
  Json data = Json::object();
  for (const auto& [architecture, bytes] : library.files)
    data[std::string(kube::kLibraryKeyPrefix) + architecture] = EncodeBase64(bytes);
  Json config_map = ConfigMap(library, name_space, kube::kLibraryCurrent);
  config_map["binaryData"] = std::move(data);
  config_map["data"] = kube::PreloadData();
  return config_map;
}

Json LibraryReference(const Library& library, std::string_view own_namespace) {
  Json config_map = ConfigMap(library, own_namespace, kube::kLibraryReference);
  config_map["data"] = {{kube::kDigestKey, library.digest}};
  return config_map;
}

}  // namespace weft::controller
