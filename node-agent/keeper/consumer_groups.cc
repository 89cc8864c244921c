// SPDX-License-Identifier: Apache-2.0
// See consumer_groups.h. Source of files and rules: Linux' admin-guide/cgroup-v2 and
// admin-guide/cgroup-v1/memory.
#include "node-agent/keeper/consumer_groups.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "lib/base/unique_fd.h"

namespace weft::keeper {
namespace {

// The share of GROUP's limit that consumers may use together; the rest is keeper's and agent's.
constexpr uint64_t kConsumersQuarters = 3;
// A consumer has two threads, and its sandbox lets it make no more.
constexpr const char* kMaxTasks = "16";
// Version 1 has no word for "no limit", but the largest number of whole pages.
constexpr uint64_t kNoLimit = uint64_t{1} << 60;

Status Write(const std::string& file, const std::string& text) {
  const UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return FailErrno(file);
  if (write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return FailErrno(file);
  return {};
}

Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return FailErrno(folder);
  return {};
}

const char* LimitFile(bool is_version_1) {
  return is_version_1 ? "/memory.limit_in_bytes" : "/memory.max";
}

// 0: none is set.
uint64_t LimitOf(const std::string& file) {
  std::ifstream in(file);
  uint64_t limit = 0;
  return in >> limit && limit < kNoLimit ? limit : 0;
}

// Controllers of `group` go to the groups below it. Without "pids" there is no limit of tasks.
Status Delegate(const std::string& group) {
  WEFT_TRY(Write(group + "/cgroup.subtree_control", "+memory"));
  (void)Write(group + "/cgroup.subtree_control", "+pids");
  return {};
}

// GROUP has controllers for the groups below it, and this process is in one of these.
Status LeaveForLeaf(const std::string& group) {
  const std::string leaf = group + "/weft";
  WEFT_TRY(MakeFolder(leaf));
  WEFT_TRY(Write(leaf + "/cgroup.procs", "0"));
  return Delegate(group);
}

// The folder of the consumers' groups, empty, with the limit of all of them together.
Result<std::string> MakeConsumers(const MemoryCgroup& own) {
  std::string folder = own.folder + "/consumers";
  WEFT_TRY(MakeFolder(folder));
  const std::string limit_file = LimitFile(own.is_version_1);
  if (const uint64_t limit = LimitOf(own.folder + limit_file); limit != 0)
    WEFT_TRY(Write(folder + limit_file, std::to_string(limit / 4 * kConsumersQuarters)));
  if (!own.is_version_1) WEFT_TRY(Delegate(folder));
  std::error_code error;
  for (const auto& left : std::filesystem::directory_iterator(folder, error))
    if (left.is_directory()) (void)rmdir(left.path().c_str());
  return folder;
}

}  // namespace

Result<ConsumerGroups> ConsumerGroups::Make(const MemoryCgroup& own, uint64_t memory) {
  const auto make = [&]() -> Result<std::string> {
    if (access((own.folder + "/cgroup.procs").c_str(), W_OK) != 0) return FailErrno(own.folder);
    if (!own.is_version_1) WEFT_TRY(LeaveForLeaf(own.folder));
    return MakeConsumers(own);
  };
  auto folder = make();
  if (folder) return ConsumerGroups(std::move(*folder), own.is_version_1, memory);
  (void)rmdir((own.folder + "/consumers").c_str());
  if (!own.is_version_1) {
    (void)Write(own.folder + "/cgroup.subtree_control", "-memory -pids");
    RemoveCgroup(own.folder + "/weft");
  }
  return Fail(ErrorCode::kUnsupported, folder.error().message);
}

std::string ConsumerGroups::FolderOf(const std::string& name) const {
  return folder_ + "/consumer-" + name;
}

// Both versions count in a line "oom_kill N".
uint64_t ConsumerGroups::KillsIn(const std::string& group) const {
  std::ifstream in(group + (is_version_1_ ? "/memory.oom_control" : "/memory.events"));
  std::string key;
  for (uint64_t count = 0; in >> key >> count;)
    if (key == "oom_kill") return count;
  return 0;
}

Status ConsumerGroups::Enter(const std::string& name, pid_t pid) {
  if (!is_on()) return {};
  const std::string group = FolderOf(name);
  WEFT_TRY(MakeFolder(group));
  kills_before_[name] = KillsIn(group);  // it is there if a process of an earlier consumer is
  WEFT_TRY(Write(group + LimitFile(is_version_1_), std::to_string(memory_)));
  if (!is_version_1_) {
    (void)Write(group + "/memory.oom.group", "1");
    (void)Write(group + "/pids.max", kMaxTasks);
  }
  return Write(group + "/cgroup.procs", std::to_string(pid));
}

bool ConsumerGroups::Leave(const std::string& name) {
  const auto before = kills_before_.extract(name);
  if (before.empty()) return false;
  const std::string group = FolderOf(name);
  const bool was_killed = KillsIn(group) > before.mapped();
  (void)rmdir(group.c_str());
  return was_killed;
}

}  // namespace weft::keeper
