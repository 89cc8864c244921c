/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes children that share the memory and run beside the parent: clone(CLONE_VM) without a thread
 * pointer of their own. They trace at the same time as the parent and its threads; then one is
 * killed while it traces. Ends with CLONE_VM | CLONE_VFORK.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "hit.h"

#define STACK 65536
static char stacks[4][STACK] __attribute__((aligned(16)));
static unsigned long running;
static int stop;

static int count_up(void* arg) {
  (void)arg;
  __atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
  hit_many(60000);
  return 6;
}

static int forked(void* arg) {
  (void)arg;
  hit_many(10);
  return 5;
}

static int endless(void* arg) {
  (void)arg;
  /* No event: only that it may be killed anywhere; its own events could not be counted exactly. */
  for (;;) sched_yield();
  return 0;
}

static void* busy(void* arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    hit_many(10);
    usleep(100);
  }
  return arg;
}

int main(void) {
  pthread_t thread;
  pid_t child[4];
  hit_many(100);
  REQUIRE(pthread_create(&thread, NULL, busy, NULL) == 0);
  for (int i = 0; i < 3; ++i) {
    child[i] = clone(count_up, stacks[i] + STACK, CLONE_VM | SIGCHLD, NULL);
    REQUIRE(child[i] > 0);
  }
  hit_many(60000);
  for (int i = 0; i < 3; ++i) say_end("child", child[i]);
  child[3] = clone(endless, stacks[3] + STACK, CLONE_VM | SIGCHLD, NULL);
  REQUIRE(child[3] > 0);
  hit_many(100);
  REQUIRE(kill(child[3], SIGKILL) == 0);
  say_end("child", child[3]);
  child[0] = clone(forked, stacks[0] + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
  REQUIRE(child[0] > 0);
  say_end("child", child[0]);
  child[1] = clone(forked, stacks[1] + STACK, SIGCHLD, NULL);
  REQUIRE(child[1] > 0);
  say_end("child", child[1]);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  report();
  return 0;
}
