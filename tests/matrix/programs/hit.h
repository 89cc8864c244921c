/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every program of the matrix uses these: hit() emits one event and counts it, report() prints how
 * many were emitted so far. The count is in shared memory: children of all kinds add to it, and one
 * process reports for all. One file per program includes it and then has the provider, too.
 * lint: not self-contained: its folder has to be in the include path.
 */
#ifndef WEFT_TESTS_MATRIX_HIT_H_
#define WEFT_TESTS_MATRIX_HIT_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "matrix_tp.h"

static unsigned long* hits;

static inline void prepare_hits(void) {
  if (hits) return;
  hits =
      (unsigned long*)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (hits == MAP_FAILED) {
    static unsigned long private_hits[2];
    hits = private_hits;
  }
}

static void __attribute__((constructor, used)) prepare_hits_early(void) { prepare_hits(); }

/* May run in any thread, any process and any signal handler. */
static inline void hit(void) {
  const unsigned long number = __atomic_add_fetch(hits, 1, __ATOMIC_RELAXED);
  tracepoint(matrix, hit, (int)number);
}

/* For a process that may be killed at any moment: counts the event after the call returned. */
static inline void hit_while_alive(int number) {
  __atomic_add_fetch(&hits[1], 1, __ATOMIC_RELAXED);
  tracepoint(matrix, hit, number);
  __atomic_add_fetch(&hits[0], 1, __ATOMIC_RELAXED);
  __atomic_sub_fetch(&hits[1], 1, __ATOMIC_RELAXED);
}

/* Reports how many of these events were left in the middle: they may have been emitted. */
static inline void report_unfinished(void) {
  printf("unfinished %lu\n", __atomic_load_n(&hits[1], __ATOMIC_RELAXED));
  fflush(stdout);
}

static inline void hit_text(const char* text) {
  const unsigned long number = __atomic_add_fetch(hits, 1, __ATOMIC_RELAXED);
  tracepoint(matrix, text, text, (int)number);
}

static inline void hit_many(int n) {
  while (n-- > 0) {
    if (n % 4 == 0) {
      hit_text("some text that is longer than sixty-four bytes, so that it is copied in one go");
    } else {
      hit();
    }
  }
}

/* Resets the count, so that several processes of a program may report their own. */
static inline void report(void) {
  char line[64];
  const int n =
      snprintf(line, sizeof(line), "emitted %lu\n", __atomic_exchange_n(hits, 0, __ATOMIC_RELAXED));
  if (write(1, line, (size_t)n) < 0) _exit(99);
}

#define REQUIRE(what)                                                            \
  do {                                                                           \
    if (!(what)) {                                                               \
      dprintf(2, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno)); \
      _exit(98);                                                                 \
    }                                                                            \
  } while (0)

/* Reaps one child and says how it ended. */
static inline void say_end(const char* who, pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  char line[96];
  const int n = WIFEXITED(status)
                    ? snprintf(line, sizeof(line), "%s exited %d\n", who, WEXITSTATUS(status))
                    : snprintf(line, sizeof(line), "%s killed by %d\n", who, WTERMSIG(status));
  if (write(1, line, (size_t)n) < 0) _exit(99);
}

#endif /* WEFT_TESTS_MATRIX_HIT_H_ */
