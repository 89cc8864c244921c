// SPDX-License-Identifier: Apache-2.0
// For tests: runs a command in this process and returns what it prints. Thread-safety: pure
// functions.
#ifndef WEFT_CLI_CAPTURE_H_
#define WEFT_CLI_CAPTURE_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/view.h"

namespace weft::cli {

struct Captured {
  std::string out, err;
  int status = -1;
};

// `run` is called with two files, for output and errors, and returns the exit status.
template <typename Run>
Captured Capture(Run run) {
  Captured captured;
  char* text[2] = {};
  size_t size[2] = {};
  std::FILE* out = ::open_memstream(&text[0], &size[0]);
  std::FILE* err = ::open_memstream(&text[1], &size[1]);
  captured.status = run(out, err);
  std::fclose(out);
  std::fclose(err);
  captured.out.assign(text[0], size[0]);
  captured.err.assign(text[1], size[1]);
  std::free(text[0]);
  std::free(text[1]);
  return captured;
}

inline Captured View(const ViewOptions& options) {
  return Capture([&options](std::FILE* out, std::FILE* err) { return RunView(options, out, err); });
}

}  // namespace weft::cli

#endif  // WEFT_CLI_CAPTURE_H_
