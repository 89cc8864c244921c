/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread closes every descriptor and opens files in their place, all the time, while fork
 * children and threads make their first event. No file of the program may change, and none of its
 * numbers.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "hit.h"

static int stop;

static void* closer(void* arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    for (int fd = 10; fd < 20; ++fd) close(fd);
    for (int fd = 3; fd < 9; ++fd) close(fd);
    int file[6];
    for (int i = 0; i < 6; ++i) {
      file[i] = open("victim", O_RDWR | O_CREAT, 0600);
      REQUIRE(file[i] >= 0);
    }
    for (int i = 0; i < 6; ++i) {
      struct stat s;
      REQUIRE(fstat(file[i], &s) == 0); /* only this program closes its own files */
      REQUIRE(S_ISREG(s.st_mode));
      REQUIRE(s.st_size == 10);
    }
  }
  return arg;
}

static void child(void) {
  pthread_t thread;
  stop = 0;
  REQUIRE(pthread_create(&thread, NULL, closer, NULL) == 0);
  usleep(200);
  hit_many(10); /* the first one makes the ring set */
  usleep(500);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  _exit(0);
}

int main(void) {
  const int fd = open("victim", O_RDWR | O_CREAT, 0600);
  REQUIRE(fd >= 0 && ftruncate(fd, 10) == 0 && close(fd) == 0);
  for (int i = 0; i < 200; ++i) {
    const pid_t pid = fork();
    if (pid == 0) child();
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
  }
  report();
  return 0;
}
