// SPDX-License-Identifier: Apache-2.0
// Follows processes that ran before weft (`weft record --pid`) until they end or the user ends the
// recording. Used by one thread; one object per process.
#ifndef WEFT_CLI_ATTACHED_H_
#define WEFT_CLI_ATTACHED_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::cli {

// Returns the processes, but for this one, whose name (comm in proc(5)) or program's file has this
// name, in ascending order.
std::vector<int32_t> ProcessesCalled(const std::string& name);

class Attached {
 public:
  // From here on signals that end weft are held. Processes of `named` that have ended since they
  // were found are left out. kNotFound: one of `given` is not there, or all have ended.
  static Result<Attached> Prepare(const std::vector<int32_t>& given,
                                  const std::vector<int32_t>& named);

  // Adds the processes of these names that began since.
  void AddCalled(const std::vector<std::string>& names);

  [[nodiscard]] const std::vector<int32_t>& pids() const { return pids_; }

  // Programs' names, for people: "shop, sh".
  [[nodiscard]] const std::string& names() const { return names_; }

  // True when all have ended or the user wants an end; false after `timeout`.
  bool Wait(std::chrono::milliseconds timeout);
  // Did the user ask (again, after Wait)?
  bool Interrupted();

 private:
  // Returns false if there is no such process.
  bool Add(int32_t pid);

  std::vector<int32_t> pids_;
  std::vector<UniqueFd> pidfds_;  // of those that have not ended
  UniqueFd signals_;
  std::string names_;
};

}  // namespace weft::cli

#endif  // WEFT_CLI_ATTACHED_H_
