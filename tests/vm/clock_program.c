/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_program ROUNDS: in one thread, in each round N, an event of its own, the system call
 * lseek(-1, N, 7), which fails, and another event; the events' numbers are 2 N and 2 N + 1. Now and
 * then it goes to another CPU, also within a round.
 */
#define _GNU_SOURCE
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/vm/clock_program_tp.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STAY = 7 }; /* steps; three are a round */

static void step(int number) {
  cpu_set_t next;

  if (number % STAY != 0) return;
  CPU_ZERO(&next);
  CPU_SET((unsigned)(number / STAY) % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &next);
  if (sched_setaffinity(0, sizeof(next), &next) != 0) _exit(3);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;

  for (int i = 0; i < rounds; ++i) {
    step(3 * i);
    tracepoint(clock_program, mark, 2 * i);
    step(3 * i + 1);
    if (syscall(SYS_lseek, -1, (long)i, 7) != -1) return 4;
    step(3 * i + 2);
    tracepoint(clock_program, mark, 2 * i + 1);
  }
  return 0;
}
