/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A container's first process with tracepoints made for LTTng-UST, which keeps its own books:
 *
 *   tenant [--events N] [--threads T] [--pause-us P] [--burst B]
 *
 * After each SIGUSR1 every thread emits N events (1000) of tenant:work, with a pause of P
 * microseconds (0) after each B of them (1); then one line "events TOTAL" on standard output says
 * how many it has emitted of all kinds since its start. SIGTERM ends it. A tenant:work's `number`
 * counts from 0 in each thread (2) and never restarts, so that a test sees what is missing, or
 * twice.
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/cluster/tenant_tp.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMaxThreads = 64 };

static uint64_t events = 1000, burst = 1, rounds;
static int threads = 2, pause_us;

static void* emit(void* argument) {
  const int thread = (int)(intptr_t)argument;
  for (uint64_t i = 0; i < events; ++i) {
    tracepoint(tenant, work, thread, rounds * events + i);
    if (pause_us > 0 && (i + 1) % burst == 0) usleep((useconds_t)pause_us);
  }
  return NULL;
}

static int emit_all(void) {
  pthread_t ids[kMaxThreads];
  for (int i = 0; i < threads; ++i)
    if (pthread_create(&ids[i], NULL, emit, (void*)(intptr_t)i) != 0) return -1;
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  tracepoint(tenant, idle, "round done");
  ++rounds;
  printf("events %llu\n", (unsigned long long)(rounds * (events * (uint64_t)threads + 1)));
  return fflush(stdout);
}

static int parse(int argc, char** argv) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return -1;
    char* end;
    const unsigned long long value = strtoull(argv[i + 1], &end, 10);
    if (end == argv[i + 1] || *end != '\0' || value > 1000000000) return -1;
    if (strcmp(argv[i], "--events") == 0) {
      events = value;
    } else if (strcmp(argv[i], "--threads") == 0 && value >= 1 && value <= kMaxThreads) {
      threads = (int)value;
    } else if (strcmp(argv[i], "--burst") == 0 && value >= 1) {
      burst = value;
    } else if (strcmp(argv[i], "--pause-us") == 0) {
      pause_us = (int)value;
    } else {
      return -1;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  if (parse(argc, argv) != 0) {
    fputs("usage: tenant [--events N] [--threads T] [--pause-us P] [--burst B]\n", stderr);
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, NULL);
  puts("events 0");
  fflush(stdout);
  for (;;) {
    const int signal = sigwaitinfo(&signals, NULL);
    if (signal == SIGTERM) return 0;
    if (signal == SIGUSR1 && emit_all() != 0) return 1;
  }
}
