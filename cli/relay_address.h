// SPDX-License-Identifier: Apache-2.0
// Parses the argument of --relay. Pure functions.
#ifndef WEFT_CLI_RELAY_ADDRESS_H_
#define WEFT_CLI_RELAY_ADDRESS_H_

#include <string>

#include "lib/base/result.h"
#include "lib/ipc/messages.h"

namespace weft::cli {

// "HOST", "HOST:CONTROL", "HOST:CONTROL:DATA"; an IPv6 address in brackets. The control port is
// 4460, the data port the one behind it, unless said otherwise.
Result<ipc::RelayAddress> ParseRelayAddress(const std::string& text);

}  // namespace weft::cli

#endif  // WEFT_CLI_RELAY_ADDRESS_H_
