// SPDX-License-Identifier: Apache-2.0
// Reads from a program's files which tracepoints it offers. This works for a program that does not
// run, and before any event is on. Libraries that the program will load with dlopen are unknown
// until it does.
#ifndef WEFT_CLI_OFFERED_H_
#define WEFT_CLI_OFFERED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/event/description.h"

namespace weft::cli {

struct OfferedBy {
  std::string file;
  std::vector<EventDescription> events;  // not empty
};

struct Offered {
  std::vector<OfferedBy> files;
  std::string program;               // the ELF file: of a script, its interpreter
  bool is_static = false;            // nothing can be preloaded into it
  std::vector<std::string> missing;  // libraries that were not found

  [[nodiscard]] size_t events() const;
  [[nodiscard]] std::vector<std::string> Names() const;
};

// The program at `path` and the libraries that it needs, found as ld.so would.
Result<Offered> OfferedByProgram(const std::string& path);
// Every file that the process maps.
Result<Offered> OfferedByProcess(int32_t pid);

// `name` as execvp would find it. kNotFound, kPermission.
Result<std::string> FindProgram(const std::string& name);

}  // namespace weft::cli

#endif  // WEFT_CLI_OFFERED_H_
