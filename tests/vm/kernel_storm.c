// SPDX-License-Identifier: Apache-2.0
/*
 * kernel_storm REPORT THREADS CALLS PAUSE_US [HOLD]: makes a known number of system calls on all
 * CPUs at once. Thread T has a CPU of its own as far as there are any. It makes the calls lseek(-1
 * - T, N, 7), N from 0 to CALLS - 1, each of which fails, and rests for PAUSE_US after every tenth.
 * If HOLD is given, it goes on until that file is gone, but makes no more than CALLS. When all are
 * done, it writes how many each thread made, a line each, to REPORT. It makes no other lseek. It is
 * linked statically, so that no loader makes one either.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_THREADS = 64, TOGETHER = 10 };

static long calls, pause_us;
static const char* hold;
static long made[MAX_THREADS];

static void stay_on_cpu(int thread) {
  cpu_set_t own;

  CPU_ZERO(&own);
  CPU_SET((unsigned)thread % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &own);
  if (sched_setaffinity(0, sizeof(own), &own) != 0) _exit(3);
}

static void* storm(void* argument) {
  const int thread = (int)(intptr_t)argument;

  stay_on_cpu(thread);
  for (long i = 0; i < calls; ++i) {
    if (i % TOGETHER == 0 && hold != NULL && access(hold, F_OK) != 0) break;
    if (syscall(SYS_lseek, -1 - thread, i, 7) != -1 || errno != EBADF) _exit(4);
    made[thread] = i + 1;
    if (i % TOGETHER == TOGETHER - 1 && pause_us > 0) usleep((useconds_t)pause_us);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const int threads = atoi(argv[2]);
  pthread_t ids[MAX_THREADS];

  calls = atol(argv[3]);
  pause_us = atol(argv[4]);
  hold = argc > 5 ? argv[5] : NULL;
  if (threads < 1 || threads > MAX_THREADS) return 2;
  for (int i = 0; i < threads; ++i)
    if (pthread_create(&ids[i], NULL, storm, (void*)(intptr_t)i) != 0) return 5;
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  FILE* report = fopen(argv[1], "we");
  if (report == NULL) return 6;
  for (int i = 0; i < threads; ++i) fprintf(report, "%ld\n", made[i]);
  return fclose(report) == 0 ? 0 : 6;
}
