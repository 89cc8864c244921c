/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vfork child is killed from outside while it traces as fast as it can, perhaps in the middle of
 * a record and owning a lock. Its parent goes on tracing on the same thread pointer; no event of
 * the parent may be discarded as nested in a dead child's.
 */
#include <pthread.h>
#include <signal.h>

#include "hit.h"

static pid_t child_pid;
static int stop;

static void* killer(void* arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    const pid_t pid = __atomic_exchange_n(&child_pid, 0, __ATOMIC_ACQ_REL);
    if (pid == 0) continue;
    usleep(300);
    kill(pid, SIGKILL);
  }
  return arg;
}

int main(void) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, killer, NULL) == 0);
  for (volatile int i = 0; i < 60; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      __atomic_store_n(&child_pid, getpid(), __ATOMIC_RELEASE);
      for (int n = 0;; ++n) hit_while_alive(n);
    }
    REQUIRE(child > 0);
    hit_many(20);
    REQUIRE(waitpid(child, NULL, 0) == child);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
  report();
  report_unfinished();
  return 0;
}
