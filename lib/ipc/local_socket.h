// SPDX-License-Identifier: Apache-2.0
// Makes listening sockets at a path: doorbells, and sockets for the cli and for other keepers. A
// function without state.
#ifndef WEFT_LIB_IPC_LOCAL_SOCKET_H_
#define WEFT_LIB_IPC_LOCAL_SOCKET_H_

#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::ipc {

// Returns a listening socket FOLDER/NAME (SOCK_SEQPACKET, not blocking, close-on-exec). It is bound
// under another name and renamed: at FOLDER/NAME there is never a socket that does not listen.
// `mode`: the permissions of the file. kInvalid: the path is too long for a socket.
Result<UniqueFd> ListenAt(const std::string& folder, const std::string& name, unsigned mode);

}  // namespace weft::ipc

#endif  // WEFT_LIB_IPC_LOCAL_SOCKET_H_
