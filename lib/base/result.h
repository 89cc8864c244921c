// SPDX-License-Identifier: Apache-2.0
// Errors as values: every fallible function of weft's C++ returns Result<T>.
// Thread-safety: plain values.
#ifndef WEFT_LIB_BASE_RESULT_H_
#define WEFT_LIB_BASE_RESULT_H_

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace weft {

enum class ErrorCode {
  kInvalid,      // input that breaks a rule; the user can mend it
  kNotFound,     // the named thing is not there
  kCorrupt,      // bytes from outside contradict their format
  kUnsupported,  // valid, but not for this kernel, machine or version
  kLimit,        // a documented limit was reached
  kIo,           // a system call failed; sys_errno says how
  kClosed,       // the peer went away
  kTimeout,
  kPermission,
  kConflict,  // it exists already, or another writer changed it first
};

std::string_view ErrorCodeName(ErrorCode code);

// One error: a code for programs, an errno where a system call failed (else 0), and one line
// for people that says what and where.
struct Error {
  ErrorCode code = ErrorCode::kInvalid;
  int sys_errno = 0;
  std::string message;

  // Puts "what: " before the message on the way up.
  Error Context(std::string_view what) && {
    message = std::string(what) + ": " + message;
    return std::move(*this);
  }
};

template <typename T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> Fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, 0, std::move(message)});
}

// Makes the error of a failed system call. It reads errno at once.
[[nodiscard]] inline std::unexpected<Error> FailErrno(std::string_view what) {
  const int saved = errno;
  return std::unexpected(
      Error{ErrorCode::kIo, saved, std::string(what) + ": " + std::strerror(saved)});
}

}  // namespace weft

#define WEFT_CONCAT_INNER_(a, b) a##b
#define WEFT_CONCAT_(a, b) WEFT_CONCAT_INNER_(a, b)

// Returns the error of `expr` (a Result or Status) from the enclosing function.
#define WEFT_TRY(expr)                                      \
  do {                                                      \
    if (auto weft_try_ = (expr); !weft_try_.has_value())    \
      return std::unexpected(std::move(weft_try_).error()); \
  } while (0)

// `decl` becomes the value of `expr`, or the error is returned.
#define WEFT_ASSIGN(decl, expr)                                                      \
  auto WEFT_CONCAT_(weft_result_, __LINE__) = (expr);                                \
  if (!WEFT_CONCAT_(weft_result_, __LINE__).has_value())                             \
    return std::unexpected(std::move(WEFT_CONCAT_(weft_result_, __LINE__)).error()); \
  decl = std::move(*WEFT_CONCAT_(weft_result_, __LINE__))

#endif  // WEFT_LIB_BASE_RESULT_H_
