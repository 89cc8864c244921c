/* SPDX-License-Identifier: Apache-2.0 */
/* identity WHAT: changes who or where the process is, between events. It needs root. */
#include <grp.h>
#include <sched.h>
#include <sys/stat.h>

#include "hit.h"

static void fork_and_say(void) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    printf("pid %d\n", getpid() < 5 ? getpid() : 0);
    fflush(stdout);
    _exit(0);
  }
  say_end("child", child);
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  hit_many(50);
  if (strcmp(what, "uid") == 0) {
    REQUIRE(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
  } else if (strcmp(what, "chroot") == 0) {
    REQUIRE(mkdir("root", 0755) == 0 && chroot("root") == 0 && chdir("/") == 0);
  } else if (strcmp(what, "pid-ns") == 0) {
    REQUIRE(unshare(CLONE_NEWPID) == 0);
  } else if (strcmp(what, "all-ns") == 0) {
    REQUIRE(unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP) ==
            0);
  } else if (strcmp(what, "user-ns") == 0) {
    REQUIRE(unshare(CLONE_NEWUSER) == 0);
  }
  hit_many(1000);
  fork_and_say();
  printf("uid %d gid %d\n", getuid(), getgid());
  fflush(stdout);
  report();
  return 0;
}
