/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits a known number of events, for the tests of local mode. Every process appends one line "PID
 * EVENTS" to the file of --report when it has emitted all; a tick's `number` counts from 0 in each
 * thread, so that a test sees what is missing or twice.
 *
 *   emitter [--events N] [--threads T] [--texts N] [--children C] [--in-turn 1] [--exec DEPTH]
 *           [--pause-us P] [--hold FILE] [--report FILE] [--status S] [--begin FILE] [--times FILE]
 *           [--large N] [--hold-children FILE] [--free-descriptors N] [--children-limit N]
 *   --children  forks C children, each emitting as much, after the parent's first event
 *   --in-turn   1: waits for each child before it forks the next one
 *   --exec      executes itself DEPTH times, emitting before each
 *   --hold      after the events, waits until FILE is there
 *   --hold-children  after their events, children wait until FILE is there, and the parent for them
 *   --begin     before the events, waits until FILE is there
 *   --times     writes when each event was emitted to FILE.THREAD: struct emitted, in order
 *   --free-descriptors  before the events, opens as many files as its limit allows, but N
 *   --children-limit    children set their limit of open files to N, below what is open
 *   --large     emits N texts first, each of which is too large to be recorded
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/emitter_tp.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t events = 100, texts;
static int threads = 1, children, in_turn, exec_depth, pause_us, status_code;
static const char *report, *hold, *hold_children, *begin, *times;
static uint64_t large;
static int free_descriptors = -1, children_limit = -1;

/* CLOCK_REALTIME in ns, just before and just after an event. */
struct emitted {
  uint64_t before, after;
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void write_times(int thread, const struct emitted* list, uint64_t count) {
  char path[4096];
  snprintf(path, sizeof(path), "%s.%d", times, thread);
  FILE* file = fopen(path, "w");
  if (file == NULL || fwrite(list, sizeof(*list), count, file) != count || fclose(file) != 0)
    _exit(97);
}

static void emit_large(struct emitted* list) {
  static char words[1 << 21];
  memset(words, 'w', sizeof(words) - 1);
  for (uint64_t i = 0; i < large; ++i) {
    const uint64_t before = now();
    tracepoint(emitter, text, words, 0);
    if (list != NULL) list[i] = (struct emitted){before, now()};
  }
}

static void* emit(void* argument) {
  const int thread = (int)(intptr_t)argument;
  struct emitted* list = times == NULL ? NULL : calloc(large + events, sizeof(*list));
  const uint64_t first = thread == 0 ? large : 0;
  if (thread == 0) emit_large(list);
  for (uint64_t i = 0; i < events; ++i) {
    const uint64_t before = list == NULL ? 0 : now();
    tracepoint(emitter, tick, getpid(), thread, i);
    if (list != NULL) list[first + i] = (struct emitted){before, now()};
    if (pause_us > 0) usleep((useconds_t)pause_us);
  }
  if (list != NULL) write_times(thread, list, first + events);
  free(list);
  return NULL;
}

/* A hundred processes may wait: looks often enough for a test, and leaves the CPUs to others. */
static void wait_for(const char* file) {
  while (file != NULL && access(file, F_OK) != 0) usleep(20000);
}

static void emit_all(void) {
  pthread_t ids[64];
  wait_for(begin);
  for (int i = 1; i < threads; ++i) pthread_create(&ids[i], NULL, emit, (void*)(intptr_t)i);
  emit(NULL);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
  for (uint64_t i = 0; i < texts; ++i) tracepoint(emitter, text, "some words", (double)i / 2);
  wait_for(hold);
  if (report == NULL) return;
  char line[64];
  const int n = snprintf(line, sizeof(line), "%d %llu\n", getpid(),
                         (unsigned long long)(events * (uint64_t)threads + texts + large));
  const int fd = open(report, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (fd < 0 || write(fd, line, (size_t)n) != n) _exit(99);
  close(fd);
}

static void parse(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *name = argv[i], *value = argv[i + 1];
    if (strcmp(name, "--events") == 0) events = strtoull(value, NULL, 10);
    if (strcmp(name, "--texts") == 0) texts = strtoull(value, NULL, 10);
    if (strcmp(name, "--threads") == 0) threads = atoi(value) < 64 ? atoi(value) : 63;
    if (strcmp(name, "--children") == 0) children = atoi(value);
    if (strcmp(name, "--in-turn") == 0) in_turn = atoi(value);
    if (strcmp(name, "--exec") == 0) exec_depth = atoi(value);
    if (strcmp(name, "--pause-us") == 0) pause_us = atoi(value);
    if (strcmp(name, "--hold") == 0) hold = value;
    if (strcmp(name, "--hold-children") == 0) hold_children = value;
    if (strcmp(name, "--report") == 0) report = value;
    if (strcmp(name, "--begin") == 0) begin = value;
    if (strcmp(name, "--times") == 0) times = value;
    if (strcmp(name, "--large") == 0) large = strtoull(value, NULL, 10);
    if (strcmp(name, "--free-descriptors") == 0) free_descriptors = atoi(value);
    if (strcmp(name, "--children-limit") == 0) children_limit = atoi(value);
    if (strcmp(name, "--status") == 0) status_code = atoi(value);
  }
}

static void limit_descriptors(rlim_t most) {
  const struct rlimit limit = {most, most};
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(96);
}

static void fill_descriptors(void) {
  int last = -1;
  limit_descriptors(64);
  for (int fd; (fd = dup(2)) >= 0;) last = fd;
  for (int i = 0; i < free_descriptors; ++i) close(last - i);
}

static void execute_self(int argc, char** argv) {
  char depth[16];
  snprintf(depth, sizeof(depth), "%d", exec_depth - 1);
  for (int i = 1; i + 1 < argc; i += 2)
    if (strcmp(argv[i], "--exec") == 0) argv[i + 1] = depth;
  execv("/proc/self/exe", argv);
  _exit(98);
}

int main(int argc, char** argv) {
  parse(argc, argv);
  if (free_descriptors >= 0) fill_descriptors();
  emit_all();
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child != 0) {
      if (child > 0 && in_turn) waitpid(child, NULL, 0);
      continue;
    }
    if (children_limit >= 0) limit_descriptors((rlim_t)children_limit);
    emit_all();
    wait_for(hold_children);
    _exit(0);
  }
  while (wait(NULL) > 0) {
  }
  if (exec_depth > 0) execute_self(argc, argv);
  return status_code;
}
