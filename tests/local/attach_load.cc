// SPDX-License-Identifier: Apache-2.0
// local_attach_load LIBRARY PID FOLDER: loads libweft.so into a process, as weft-agent does. Prints
// a line "begins" first, so that a test can kill it while it works.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "node-agent/attach/load_library.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  if (write(STDOUT_FILENO, "begins\n", 7) != 7) return 2;
  const weft::Status status = weft::attach::LoadLibrary(
      std::atoi(argv[2]), {.library = argv[1], .folder = argv[3], .container = "attached"});
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
