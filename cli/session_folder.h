// SPDX-License-Identifier: Apache-2.0
// The folder of a session, WEFT_DIR: RUNTIME/weft-UID-XXXXXX.
// `weft record` and its keeper each hold a shared lock on it
// (flock) as long as they live. If a process can take the
// exclusive lock, no recording uses the folder any more. Used by
// one thread.
#ifndef WEFT_CLI_SESSION_FOLDER_H_
#define WEFT_CLI_SESSION_FOLDER_H_

#include <chrono>
#include <string>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::cli {

// An empty folder without a lock that is younger may be one that is being made.
inline constexpr std::chrono::seconds kYoungFolder{60};

class SessionFolder {
 public:
  SessionFolder() = default;
  // Makes one, in RuntimeFolder(), and locks it.
  static Result<SessionFolder> Make();

  [[nodiscard]] const std::string& path() const { return path_; }
  // Removes the folder and what is in it, if it is there.
  void Remove();

 private:
  std::string path_;
  UniqueFd lock_;
};

// Removes what recordings of this user left in `runtime` whose processes were all killed: folders
// named as sessions' are, which this user owns, which no process has locked, where no process
// listens, and which are not empty and young. Only files that weft makes are removed from them; a
// folder that holds anything else stays.
void ClearAbandonedFolders(const std::string& runtime, std::chrono::seconds young = kYoungFolder);

}  // namespace weft::cli

#endif  // WEFT_CLI_SESSION_FOLDER_H_
