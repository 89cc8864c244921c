// SPDX-License-Identifier: Apache-2.0
// Writes all bytes at a place of a file. A function without state.
#ifndef WEFT_NODE_AGENT_CONSUMER_WRITE_AT_H_
#define WEFT_NODE_AGENT_CONSUMER_WRITE_AT_H_

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "lib/base/bytes.h"
#include "lib/base/result.h"

namespace weft::consumer {

// `what`: the word for the file in an error's message.
inline Status WriteAt(const char* what, int fd, uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return FailErrno(std::string(what) + ": pwrite");
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

}  // namespace weft::consumer

#endif  // WEFT_NODE_AGENT_CONSUMER_WRITE_AT_H_
