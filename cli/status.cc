// SPDX-License-Identifier: Apache-2.0
// See status.h. Sessions are found by their folders' names; a folder without a living agent is
// passed over.
#include "cli/status.h"

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "cli/install_tree.h"
#include "cli/session_client.h"
#include "cli/summary.h"

namespace weft::cli {
namespace {

constexpr std::chrono::milliseconds kAnswerTime{3000};

const char* PhaseName(ipc::Phase phase) {
  switch (phase) {
    case ipc::Phase::kNone:
    case ipc::Phase::kCreated:
      return "created";
    case ipc::Phase::kStarting:
      return "starting";
    case ipc::Phase::kReady:
      return "recording";
    case ipc::Phase::kStopping:
      return "stopping";
    case ipc::Phase::kStopped:
      return "stopped";
  }
  return "?";
}

std::vector<std::string> Folders() {
  std::vector<std::string> folders;
  const std::string runtime = RuntimeFolder();
  DIR* dir = opendir(runtime.c_str());
  if (dir == nullptr) return folders;
  while (const dirent* entry = readdir(dir))
    if (std::string_view(entry->d_name).starts_with(SessionPrefix()))
      folders.push_back(runtime + "/" + entry->d_name);
  closedir(dir);
  std::ranges::sort(folders);
  return folders;
}

// Calls `visit` with each that has something to record.
void ForEachSession(
    const std::function<void(SessionClient& client, const ipc::SessionState& state)>& visit) {
  for (const std::string& folder : Folders()) {
    auto client = SessionClient::Attach(folder);
    if (!client || !client->Query()) continue;
    const auto state = client->Poll(kAnswerTime);
    if (state && state->phase != ipc::Phase::kNone) visit(*client, *state);
  }
}

}  // namespace

int RunStatus(bool json) {
  size_t shown = 0;
  std::string all = "[";
  ForEachSession([&](SessionClient&, const ipc::SessionState& state) {
    if (json) {
      all += (shown == 0 ? "\n" : ",\n") + SummaryJson(state);
    } else {
      std::printf("%s: %s, %llu %s, in %s\n", state.programs.c_str(), PhaseName(state.phase),
                  static_cast<unsigned long long>(state.processes),
                  state.processes == 1 ? "process" : "processes", state.output.c_str());
      for (const ipc::TraceState& trace : state.traces) {
        ipc::SessionState one;
        one.traces = {trace};
        std::printf("  %s%s\n", trace.name.c_str(), ProgressText(one).substr(4).c_str());
      }
      for (const std::string& notice : state.notices) std::printf("  %s\n", notice.c_str());
    }
    ++shown;
  });
  if (json) std::printf("%s]\n", all.c_str());
  if (!json && shown == 0) std::printf("nothing is being recorded\n");
  return kExitOk;
}

int RunStatedump() {
  size_t asked = 0;
  ForEachSession([&](SessionClient& client, const ipc::SessionState& state) {
    // Only such a session has one.
    if (state.cgroup.empty() || state.phase != ipc::Phase::kReady) return;
    client.DumpState();
    std::printf("%s: asked\n", state.programs.c_str());
    ++asked;
  });
  if (asked != 0) return kExitOk;
  std::fputs("weft: nothing of the kernel is being recorded (see: weft status)\n", stderr);
  return kExitBadInput;
}

}  // namespace weft::cli
