// SPDX-License-Identifier: Apache-2.0
// For the differential test: evaluates an expression as docs/formats/filter.md defines it, slowly
// and plainly. Shares neither parser, compiler, linker nor interpreter with lib/event.
#ifndef WEFT_LIB_EVENT_FILTER_EVALUATOR_H_
#define WEFT_LIB_EVENT_FILTER_EVALUATOR_H_

#include "lib/event/filter_generator.h"

namespace weft::testing {

enum class Verdict {
  kRefused,  // the compiler says no
  kNoMatch,  // it cannot be linked to this event
  kFalse,
  kTrue,
};

[[nodiscard]] Verdict Evaluate(const Expr& expr, const Model& model);

}  // namespace weft::testing

#endif  // WEFT_LIB_EVENT_FILTER_EVALUATOR_H_
