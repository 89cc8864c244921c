/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that emits a known number of events, for the tests of local mode. Every process appends
 * one line "PID EVENTS" to the file of --report when it has emitted all; a tick's `number` counts from
 * 0 in each thread, so that a test sees what is missing or twice.
 *
 *   emitter [--events N] [--threads T] [--texts N] [--children C] [--exec DEPTH] [--pause-us P]
 *           [--hold FILE] [--report FILE] [--status S]
 *   --children  forks C children, each emitting as much, after the parent's first event
 *   --exec      executes itself DEPTH times, emitting before each
 *   --hold      after the events, waits until FILE is there
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/emitter_tp.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t events = 100, texts;
static int threads = 1, children, exec_depth, pause_us, status_code;
static const char *report, *hold;

static void* emit(void* argument) {
  const int thread = (int)(intptr_t)argument;
  for (uint64_t i = 0; i < events; ++i) {
    tracepoint(emitter, tick, getpid(), thread, i);
    if (pause_us > 0) usleep((useconds_t)pause_us);
  }
  return NULL;
}

static void emit_all(void) {
  pthread_t ids[64];
  for (int i = 1; i < threads; ++i) pthread_create(&ids[i], NULL, emit, (void*)(intptr_t)i);
  emit(NULL);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
  for (uint64_t i = 0; i < texts; ++i) tracepoint(emitter, text, "some words", (double)i / 2);
  while (hold != NULL && access(hold, F_OK) != 0) usleep(1000);
  if (report == NULL) return;
  char line[64];
  const int n = snprintf(line, sizeof(line), "%d %llu\n", getpid(),
                         (unsigned long long)(events * (uint64_t)threads + texts));
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
    if (strcmp(name, "--exec") == 0) exec_depth = atoi(value);
    if (strcmp(name, "--pause-us") == 0) pause_us = atoi(value);
    if (strcmp(name, "--hold") == 0) hold = value;
    if (strcmp(name, "--report") == 0) report = value;
    if (strcmp(name, "--status") == 0) status_code = atoi(value);
  }
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
  emit_all();
  for (int i = 0; i < children; ++i) {
    if (fork() != 0) continue;
    emit_all();
    _exit(0);
  }
  while (wait(NULL) > 0) {
  }
  if (exec_depth > 0) execute_self(argc, argv);
  return status_code;
}
