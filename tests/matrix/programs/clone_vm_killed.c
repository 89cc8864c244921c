/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that shares the memory is killed while it traces; what the parent emits afterwards is
 * recorded.
 */
#include <sched.h>
#include <signal.h>

#include "hit.h"

#define STACK 65536
static char stack[STACK] __attribute__((aligned(16)));

static int endless(void* arg) {
  (void)arg;
  for (int i = 0;; ++i) hit_while_alive(i);
  return 0;
}

int main(void) {
  for (int i = 0; i < 20; ++i) {
    const pid_t child = clone(endless, stack + STACK, CLONE_VM | SIGCHLD, NULL);
    REQUIRE(child > 0);
    usleep(500 + 37 * (useconds_t)i);
    hit();
    REQUIRE(kill(child, SIGKILL) == 0);
    say_end("child", child);
    hit();
  }
  report();
  report_unfinished();
  return 0;
}
