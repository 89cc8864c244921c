/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters EVENTS: threads and a fork child read their own counters just before each event and
 * record the values. The values of the event's contexts therefore lie between two readings of the
 * thread's. Exit status 1: a descriptor is open that was not at the start.
 */
#define _GNU_SOURCE
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/counters_tp.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int events;

static int open_descriptors(void) {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == NULL) return -1;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static void* emit(void* argument) {
  const int thread = (int)(intptr_t)argument;
  char* memory =
      mmap(NULL, 4096 * (size_t)events, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int i = 0; i < events; ++i) {
    struct rusage usage;
    struct timespec clock;
    if (memory != MAP_FAILED) memory[4096 * i] = 1;
    if (i % 8 == 0) usleep(1);
    getrusage(RUSAGE_THREAD, &usage);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &clock);
    tracepoint(counters, read, thread,
               (uint64_t)clock.tv_sec * 1000000000u + (uint64_t)clock.tv_nsec,
               (uint64_t)(usage.ru_minflt + usage.ru_majflt),
               (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw));
  }
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[3];
  const int before = open_descriptors();
  events = argc > 1 ? atoi(argv[1]) : 100;
  for (intptr_t i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, emit, (void*)(i + 1));
  emit((void*)0);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    emit((void*)(intptr_t)9);
    _exit(open_descriptors() != before);
  }
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  return open_descriptors() != before;
}
