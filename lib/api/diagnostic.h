// SPDX-License-Identifier: Apache-2.0
// Problems of a Trace for people: one line each, with its place and what is wrong. Thread-safety:
// plain values.
#ifndef WEFT_LIB_API_DIAGNOSTIC_H_
#define WEFT_LIB_API_DIAGNOSTIC_H_

#include <string>
#include <string_view>
#include <vector>

namespace weft::api {

struct Diagnostic {
  std::string file;  // as the caller named it; "": not from a file
  int line = 0;      // from 1; 0: unknown
  int column = 0;    // from 1, in bytes
  std::string path;  // "spec.user.events[0].name"; "": the document
  std::string message;
  std::string
      // "", or lines of the text at fault with a mark below; printable, each with its newline
      excerpt;
  bool operator==(const Diagnostic&) const = default;

  // Returns a line such as `trace.yaml:12:7: spec.user.events[0].nmae: unknown field, did you mean
  // "name"?`, without the excerpt. It is printable on a terminal, whatever the file contained.
  std::string ToString() const;
};

using Diagnostics = std::vector<Diagnostic>;

// Returns one line per diagnostic, each with its newline.
std::string ToString(const Diagnostics& diagnostics);

// `text` in double quotes, shortened to about 60 bytes, with control characters, quotes,
// backslashes and everything that is not ASCII escaped.
std::string Quote(std::string_view text);

}  // namespace weft::api

#endif  // WEFT_LIB_API_DIAGNOSTIC_H_
