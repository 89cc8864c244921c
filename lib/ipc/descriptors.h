// SPDX-License-Identifier: Apache-2.0
// The descriptors that came with a message of a Unix socket. Any thread.
#ifndef WEFT_LIB_IPC_DESCRIPTORS_H_
#define WEFT_LIB_IPC_DESCRIPTORS_H_

#include <sys/socket.h>

#include <vector>

#include "lib/base/unique_fd.h"

namespace weft::ipc {

// Takes over all that recvmsg left in `header`'s control buffer, behind what `out` has.
void TakeDescriptors(msghdr& header, std::vector<UniqueFd>& out);

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_DESCRIPTORS_H_
