// SPDX-License-Identifier: Apache-2.0
// Labels as kubectl's -l takes them. Thread-safety: pure functions.
#ifndef WEFT_CLI_KUBECTL_LABEL_SELECTOR_H_
#define WEFT_CLI_KUBECTL_LABEL_SELECTOR_H_

#include <string_view>

#include "lib/api/trace.h"
#include "lib/base/result.h"

namespace weft::kubectl {

// "a=b,c!=d,e in (f,g),h notin (i),j,!k". kInvalid: it is none; names and values are checked by
// the API server.
Result<api::LabelSelector> ParseLabelSelector(std::string_view text);

}  // namespace weft::kubectl

#endif  // WEFT_CLI_KUBECTL_LABEL_SELECTOR_H_
