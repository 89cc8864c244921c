// SPDX-License-Identifier: Apache-2.0
// See cgroup.h.
#include "node-agent/agent/cluster/cgroup.h"

#include <algorithm>
#include <fstream>

namespace weft::agent {
namespace {

constexpr size_t kContainerIdDigits = 64;
constexpr size_t kUuidLength = 36;
constexpr size_t kStaticUidLength = 32;

bool IsHexadecimal(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// "1b4e28ba-2fa1-11d2-883f-0016d3cca427", its dashes perhaps underscores; or 32 digits. "":
// neither.
std::string ReadUid(std::string_view text) {
  if (text.size() == kStaticUidLength && IsHexadecimal(text)) return std::string(text);
  if (text.size() != kUuidLength) return "";
  std::string uid(text);
  std::ranges::replace(uid, '_', '-');
  for (size_t i = 0; i < uid.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? uid[i] != '-' : !IsHexadecimal(uid.substr(i, 1))) return "";
  }
  return uid;
}

// The uid in "podUID" or "SLICES-podUID.slice".
std::string PodOf(std::string_view folder) {
  constexpr std::string_view kPod = "pod", kSlice = ".slice", kSlicedPod = "-pod";
  if (folder.starts_with(kPod) && !folder.ends_with(kSlice))
    return ReadUid(folder.substr(kPod.size()));
  if (!folder.ends_with(kSlice)) return "";
  folder.remove_suffix(kSlice.size());
  const size_t at = folder.rfind(kSlicedPod);
  return at == std::string_view::npos ? "" : ReadUid(folder.substr(at + kSlicedPod.size()));
}

std::string_view TakeUntil(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

}  // namespace

std::string ContainerIdOf(std::string_view folder) {
  constexpr std::string_view kScope = ".scope";
  if (folder.ends_with(kScope)) {
    folder.remove_suffix(kScope.size());
    folder.remove_prefix(folder.rfind('-') + 1);  // 0 where there is none
  }
  const bool is_id = folder.size() == kContainerIdDigits && IsHexadecimal(folder);
  return is_id ? std::string(folder) : "";
}

std::optional<CgroupPlace> ParseCgroup(std::string_view text) {
  while (!text.empty()) {
    std::string_view path = TakeUntil(text, '\n');
    TakeUntil(path, ':');  // the hierarchy's number
    TakeUntil(path, ':');  // its controllers
    while (!path.empty()) {
      const std::string uid = PodOf(TakeUntil(path, '/'));
      if (!uid.empty()) return CgroupPlace{uid, ContainerIdOf(TakeUntil(path, '/'))};
    }
  }
  return std::nullopt;
}

std::optional<CgroupPlace> PlaceOf(int32_t pid) {
  return PlaceIn("/proc/" + std::to_string(pid) + "/cgroup");
}

// By a stream's own function: a process that ends between opening and reading makes reading fail,
// which the stream's buffer, asked itself, throws.
std::optional<CgroupPlace> PlaceIn(const std::string& file) {
  std::ifstream in(file);
  std::string text;
  std::getline(in, text, '\0');
  return ParseCgroup(text);
}

}  // namespace weft::agent
