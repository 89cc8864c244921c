/* SPDX-License-Identifier: Apache-2.0 */
/* under_filter ACTION NAME,NAME... PROGRAM ARGS: executes the program under a seccomp filter. It is
 * always started without the library; WITH_PRELOAD becomes the program's LD_PRELOAD. */
#include <stdio.h>

#include "filter.h"

int main(int argc, char** argv) {
  struct sock_filter code[64];
  if (argc < 4) return 97;
  const struct sock_fprog program = {build_filter(code, argv[2], filter_action(argv[1])), code};
  const char* preload = getenv("WITH_PRELOAD");
  if (preload) setenv("LD_PRELOAD", preload, 1);
  unsetenv("WITH_PRELOAD");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("seccomp");
    return 97;
  }
  execv(argv[3], argv + 3);
  perror(argv[3]);
  return 97;
}
