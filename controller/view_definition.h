// SPDX-License-Identifier: Apache-2.0
// The definition of TraceView, as the chart has it. Thread-safety: a pure function.
#ifndef WEFT_CONTROLLER_VIEW_DEFINITION_H_
#define WEFT_CONTROLLER_VIEW_DEFINITION_H_

#include <string_view>

namespace weft::controller {

// charts/weft/definitions/traceview.yaml as a whole.
std::string_view ViewDefinitionYaml();

}  // namespace weft::controller

#endif  // WEFT_CONTROLLER_VIEW_DEFINITION_H_
