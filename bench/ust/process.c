// SPDX-License-Identifier: Apache-2.0
// What a tracer costs a process as a whole: a program with 200 tracepoints. `process start` does
// nothing and ends; `process fork N` makes N children, each with one event, and prints the median
// and the mean of the microseconds from fork to the child's end; `process memory EVENTS` makes
// events, then prints its own Pss in KiB. Built with LTTng's headers or with weft's.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "many.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void forks(int n) {
  double* const spent = calloc((size_t)n, sizeof(*spent));
  double sum = 0;
  if (n < 1 || spent == NULL) exit(1);
  tracepoint(many, e000, 0);
  for (int i = 0; i < n; ++i) {
    const double start = now();
    const pid_t pid = fork();
    if (pid == 0) {
      tracepoint(many, e001, i);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
    spent[i] = now() - start;
    sum += spent[i];
  }
  qsort(spent, (size_t)n, sizeof(*spent), ascending);
  printf("%.3f %.3f\n", spent[n / 2], sum / n);
  free(spent);
}

static void memory(int events) {
  for (int i = 0; i < events; ++i) tracepoint(many, e000, i);
  char line[256];
  FILE* f = fopen("/proc/self/smaps_rollup", "r");
  while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
    long kib;
    if (sscanf(line, "Pss: %ld kB", &kib) == 1) printf("%ld\n", kib);
  }
  if (f != NULL) fclose(f);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "fork") == 0) forks(atoi(argv[2]));
  if (argc == 3 && strcmp(argv[1], "memory") == 0) memory(atoi(argv[2]));
  return 0;
}
