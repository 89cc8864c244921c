// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a watch: no crash, and the same events however the bytes are cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "lib/kube/watch_decoder.h"

namespace {

using weft::kube::WatchDecoder;
using weft::kube::WatchEvent;

struct Outcome {
  std::vector<std::string> objects;
  bool good = true;
  bool operator==(const Outcome&) const = default;
};

Outcome Decode(std::string_view bytes, std::size_t step) {
  Outcome out;
  WatchDecoder decoder;
  while (!bytes.empty() && out.good) {
    const std::string_view part = bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    out.good = decoder
                   .Feed(part,
                         [&out](const WatchEvent& event) {
                           out.objects.push_back(event.object.dump(
                               -1, ' ', false, nlohmann::json::error_handler_t::replace));
                           return true;
                         })
                   .has_value();
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (!(Decode(bytes, bytes.size() + 1) == Decode(bytes, 3))) std::abort();
  return 0;
}
