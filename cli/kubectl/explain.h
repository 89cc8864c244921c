// SPDX-License-Identifier: Apache-2.0
// Errors for people. Thread-safety: pure functions.
#ifndef WEFT_CLI_KUBECTL_EXPLAIN_H_
#define WEFT_CLI_KUBECTL_EXPLAIN_H_

#include <string>

#include "lib/base/result.h"

namespace weft::kubectl {

// One line about a failed request: what failed, why, what to do. A refusal for missing rights names
// the verb and the resource.
std::string Explain(const Error& error);

// Prints it on standard error; returns the exit status.
int Complain(const Error& error);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_EXPLAIN_H_
