// SPDX-License-Identifier: Apache-2.0
// The library's ConfigMap.
#include "controller/delivery/library.h"

#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <iterator>
#include <utility>

#include "lib/kube/base64.h"
#include "lib/kube/library.h"

namespace weft::controller {
namespace {

// Digits of SHA-256 in the name: enough that two versions do not collide.
constexpr std::size_t kHashBytes = 8;

// In the order of the architectures: name, size, bytes.
Result<std::string> HashOf(const std::map<std::string, std::string>& files) {
  std::string all;
  for (const auto& [architecture, bytes] : files) {
    all += architecture;
    all += '\0';
    all += std::to_string(bytes.size());
    all += '\0';
    all += bytes;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  if (EVP_Digest(all.data(), all.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1)
    return Fail(ErrorCode::kUnsupported, "no SHA-256");
  std::string hex;
  for (std::size_t i = 0; i < kHashBytes; ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    hex += kDigits[digest.at(i) >> 4];
    hex += kDigits[digest.at(i) & 15];
  }
  return hex;
}

}  // namespace

Result<Library> MakeLibrary(std::map<std::string, std::string> files) {
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
  WEFT_ASSIGN(const std::string hash, HashOf(files));
  return Library{std::string(kube::kLibraryPrefix) + hash, std::move(files)};
}

Result<Library> LoadLibrary(const std::vector<std::string>& specs) {
  std::map<std::string, std::string> files;
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
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", library.name},
            {"namespace", name_space},
            {"labels", {{kube::kLibraryLabel, kube::kLibraryCurrent}}}}},
          {"immutable", true},
          {"binaryData", std::move(data)}};
}

}  // namespace weft::controller
