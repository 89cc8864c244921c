// SPDX-License-Identifier: Apache-2.0
// See filter_check.h. ptrace(2): PTRACE_SECCOMP_GET_FILTER; seccomp(2).
#include "node-agent/attach/filter_check.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <vector>

#include "node-agent/attach/limits.h"

namespace weft::attach {
namespace {

Status Refuse(const char* why) { return Fail(ErrorCode::kUnsupported, why); }

// In the child. Ends it; `lives` says that all calls were made. The child has the agent's memory,
// which must not get into a core file.
[[noreturn]] void MakeCalls(const sock_fprog& filter, volatile char* lives) {
  (void)signal(SIGILL, SIG_DFL);
  if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0) {
    const long page = syscall(SYS_mmap, nullptr, kPageBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)syscall(SYS_mprotect, page, kPageBytes, PROT_READ);
    (void)syscall(SYS_munmap, page, kPageBytes);
    (void)syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, nullptr, sizeof(uint64_t));
    (void)syscall(SYS_gettid);
    (void)syscall(SYS_getpid);
    (void)syscall(SYS_wait4, -1, nullptr, WNOHANG, nullptr);
    *lives = 1;
  }
  // The filter may refuse this call, too.
  (void)syscall(SYS_exit_group, 0);
  __builtin_trap();
}

}  // namespace

Status CheckFilter(const std::vector<sock_filter>& code) {
  void* page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return FailErrno("mmap");
  auto* lives = static_cast<volatile char*>(page);
  const sock_fprog filter{static_cast<unsigned short>(code.size()),
                          const_cast<sock_filter*>(code.data())};
  const pid_t child = fork();
  if (child == 0) MakeCalls(filter, lives);
  Status status = child < 0 ? FailErrno("fork") : Status();
  if (child > 0) {
    while (waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
    }
    if (*lives == 0)
      status =
          Refuse("its seccomp filter kills for calls that libweft.so makes (mmap, mprotect, ...)");
  }
  munmap(page, kPageBytes);
  return status;
}

Status CheckFilters(int32_t tid) {
  for (size_t number = 0; number < kMaxFilters; ++number) {
    std::vector<sock_filter> code(BPF_MAXINSNS);
    const long count = ptrace(static_cast<__ptrace_request>(PTRACE_SECCOMP_GET_FILTER), tid,
                              reinterpret_cast<void*>(number), code.data());
    if (count < 0 && errno == ENOENT) return {};
    if (count <= 0 || count > BPF_MAXINSNS)
      return Refuse("it has a seccomp filter that weft cannot read");
    code.resize(static_cast<size_t>(count));
    WEFT_TRY(CheckFilter(code));
  }
  return Refuse("it has too many seccomp filters");
}

}  // namespace weft::attach
