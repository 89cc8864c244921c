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

  // "column 9", or "line 2, column 9" where the expression has several lines. From 1 on; columns
  // are bytes, as in all that weft says of files.
  [[nodiscard]] std::string Place(std::string_view expression) const;

  // "filter, column 9: message"
  [[nodiscard]] Error ToError(std::string_view expression) const;

  // The expression's line, or what of it is near the place, and below it a caret:
  //     (a == 1))
  //             ^
  // Each with its newline and indented by two. A character is a column, whatever its bytes; what no
  // terminal should get shows as a blank, or, where the line is no UTF-8, as '?'.
  [[nodiscard]] std::string Excerpt(std::string_view expression) const;
};

template <typename T>
using FilterResult = std::expected<T, FilterError>;

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_ERROR_H_
