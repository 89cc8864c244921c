// SPDX-License-Identifier: Apache-2.0
// See code_change.h.
#include "node-agent/hooks/code_change.h"

#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/stopped_process.h"

namespace weft::hooks {
namespace {

std::set<int32_t> NumbersIn(const std::string& path) {
  std::set<int32_t> numbers;
  std::ifstream in(path);
  for (int32_t number = 0; in >> number;) numbers.insert(number);
  return numbers;
}

// Does a child of a thread of this process run on its memory? It is not stopped with it.
bool HasChildOnItsMemory(int32_t pid) {
  for (const int32_t tid : ThreadsOf(pid))
    for (const int32_t child :
         NumbersIn("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/children"))
      if (ShareMemory(pid, child)) return true;
  return false;
}

// Returns the id of the newest thread of the node, as far as this process's namespace has it: no
// process began while it is the same. 0: not known.
uint64_t NewestThread() {
  std::ifstream in("/proc/loadavg");
  std::string load, threads;
  uint64_t newest = 0;
  return in >> load >> load >> load >> threads >> newest ? newest : 0;
}

// Tells whether a child of a process runs on its memory, with as little work as possible while it
// is stopped: one look comes before.
class ChildOnMemory {
 public:
  explicit ChildOnMemory(int32_t pid)
      : pid_(pid), newest_(NewestThread()), was_there_(HasChildOnItsMemory(pid)) {}
  [[nodiscard]] bool IsThere() const {
    return newest_ != 0 && NewestThread() == newest_ ? was_there_ : HasChildOnItsMemory(pid_);
  }

 private:
  const int32_t pid_;
  const uint64_t newest_;
  const bool was_there_;
};

// From before the first thread is stopped until all go on.
class StopTime {
 public:
  explicit StopTime(std::chrono::nanoseconds& stopped) : stopped_(stopped) {}
  ~StopTime() { stopped_ += std::chrono::steady_clock::now() - begin_; }

 private:
  std::chrono::nanoseconds& stopped_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

Status Apply(const std::vector<Change>& changes, const std::vector<uint64_t>& entries,
             const ProcessMemory& memory, const BeforeChanges& before, bool& again,
             std::chrono::nanoseconds& stopped) {
  again = false;
  const ChildOnMemory child(memory.pid());
  const StopTime time(stopped);
  WEFT_ASSIGN(const StoppedProcess process, StoppedProcess::Stop(memory.pid()));
  if (child.IsThere() || process.IsInside(entries)) {
    again = true;
    return {};
  }
  if (before) {
    WEFT_ASSIGN(const bool is_done, before(process));
    again = !is_done;
    if (again) return {};
  }
  for (const Change& change : changes) {
    uint8_t now[WEFT_HOOK_JUMP_BYTES];
    // An object may have been unloaded since.
    if (!memory.Read(change.address, now, sizeof(now)) ||
        std::memcmp(now, change.before, sizeof(now)) != 0)
      continue;
    WEFT_TRY(memory.Write(change.address, change.after));
  }
  return {};
}

}  // namespace

bool ShareMemory(int32_t a, int32_t b) { return syscall(SYS_kcmp, a, b, KCMP_VM, 0UL, 0UL) == 0; }

bool IsOnParentsMemory(int32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("PPid:")) return ShareMemory(pid, std::atoi(line.c_str() + 5));
  return false;
}

Change PutJump(const weft_hook& hook) {
  Change change{.address = hook.address, .puts_jump = true};
  std::memcpy(change.before, hook.original, sizeof(change.before));
  std::memcpy(change.after, hook.jump, sizeof(change.after));
  return change;
}

Change TakeOff(const weft_hook& hook) {
  Change change{.address = hook.address};
  std::memcpy(change.before, hook.jump, sizeof(change.before));
  std::memcpy(change.after, hook.original, sizeof(change.after));
  return change;
}

bool HasShadowStack(int32_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("x86_Thread_features:")) return line.find("shstk") != std::string::npos;
  return false;
}

Status ChangeCode(const std::vector<Change>& changes, const ProcessMemory& memory,
                  std::chrono::nanoseconds& stopped, const BeforeChanges& before) {
  if (changes.empty()) return {};
  std::vector<uint64_t> entries;
  for (const Change& change : changes)
    if (change.puts_jump) entries.push_back(change.address);
  std::ranges::sort(entries);
  Status status;
  for (int i = 0; i < kStopTries; ++i) {
    bool again = false;
    InThreadOfItsOwn([&] { status = Apply(changes, entries, memory, before, again, stopped); });
    // A thread that waits for a vfork child, say, may stop later.
    const bool late = !status && status.error().code == ErrorCode::kTimeout && i < 2;
    if (!again && !late) return status;
    std::this_thread::sleep_for(kStopPause);
  }
  return Fail(ErrorCode::kTimeout,
              "a thread stays in the first bytes of a function, or a child runs on its memory");
}

}  // namespace weft::hooks
