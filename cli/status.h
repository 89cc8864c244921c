// SPDX-License-Identifier: Apache-2.0
// `weft status`, `weft statedump`: the sessions of this user that run now.
#ifndef WEFT_CLI_STATUS_H_
#define WEFT_CLI_STATUS_H_

namespace weft::cli {

int RunStatus(bool json);
// `weft statedump`: those that record the kernel tell what is there once more.
int RunStatedump();

}  // namespace weft::cli

#endif  // WEFT_CLI_STATUS_H_
