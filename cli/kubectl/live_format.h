// SPDX-License-Identifier: Apache-2.0
// How live and run print events: as text, or as one JSON object per line. Plain data.
#ifndef WEFT_CLI_KUBECTL_LIVE_FORMAT_H_
#define WEFT_CLI_KUBECTL_LIVE_FORMAT_H_

namespace weft::kubectl {

struct LiveFormat {
  bool json = false;
  bool indent = false;  // text of functions' events by the depth of their calls
};

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LIVE_FORMAT_H_
