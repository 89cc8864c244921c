/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's start: two forks, a session, every descriptor closed, new ones in their place. */
#include <fcntl.h>

#include "hit.h"

static void be_daemon(int done) {
  for (int fd = 0; fd < 1024; ++fd) {
    if (fd != done) close(fd);
  }
  REQUIRE(open("/dev/null", O_RDWR) == 0);
  REQUIRE(dup(0) == 1 && dup(0) == 2);
  hit_many(200);
  REQUIRE(lseek(0, 0, SEEK_CUR) == 0);
  if (write(done, "x", 1) != 1) _exit(1);
  _exit(0);
}

int main(void) {
  int done[2];
  char byte;
  REQUIRE(pipe(done) == 0);
  hit_many(10);
  const pid_t child = fork();
  if (child == 0) {
    hit();
    setsid();
    if (fork() != 0) _exit(0);
    if (chdir("/") != 0) _exit(1);
    be_daemon(done[1]);
  }
  close(done[1]);
  say_end("child", child);
  REQUIRE(read(done[0], &byte, 1) == 1);
  REQUIRE(read(done[0], &byte, 1) == 0); /* the daemon has ended */
  report();
  return 0;
}
