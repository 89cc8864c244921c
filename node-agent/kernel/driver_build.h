// SPDX-License-Identifier: Apache-2.0
// Builds weft.ko on the node, with the node's headers and the compiler that its kernel was built
// with. Used by driver.cc. Thread-safety: one at a time per folder.
#ifndef WEFT_NODE_AGENT_KERNEL_DRIVER_BUILD_H_
#define WEFT_NODE_AGENT_KERNEL_DRIVER_BUILD_H_

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft::kernel {

struct Host;

// Builds the module in `folder` and returns its path. The path is the same here and in the host's
// root. `sources` has kmod/ and lib/. kNotFound: no headers, no compiler, another compiler; kIo: it
// does not build.
Result<std::string> BuildModule(const Host& host, const std::string& sources,
                                const std::string& folder);

// Returns CONFIG_CC_VERSION_TEXT of include/config/auto.conf: "gcc-12 (Debian 12.2.0-14) 12.2.0".
// "": the file does not have it.
std::string CompilerOf(std::string_view configuration);

}  // namespace weft::kernel

#endif  // WEFT_NODE_AGENT_KERNEL_DRIVER_BUILD_H_
