// SPDX-License-Identifier: Apache-2.0
// An error in a filter expression, with its place. Thread-safety: plain values.
#ifndef WEFT_LIB_EVENT_FILTER_ERROR_H_
#define WEFT_LIB_EVENT_FILTER_ERROR_H_

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace weft {

struct FilterError {
  std::string message;                   // one line, without the place
  size_t offset = 0;                     // bytes into the expression; its size: at the end
  size_t size = 1;                       // bytes concerned
  ErrorCode code = ErrorCode::kInvalid;  // or kLimit

  // Characters (code points) from 1 on.
  [[nodiscard]] size_t Column(std::string_view expression) const;

  // "filter, column 9: message"
  [[nodiscard]] Error ToError(std::string_view expression) const;

  // That line, then the expression and a line with a caret under the place, each with its newline:
  //   filter, column 9: expected an operand, not ')'
  //     (a == 1))
  //             ^
  // Control characters of the expression show as spaces.
  [[nodiscard]] std::string Render(std::string_view expression) const;
};

template <typename T>
using FilterResult = std::expected<T, FilterError>;

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_ERROR_H_
