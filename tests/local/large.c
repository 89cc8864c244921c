/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emits large events, for the tests of local mode.
 *
 *   large [--threads T] [--own-rseq] SIZE...
 *
 * Every thread emits for each SIZE, which is number N from 0: a text of SIZE bytes, each of them
 * the letter N of the alphabet, a sequence of the same bytes unless they are many, and a small
 * event. --own-rseq: threads register an rseq area of their own first, so that the library cannot
 * use one (for an environment in which libc registers none).
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/large_tp.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_ELEMENTS 140000 /* readers print each of them */

#if defined(__aarch64__)
#define SIGNATURE 0xd428bc00
#else
#define SIGNATURE 0x53053053
#endif

static __thread uint64_t area[4] __attribute__((aligned(32)));
static bool own_rseq;
static int count;
static char** sizes;

static void* emit(void* argument) {
  if (own_rseq && syscall(SYS_rseq, area, sizeof(area), 0, SIGNATURE) != 0) perror("rseq");
  for (int n = 0; n < count; ++n) {
    const size_t size = strtoul(sizes[n], NULL, 10);
    char* const words = malloc(size + 1);
    if (words == NULL) exit(99);
    memset(words, 'a' + n % 26, size);
    words[size] = 0;
    tracepoint(large, text, n, words);
    if (size <= MOST_ELEMENTS) tracepoint(large, bytes, n, (const uint8_t*)words, (uint32_t)size);
    tracepoint(large, small, n);
    free(words);
  }
  return argument;
}

int main(int argc, char** argv) {
  int threads = 1, at = 1;
  for (; at < argc && argv[at][0] == '-'; ++at) {
    if (strcmp(argv[at], "--own-rseq") == 0) own_rseq = true;
    if (strcmp(argv[at], "--threads") == 0) threads = atoi(argv[++at]);
  }
  sizes = argv + at;
  count = argc - at;
  pthread_t ids[16];
  if (threads > 16) return 98;
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, emit, NULL);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  return 0;
}
