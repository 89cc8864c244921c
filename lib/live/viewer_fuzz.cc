// SPDX-License-Identifier: Apache-2.0
// Any bytes of a viewer are answered or refused, while the Trace grows. The first byte says how the
// rest is cut into pieces.
#include <algorithm>
#include <cstdlib>

#include "lib/live/limits.h"
#include "lib/live/testing/small_trace.h"
#include "lib/live/viewer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft;
  if (size == 0) return 0;
  live::testing::SmallTrace small;
  small.AddStream({1000, 2000});
  live::Viewer viewer(small.trace, small, 1);
  const size_t piece = size_t{data[0]} + 1;
  size_t answered = 0;
  for (size_t at = 1; at < size; at += piece) {
    const Bytes bytes(data + at, std::min(piece, size - at));
    if (!viewer.Receive(bytes)) break;
    if (viewer.out().size() > live::kMaxOutBytes + live::kMaxPartBytes) std::abort();
    answered += viewer.out().size();
    viewer.out().clear();
    if (small.trace.streams.size() < 4) {
      small.AddStream({1500, answered + 1500});
    } else if (answered % 7 == 0) {
      small.trace.streams[answered % 4].safe_ns += 10'000;
      small.trace.streams[answered % 3].has_ended = true;
      small.trace.is_over = true;
    }
  }
  return 0;
}
