// SPDX-License-Identifier: Apache-2.0
// local_attach_load LIBRARY PID FOLDER [TIMES]
// Loads libweft.so into a process, as weft-agent does. With TIMES, gives the process back what was
// changed in it and attaches again, so often. Prints a line "begins" first, so that a test can kill
// it while it works.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "node-agent/attach/load_library.h"
#include "node-agent/hooks/give_back.h"

namespace {

// On a busy machine a thread may take long to stop.
template <typename Call>
weft::Status UntilDone(const Call& call) {
  weft::Status status;
  do {
    status = call();
  } while (!status && status.error().code == weft::ErrorCode::kTimeout);
  return status;
}

weft::Status Work(int32_t pid, const weft::attach::LoadOptions& options, int times) {
  const auto load = [&] { return weft::attach::LoadLibrary(pid, options); };
  if (times == 0) return UntilDone(load);
  for (int i = 0; i < times; ++i) {
    WEFT_TRY(UntilDone(load));
    WEFT_TRY(UntilDone([pid] { return weft::hooks::GiveBackFunctions(pid); }));
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  if (write(STDOUT_FILENO, "begins\n", 7) != 7) return 2;
  const weft::Status status =
      Work(std::atoi(argv[2]),
           {.library = argv[1], .folder = argv[3], .container = "attached", .is_meant = {}},
           argc == 5 ? std::atoi(argv[4]) : 0);
  if (status) return 0;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  return 1;
}
