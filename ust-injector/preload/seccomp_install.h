// SPDX-License-Identifier: Apache-2.0
// A seccomp filter that the program is about to install, by prctl or syscall(SYS_seccomp), which
// libweft.so provides. The filter is run (bpf.h) on every call of weft's own. If one would kill,
// everything that tracing needs is made first; then weft makes no call any more, and events go on
// into the ring sets that are there.
#ifndef WEFT_UST_INJECTOR_PRELOAD_SECCOMP_INSTALL_H_
#define WEFT_UST_INJECTOR_PRELOAD_SECCOMP_INSTALL_H_

#include <stdbool.h>

// A prctl or seccomp call of the program. True: it installs a filter, and was made; *result is the
// kernel's result.
bool weft_seccomp_installs(long nr, const long args[5], long* result);

#endif  // WEFT_UST_INJECTOR_PRELOAD_SECCOMP_INSTALL_H_
