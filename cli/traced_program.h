// SPDX-License-Identifier: Apache-2.0
// Starts the program that is recorded: with libweft.so preloaded if user-space events are wanted,
// in the foreground of the terminal. Passes on all signals that weft gets. Used by one thread; one
// program per process.
#ifndef WEFT_CLI_TRACED_PROGRAM_H_
#define WEFT_CLI_TRACED_PROGRAM_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::cli {

class TracedProgram {
 public:
  // From here on signals are held for the program.
  static Result<TracedProgram> Prepare();

  struct Tracing {
    std::string
        library;  // goes behind what LD_PRELOAD holds already; "": the environment stays as it is
    std::string folder;  // WEFT_DIR, where there is a library
    std::string cgroup;  // the folder of the cgroup that the program is started in; "": this one
  };
  // The error's errno is execve's, or the reason why the program could not enter the cgroup.
  Status Start(const std::string& path, const std::vector<std::string>& arguments,
               const Tracing& tracing);

  // Passes signals on until the program ends or `timeout` is over. The value: its exit status as a
  // shell gives it.
  std::optional<int> Wait(std::chrono::milliseconds timeout);

  // The program's process id; -1 once it has ended.
  [[nodiscard]] pid_t pid() const { return pid_; }

  // After the program's end: did the user ask to end weft as well?
  bool Interrupted();

 private:
  void Forward(int signal, int code) const;

  UniqueFd signals_;
  pid_t pid_ = -1;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_TRACED_PROGRAM_H_
