/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of one kind, named by the argument, before the first event. */
#include <signal.h>
#include <sys/resource.h>

#include "hit.h"

static void limit(int what, rlim_t value) {
  struct rlimit r;
  REQUIRE(getrlimit(what, &r) == 0);
  r.rlim_cur = value;
  REQUIRE(setrlimit(what, &r) == 0);
}

static rlim_t address_space(void) {
  unsigned long pages = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  REQUIRE(f != NULL && fscanf(f, "%lu", &pages) == 1);
  fclose(f);
  return (rlim_t)pages * 4096;
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "";
  if (strcmp(kind, "as-tight") == 0) limit(RLIMIT_AS, address_space() + 64 * 1024);
  if (strcmp(kind, "as-room") == 0) limit(RLIMIT_AS, address_space() + 4 * 1024 * 1024);
  if (strncmp(kind, "fsize", 5) == 0) limit(RLIMIT_FSIZE, 4096);
  if (strcmp(kind, "nproc") == 0) limit(RLIMIT_NPROC, 1);
  if (strcmp(kind, "stack") == 0) limit(RLIMIT_STACK, 64 * 1024);
  if (strcmp(kind, "lock-future") == 0) REQUIRE(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
  if (strcmp(kind, "lock-limit") == 0) {
    if (geteuid() == 0) REQUIRE(setreuid(65534, 65534) == 0);
    limit(RLIMIT_MEMLOCK, 64 * 1024); /* from now on each mapping counts */
    REQUIRE(mlockall(MCL_FUTURE) == 0);
  }
  hit_many(100);
  if (strcmp(kind, "fsize-later") == 0) {
    limit(RLIMIT_FSIZE, RLIM_INFINITY);
    sleep(2); /* trying again is for now and then */
    hit_many(100);
  }
  const pid_t child = strcmp(kind, "nproc") == 0 ? -1 : fork();
  if (child == 0) {
    hit_many(10);
    _exit(0);
  }
  if (child > 0) say_end("child", child);
  report();
  return 0;
}
