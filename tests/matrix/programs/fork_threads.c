/* SPDX-License-Identifier: Apache-2.0 */
/* fork in the middle of other threads' events. */
#include <pthread.h>

#include "hit.h"

static int stop;
static int forks;

/* Some rounds for each fork: however long forks take, a ring set has room for all of its events. */
static void* busy(void* arg) {
  for (int rounds = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED);) {
    if (rounds < 15 * __atomic_load_n(&forks, __ATOMIC_RELAXED)) {
      hit_many(20);
      ++rounds;
    }
    usleep(100);
  }
  return arg;
}

int main(void) {
  pthread_t thread[3];
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_create(&thread[i], NULL, busy, NULL) == 0);
  for (int i = 0; i < 60; ++i) {
    __atomic_add_fetch(&forks, 1, __ATOMIC_RELAXED);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      hit_many(20);
      _exit(0);
    }
    REQUIRE(waitpid(child, NULL, 0) == child);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  report();
  return 0;
}
