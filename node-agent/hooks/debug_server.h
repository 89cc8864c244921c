// SPDX-License-Identifier: Apache-2.0
// Debug files from debuginfod servers. The agent's administrator names the servers; a tenant's file
// only chooses the build-id, which is a number. Downloads are weft-debuginfod's work, a program of
// its own (elfutils' libdebuginfod), one after the other, on a thread that nothing waits for: files
// that are in the cache folder are there at once, all others at a later look.
//
// Limits of one namespace, or of one `weft record`: files that a pod asks for, time and size of a
// download; a file that no server has is not asked for again for kServerPeriod. In a cluster the
// cache folder is the agent's, and bounded. In local mode it is the user's, shared with gdb and
// others, and libdebuginfod removes what was not used for a week.
//
// Thread-safety: any thread may call Find and answers.
#ifndef WEFT_NODE_AGENT_HOOKS_DEBUG_SERVER_H_
#define WEFT_NODE_AGENT_HOOKS_DEBUG_SERVER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "lib/base/result.h"
#include "lib/base/unique_fd.h"

namespace weft::hooks {

struct DebugServerSettings {
  std::string urls;    // separated by spaces, as in DEBUGINFOD_URLS; "": there is no server
  std::string folder;  // the cache
  uint64_t max_file_bytes = 0;
  bool is_own_folder = false;  // in a cluster
  std::string program;         // weft-debuginfod
};

// Reads the environment variables that all clients of debuginfod have: DEBUGINFOD_URLS,
// DEBUGINFOD_CACHE_PATH, DEBUGINFOD_MAXSIZE, XDG_CACHE_HOME, HOME.
DebugServerSettings DebugServerSettingsFromEnvironment(bool is_cluster);

class DebugServer {
 public:
  explicit DebugServer(DebugServerSettings settings) : settings_(std::move(settings)) {}
  DebugServer(const DebugServer&) = delete;
  DebugServer& operator=(const DebugServer&) = delete;
  // Ends a download.
  ~DebugServer();

  [[nodiscard]] bool is_there() const { return !settings_.urls.empty(); }
  // Returns the debug file of an object with this build-id. kTimeout: it is asked for; answers()
  // grows when there is an answer. Any other error: it will not come for now; the message says why.
  // `pod`: of which process the object is; "" in local mode.
  Result<UniqueFd> Find(const std::string& build_id, const std::string& pod);
  [[nodiscard]] uint64_t answers() const { return answers_.load(); }

 private:
  struct Answer {
    bool is_there = false;  // else it is waited for
    Status status;
    std::chrono::steady_clock::time_point when;
  };

  Status Ask(const std::string& build_id, const std::string& pod);
  [[nodiscard]] Result<UniqueFd> OpenCached(const std::string& build_id) const;
  void Work();
  [[nodiscard]] Status Fetch(const std::string& build_id) const;
  [[nodiscard]] Status PrepareFolder() const;

  const DebugServerSettings settings_;
  std::atomic<uint64_t> answers_{0};
  UniqueFd stop_;
  std::thread thread_;

  std::mutex mutex_;  // of the next members
  std::condition_variable has_work_;
  bool ends_ = false;
  std::deque<std::string> queue_;  // build-ids
  std::map<std::string, Answer> asked_;
  std::map<std::string, size_t> by_pod_;  // files asked for since period_
  std::chrono::steady_clock::time_point period_;
};

// What one process may ask.
struct DebugSource {
  DebugServer* server = nullptr;  // nullptr: nothing
  std::string pod;

  [[nodiscard]] bool is_there() const { return server != nullptr && server->is_there(); }
};

// Removes the folders of the cache that were used longest ago, until the rest has at most these
// bytes and folders.
void PruneCache(const std::string& folder, uint64_t max_bytes, size_t max_folders);

}  // namespace weft::hooks

#endif  // WEFT_NODE_AGENT_HOOKS_DEBUG_SERVER_H_
