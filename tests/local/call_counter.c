// SPDX-License-Identifier: Apache-2.0
// Counts calls of library functions, as a library that is preloaded: what the program calls through
// its import table, and what libc calls so (malloc and its like). Tests compare the counts with
// recorded events.
//
// It counts from the first call of setlocale, with which main() of most programs begins, or with
// COUNT_FROM=main from the start, to its own destructor. It marks both in the trace by malloc of
// sizes that no program asks for. CALL_COUNTS names the file that gets a line for each function:
// its name and count.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define BEGIN_BYTES 424242
#define END_BYTES 424243

static volatile int is_counting;  // changed while there is one thread

// clang-format off: one a line is no easier to read
#define COUNTED(X)                                                                             \
  X(open) X(open64) X(close) X(read) X(write) X(lseek) X(lseek64)                              \
  X(SSL_new) X(SSL_free) X(SSL_connect) X(SSL_read) X(SSL_read_ex) X(SSL_peek) X(SSL_write)    \
  X(SSL_write_ex) X(SSL_shutdown) X(SSL_do_handshake) X(SSL_set_fd)
// clang-format on

#define NUMBER(name) COUNT_##name,
enum { COUNTED(NUMBER) COUNT_malloc, COUNT_calloc, COUNT_realloc, COUNT_free, COUNTS };
#define NAME(name) #name,
static const char* const names[COUNTS] = {COUNTED(NAME) "malloc", "calloc", "realloc", "free"};
static long counts[COUNTS];

static void count(int which) {
  // relaxed: read at the end
  if (is_counting != 0) __atomic_fetch_add(&counts[which], 1, __ATOMIC_RELAXED);
}

// Arguments and results of all of these are integers and addresses: they pass as they are.
typedef long (*function)(long a, long b, long c, long d, long e, long f);

#define COUNT_AND_PASS(name)                                                     \
  EXPORT long counted_##name(long, long, long, long, long, long) __asm__(#name); \
  long counted_##name(long a, long b, long c, long d, long e, long f) {          \
    static function next;                                                        \
    if (next == NULL) next = (function)dlsym(RTLD_NEXT, #name);                  \
    count(COUNT_##name);                                                         \
    return next(a, b, c, d, e, f);                                               \
  }
COUNTED(COUNT_AND_PASS)

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t number, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void __libc_free(void* memory);

EXPORT void* malloc(size_t size) {
  count(COUNT_malloc);
  return __libc_malloc(size);
}

EXPORT void* calloc(size_t number, size_t size) {
  count(COUNT_calloc);
  return __libc_calloc(number, size);
}

// libc's realloc calls its malloc and free for these.
EXPORT void* realloc(void* memory, size_t size) {
  count(COUNT_realloc);
  if (memory == NULL) count(COUNT_malloc);
  if (memory != NULL && size == 0) count(COUNT_free);
  return __libc_realloc(memory, size);
}

EXPORT void free(void* memory) {
  count(COUNT_free);
  __libc_free(memory);
}

EXPORT char* setlocale(int category, const char* locale);
char* setlocale(int category, const char* locale) {
  static char* (*next)(int, const char*);
  if (next == NULL) {
    next = (char* (*)(int, const char*))dlsym(RTLD_NEXT, "setlocale");
    __libc_free(__libc_malloc(BEGIN_BYTES));
    is_counting = 1;
    count(COUNT_free);
  }
  return next(category, locale);
}

static __attribute__((constructor)) void begin(void) {
  const char* from = getenv("COUNT_FROM");
  if (from != NULL && strcmp(from, "main") == 0) is_counting = 1;
}

static __attribute__((destructor)) void report(void) {
  const char* path = getenv("CALL_COUNTS");
  char text[4096];
  int at = 0;
  __libc_free(__libc_malloc(END_BYTES));
  is_counting = 0;
  for (int i = 0; i < COUNTS; ++i)
    at += snprintf(text + at, sizeof(text) - (size_t)at, "%s %ld\n", names[i], counts[i]);
  if (path == NULL) return;
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || syscall(SYS_write, fd, text, at) != at) abort();
}
