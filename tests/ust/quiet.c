/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes no system call between two marks, if tracing makes none: calls_test.py
 * looks. `quiet WHAT`
 *   events   events of all kinds; the first ones stand before the first mark
 *   threads  the same in two threads
 *   fork     a child that ends at once
 *   clock    reads CLOCK_MONOTONIC
 * A mark is a close() that fails. Then it prints what a process has: threads, descriptors, signals,
 * timers.
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/ust/quiet_tp.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum mark { IN_MAIN = -1001, BEGIN = -1002, END = -1003, LEAVES_MAIN = -1004 };

/* How far the other thread has come, and how far it may go. */
static int has_come, may_come;

static void mark(enum mark which) { close(which); }

static void emit(int count) {
  static const char text[] = "a text of some length";
  for (int i = 0; i < count; ++i) {
    tracepoint(quiet, fixed, i, &i);
    tracepoint(quiet, variable, i, text + i % 4, (unsigned)i % (sizeof(text) - 4));
  }
}

static void come_to(int* at, int step) { __atomic_store_n(at, step, __ATOMIC_RELEASE); }

static void wait_for(const int* at, int step) {
  while (__atomic_load_n(at, __ATOMIC_ACQUIRE) < step) {
  }
}

static void* other(void* unused) {
  emit(1);
  come_to(&has_come, 1);
  wait_for(&may_come, 1);
  emit(5000);
  come_to(&has_come, 2);
  wait_for(&may_come, 2);
  return unused;
}

static void with_threads(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, other, NULL) != 0) _exit(3);
  wait_for(&has_come, 1);
  mark(BEGIN);
  come_to(&may_come, 1);
  emit(5000);
  wait_for(&has_come, 2);
  mark(END);
  come_to(&may_come, 2);
  pthread_join(thread, NULL);
}

static void with_child(void) {
  mark(BEGIN);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  mark(END);
}

static void read_clock(void) {
  struct timespec now;
  mark(BEGIN);
  for (int i = 0; i < 10; ++i) clock_gettime(CLOCK_MONOTONIC, &now);
  mark(END);
}

static int count_entries(const char* folder) {
  int count = -2; /* . and .. */
  DIR* entries = opendir(folder);
  while (entries != NULL && readdir(entries) != NULL) ++count;
  if (entries != NULL) closedir(entries);
  return count;
}

/* A thread that was joined stays in the list until its tracer has heard of its end. */
static int count_threads(void) {
  int count = 0;
  for (int tries = 0; tries < 2000 && (count = count_entries("/proc/self/task")) != 1; ++tries)
    usleep(1000);
  return count;
}

static void print_lines(const char* path, const char* start) {
  char line[256];
  FILE* file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    if (strncmp(line, start, strlen(start)) == 0) printf("%s: %s", path, line);
  if (file != NULL) fclose(file);
}

int main(int argc, char** argv) {
  static const char* const signals[] = {"SigPnd:", "SigBlk:", "SigIgn:", "SigCgt:"};
  const char* what = argc == 2 ? argv[1] : "";
  mark(IN_MAIN);
  emit(1);
  if (strcmp(what, "events") == 0) {
    mark(BEGIN);
    emit(5000);
    mark(END);
  } else if (strcmp(what, "threads") == 0) {
    with_threads();
  } else if (strcmp(what, "fork") == 0) {
    with_child();
  } else {
    read_clock();
  }
  printf("threads: %d\n", count_threads());
  printf("descriptors: %d\n", count_entries("/proc/self/fd"));
  for (int i = 0; i < 4; ++i) print_lines("/proc/self/status", signals[i]);
  print_lines("/proc/self/timers", "");
  mark(LEAVES_MAIN);
  return 0;
}
