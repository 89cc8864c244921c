// SPDX-License-Identifier: Apache-2.0
// `weft status` and `weft statedump`: work on this user's sessions that are being recorded.
#ifndef WEFT_CLI_STATUS_H_
#define WEFT_CLI_STATUS_H_

namespace weft::cli {

int RunStatus(bool json);
// `weft statedump`: asks each recording of the kernel for another state dump.
int RunStatedump();

}  // namespace weft::cli

#endif  // WEFT_CLI_STATUS_H_
