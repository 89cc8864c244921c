// SPDX-License-Identifier: Apache-2.0
// See session_folder.h.
#include "cli/session_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/install_tree.h"
#include "lib/ipc/connection.h"

namespace weft::cli {
namespace {

constexpr std::string_view kTemplate = "XXXXXX";
// What a session's folder can hold; each of them may stand there under its name with ".new" behind
// it.
constexpr std::array<std::string_view, 8> kFiles = {"local.ctl",   "local.mem",    "agent.sock",
                                                    "agent.names", "session.sock", "session.json",
                                                    "hooks.sock",  "libweft.so"};

UniqueFd OpenLocked(const std::string& path, int how) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && flock(fd.get(), how | LOCK_NB) != 0) fd.reset();
  return fd;
}

std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path.c_str()), closedir);
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) names.emplace_back(entry->d_name);
  return names;
}

bool IsSessionName(std::string_view name) {
  const std::string prefix = SessionPrefix();
  return name.size() == prefix.size() + kTemplate.size() && name.starts_with(prefix);
}

// The lock is held alone while this runs: no recording takes the folder meanwhile.
void ClearIfAbandoned(const std::string& path, std::chrono::seconds young) {
  const UniqueFd folder = OpenLocked(path, LOCK_EX);
  struct stat st{};
  if (!folder || fstat(folder.get(), &st) != 0 || st.st_uid != geteuid()) return;
  // "." and "..": it is empty, and may be one that is being made.
  if (NamesIn(path).size() <= 2 && std::time(nullptr) - st.st_ctime < young.count()) return;
  // Recordings of a weft that does not lock are known by their listening sockets.
  for (const char* name : {"/session.sock", "/agent.sock"})
    if (ipc::Connection::ConnectTo(path + name)) return;
  for (const std::string_view name : kFiles) {
    unlinkat(folder.get(), std::string(name).c_str(), 0);
    unlinkat(folder.get(), (std::string(name) + ".new").c_str(), 0);
  }
  rmdir(path.c_str());
}

}  // namespace

Result<SessionFolder> SessionFolder::Make() {
  SessionFolder folder;
  std::string name = RuntimeFolder() + "/" + SessionPrefix() + std::string(kTemplate);
  if (mkdtemp(name.data()) == nullptr) return FailErrno(name);
  folder.path_ = name;
  // Programs of root's that changed their user must get in; the name cannot be guessed.
  if (geteuid() == 0) chmod(name.c_str(), 0711);
  // Where a file system has no locks, no folder is ever cleared.
  folder.lock_ = OpenLocked(name, LOCK_SH);
  return folder;
}

void SessionFolder::Remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  lock_.reset();
}

void ClearAbandonedFolders(const std::string& runtime, std::chrono::seconds young) {
  for (const std::string& name : NamesIn(runtime))
    if (IsSessionName(name)) ClearIfAbandoned(std::filesystem::path(runtime) / name, young);
}

}  // namespace weft::cli
