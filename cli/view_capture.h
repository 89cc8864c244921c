// SPDX-License-Identifier: Apache-2.0
// For tests: runs `weft view` in this process and returns what it prints. Thread-safety: pure
// function.
#ifndef WEFT_CLI_VIEW_CAPTURE_H_
#define WEFT_CLI_VIEW_CAPTURE_H_

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/view.h"

namespace weft::cli {

struct Viewed {
  std::string out, err;
  int status = -1;
};

inline Viewed View(const ViewOptions& options) {
  Viewed viewed;
  char* text[2] = {};
  size_t size[2] = {};
  std::FILE* out = ::open_memstream(&text[0], &size[0]);
  std::FILE* err = ::open_memstream(&text[1], &size[1]);
  viewed.status = RunView(options, out, err);
  std::fclose(out);
  std::fclose(err);
  viewed.out.assign(text[0], size[0]);
  viewed.err.assign(text[1], size[1]);
  std::free(text[0]);
  std::free(text[1]);
  return viewed;
}

}  // namespace weft::cli

#endif  // WEFT_CLI_VIEW_CAPTURE_H_
