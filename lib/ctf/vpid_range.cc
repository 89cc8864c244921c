// SPDX-License-Identifier: Apache-2.0
#include "lib/ctf/vpid_range.h"

#include <algorithm>
#include <charconv>

namespace weft::ctf {
namespace {

constexpr size_t kDigits = 10;  // of 2^31 - 1, and more than Linux's pids have

struct Frame {
  std::string_view before, between, after;
};

constexpr Frame FrameOf(Version version) {
  return version == Version::k2 ? Frame{"\"vpid_min\":", ",\"vpid_max\":", ""}
                                : Frame{"vpid_min = ", ";\n\tvpid_max = ", ";"};
}

std::string Padded(uint32_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kDigits - digits.size(), ' ') + digits;
}

std::optional<uint32_t> Number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  uint32_t number = 0;
  const char* begin = text.data();
  const char* end = begin + text.size();
  const auto [at, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

}  // namespace

std::string VpidRangeText(Version version, const VpidRange& range) {
  const Frame frame = FrameOf(version);
  std::string out(frame.before);
  out += Padded(range.min);
  out += frame.between;
  out += Padded(range.max);
  return out.append(frame.after);
}

size_t FindVpidRange(Version version, std::string_view metadata) {
  return metadata.find(FrameOf(version).before);
}

std::optional<VpidRange> ParseVpidRange(Version version, std::string_view text) {
  const Frame frame = FrameOf(version);
  if (text.size() < frame.before.size() + 2 * kDigits + frame.between.size()) return std::nullopt;
  const auto min = Number(text.substr(frame.before.size(), kDigits));
  const auto max =
      Number(text.substr(frame.before.size() + kDigits + frame.between.size(), kDigits));
  if (!min || !max) return std::nullopt;
  VpidRange range{*min, *max};
  if (text != VpidRangeText(version, range)) return std::nullopt;
  return range;
}

}  // namespace weft::ctf
