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

  // Returns "column 9", or "line 2, column 9" if the expression has several lines. Both begin at 1;
  // columns are bytes, as in all of weft's messages about files.
  [[nodiscard]] std::string Place(std::string_view expression) const;

  // "filter, column 9: message"
  [[nodiscard]] Error ToError(std::string_view expression) const;

  // Returns the expression's line, or the part of it near the place, and below it a caret:
  //     (a == 1))
  //             ^
  // Each line has its newline and an indent of two. A character takes one column, whatever its
  // bytes. A character that a terminal should not get becomes a blank or, if the line is no UTF-8,
  // '?'.
  [[nodiscard]] std::string Excerpt(std::string_view expression) const;
};

template <typename T>
using FilterResult = std::expected<T, FilterError>;

}  // namespace weft

#endif  // WEFT_LIB_EVENT_FILTER_ERROR_H_
