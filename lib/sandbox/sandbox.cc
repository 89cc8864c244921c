// SPDX-License-Identifier: Apache-2.0
// See sandbox.h.
#include "lib/sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <type_traits>

#include "lib/base/freed.h"

#ifdef WEFT_SANITIZED
// The leak check at the end would stop the process from a thread of its own, by ptrace.
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() { return 1; }
#endif

namespace weft {
namespace {

// The system calls that are allowed. None of them takes a path, makes a descriptor for something
// new, or names another process.
constexpr int kAllowed[] = {
    // For descriptors that it was given.
    SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(write), SCMP_SYS(pwrite64), SCMP_SYS(writev),
    SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(fstatfs), SCMP_SYS(ftruncate), SCMP_SYS(fsync),
    SCMP_SYS(fdatasync), SCMP_SYS(lseek), SCMP_SYS(sync_file_range), SCMP_SYS(fadvise64),
    // For messages, and for waiting for them.
    SCMP_SYS(sendmsg), SCMP_SYS(recvmsg), SCMP_SYS(poll), SCMP_SYS(ppoll),
    SCMP_SYS(restart_syscall), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep),
    // For the time, if the vDSO cannot tell it.
    SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
    // Memory for malloc; those with a protection are below.
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
    SCMP_SYS(getrandom),
    // For OpenSSL's random numbers, which a fork must not share.
    SCMP_SYS(getpid),
#ifdef WEFT_SANITIZED
    // For a sanitizer's run-time library; it uses a pipe to find out which memory is mapped.
    SCMP_SYS(sched_yield), SCMP_SYS(sigaltstack), SCMP_SYS(gettid), SCMP_SYS(pipe2),
#endif
    // The end.
    SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask)};

using Filter = std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, Freed<seccomp_release>>;

std::unexpected<Error> SeccompFailed(int error, const char* what) {
  errno = -error;
  return FailErrno(std::string("sandbox: ") + what);
}

Status AddRules(scmp_filter_ctx filter) {
  for (const int call : kAllowed) {
    if (const int rc = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0); rc != 0) {
      return SeccompFailed(rc, "seccomp_rule_add");
    }
  }
  const auto allow = [filter](int call, scmp_arg_cmp condition) -> Status {
    if (const int rc = ::seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 1, condition); rc != 0) {
      return SeccompFailed(rc, "seccomp_rule_add");
    }
    return {};
  };
  // Memory must not be executable.
  const scmp_arg_cmp no_exec = SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
  WEFT_TRY(allow(SCMP_SYS(mmap), no_exec));
  WEFT_TRY(allow(SCMP_SYS(mprotect), no_exec));
  // Seals and flags of a descriptor.
  for (const int command : {F_GET_SEALS, F_GETFL, F_SETFL, F_GETFD}) {
    WEFT_TRY(allow(SCMP_SYS(fcntl), SCMP_A1(SCMP_CMP_EQ, static_cast<scmp_datum_t>(command))));
  }
  // For freeing memory of a ring set.
  WEFT_TRY(
      allow(SCMP_SYS(fallocate), SCMP_A1(SCMP_CMP_EQ, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)));
  // fstat of a descriptor, as newer C libraries call it: the path is empty, and nothing is opened.
  WEFT_TRY(allow(SCMP_SYS(newfstatat), SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH)));
  return allow(SCMP_SYS(membarrier), SCMP_A0(SCMP_CMP_EQ, MEMBARRIER_CMD_GLOBAL));
}

// Fails nowhere: what is not there to be dropped is not missed, and the filter comes after it.
void DropCapabilities() {
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++) {
    (void)::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const __user_cap_data_struct none[2] = {};
  (void)::syscall(SYS_capset, &header, none);
}

}  // namespace

Status EnterSandbox(std::span<const int> refused) {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return FailErrno("sandbox: no_new_privs");
  DropCapabilities();
  const Filter filter(::seccomp_init(SCMP_ACT_KILL_PROCESS));
  if (filter == nullptr) return Fail(ErrorCode::kUnsupported, "sandbox: no seccomp filter");
  WEFT_TRY(AddRules(filter.get()));
  for (const int call : refused)
    if (const int rc = ::seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EACCES), call, 0); rc != 0)
      return SeccompFailed(rc, "seccomp_rule_add");
  if (const int rc = ::seccomp_load(filter.get()); rc != 0) {
    return SeccompFailed(rc, "seccomp_load");
  }
  return {};
}

}  // namespace weft
