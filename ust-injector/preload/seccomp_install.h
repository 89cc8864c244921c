// SPDX-License-Identifier: Apache-2.0
// Handles a seccomp filter that the program is about to install, by prctl or syscall(SYS_seccomp),
// which libweft.so provides. The library runs the filter (bpf.h) on each of its own calls. If the
// filter would kill for one, the library first makes everything that tracing needs. After that it
// makes no call any more, and events go on into the existing ring sets.
#ifndef WEFT_UST_INJECTOR_PRELOAD_SECCOMP_INSTALL_H_
#define WEFT_UST_INJECTOR_PRELOAD_SECCOMP_INSTALL_H_

#include <stdbool.h>

// Examines a prctl or seccomp call of the program. Returns true if the call installs a filter, and
// was made; *result is the kernel's result.
bool weft_seccomp_installs(long nr, const long args[5], long* result);

#endif  // WEFT_UST_INJECTOR_PRELOAD_SECCOMP_INSTALL_H_
