/* SPDX-License-Identifier: Apache-2.0 */
/* A vfork child emits the process's first event; vfork's result and errno are as without weft. */
#include <sys/resource.h>

#include "hit.h"

int main(void) {
  pid_t child = vfork();
  if (child == 0) {
    hit_many(10);
    _exit(9);
  }
  say_end("child", child);
  hit_many(10);
  const struct rlimit none = {0, 0};
  if (geteuid() == 0) REQUIRE(setreuid(65534, 65534) == 0);
  REQUIRE(setrlimit(RLIMIT_NPROC, &none) == 0);
  child = vfork();
  if (child == 0) _exit(0);
  printf("vfork over the limit: %d %s\n", child, strerror(errno));
  fflush(stdout);
  hit_many(10);
  report();
  return 0;
}
