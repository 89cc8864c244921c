// SPDX-License-Identifier: Apache-2.0
// The measured program: `program EVENT THREADS BURSTS EVENTS_PER_BURST PACE`. Every thread makes bursts
// of events. PACE > 0: microseconds of pause between bursts, so that the consumer keeps up and nothing is
// discarded. PACE < 0: -PACE thousand events per second and thread, on a schedule, after as many events at
// an eighth of that speed as WARM_BURSTS have. Prints the median burst in ns per event, the median of a bare
// clock read, and events per second (without the slow ones).
// Compiled once against LTTng's headers, once against weft's.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "provider.h"

enum { WARM_BURSTS = 150, WARM_SLOWER = 8 };

static const char* event;
static int bursts, events_per_burst, pace;
static pthread_barrier_t barrier;
static const uint32_t numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void read_clock(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
#else
  uint64_t t;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
#endif
}

static void burst(const char* kind, int n) {
  int local = 0;
  if (strcmp(kind, "four") == 0) {
    for (int i = 0; i < n; ++i) tracepoint(bench, four, i, (uint64_t)i * 3, i * 0.5, &local);
  } else if (strcmp(kind, "text") == 0) {
    for (int i = 0; i < n; ++i) tracepoint(bench, text, "a string of thirty-two characters");
  } else if (strcmp(kind, "numbers") == 0) {
    for (int i = 0; i < n; ++i) tracepoint(bench, numbers, numbers, 8);
  } else if (strcmp(kind, "off") == 0) {
    for (int i = 0; i < n; ++i) {
      tracepoint(bench, off, i);
      __asm__ volatile("" ::: "memory");
    }
  } else if (strcmp(kind, "empty") == 0) {
    for (int i = 0; i < n; ++i) __asm__ volatile("" : : "r"(i) : "memory");
  } else {
    for (int i = 0; i < n; ++i) read_clock();
  }
}

static void wait_until(double time) {
  const double left = time - now();
  if (left > 0) usleep((useconds_t)(left / 1000));
}

struct thread {
  pthread_t id;
  double* results;  // ns per event, of every burst
  double seconds;   // from the first of them to the last
};

static void* run(void* arg) {
  struct thread* mine = arg;
  burst(event, 100);
  pthread_barrier_wait(&barrier);
  const double period = pace < 0 ? events_per_burst * 1e6 / -pace : 0;
  double begin = now();
  for (int b = 0; pace < 0 && b < WARM_BURSTS; ++b) {
    wait_until(begin + b * period * WARM_SLOWER);
    burst(event, events_per_burst);
  }
  pthread_barrier_wait(&barrier);
  begin = now();
  for (int b = 0; b < bursts; ++b) {
    if (pace < 0) {
      wait_until(begin + b * period);
    } else {
      pthread_barrier_wait(&barrier);
    }
    const double start = now();
    burst(event, events_per_burst);
    mine->results[b] = (now() - start) / events_per_burst;
    if (pace > 0) usleep((useconds_t)pace);
  }
  mine->seconds = (now() - begin) / 1e9;
  return NULL;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s EVENT THREADS BURSTS EVENTS_PER_BURST PACE\n", argv[0]);
    return 2;
  }
  event = argv[1];
  const int threads = atoi(argv[2]);
  bursts = atoi(argv[3]);
  events_per_burst = atoi(argv[4]);
  pace = atoi(argv[5]);
  double* results = calloc((size_t)(threads * bursts), sizeof(double));
  struct thread* all = calloc((size_t)threads, sizeof(all[0]));
  if (threads < 1 || bursts < 1 || results == NULL || all == NULL) return 2;
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    all[i].results = results + i * bursts;
    pthread_create(&all[i].id, NULL, run, &all[i]);
  }
  double seconds = 0;
  for (int i = 0; i < threads; ++i) {
    pthread_join(all[i].id, NULL);
    if (all[i].seconds > seconds) seconds = all[i].seconds;
  }
  const int n = threads * bursts;
  qsort(results, (size_t)n, sizeof(double), compare);

  double clock_reads[101];
  for (int i = 0; i < 101; ++i) {
    const double start = now();
    burst("clock", 2000);
    clock_reads[i] = (now() - start) / 2000;
  }
  qsort(clock_reads, 101, sizeof(double), compare);
  printf("%.3f %.3f %.0f\n", results[n / 2], clock_reads[50],
         (double)n * events_per_burst / seconds);
  free(all);
  free(results);
  return 0;
}
