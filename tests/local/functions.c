// SPDX-License-Identifier: Apache-2.0
// A program whose functions are recorded without its knowledge. It counts its own calls and checks
// what they return: any difference ends it with a message and status 1. Its last line are counts.
//
//   local_functions MODE [N]
//     calls    N calls of each function below, on one thread
//     threads  the same on 4 threads
//     forks    4 children in turn, each with a thread; N calls each
//     jumps    N functions that are left by longjmp, and N that return
//     stacks   backtrace() inside functions, in signal handlers too
//     library  dlopen of FILE (third argument), N calls once the called function is hooked; twice
//     until    calls on 4 threads until FILE (second argument) exists
//     vectors  N calls with arguments and a result of 32 bytes, where the processor has AVX
//     texts    N calls with texts that end with a page, that are long, and that are none
//     memory   prints the first 16 bytes of each function when a line is read, until the input ends
#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/local/hooked.h"

struct pair {
  long a, b;
};

static _Atomic uint64_t counted;

HOOKED int many_arguments(int8_t a, uint16_t b, int32_t c, int64_t d, uint64_t e, void* f,
                          int32_t g, float x, double y, uint8_t h) {
  return a + b + c + (int)d + (int)e + (f != NULL) + g + (int)x + (int)y + h;
}
HOOKED double of_doubles(double a, double b) { return a * b; }
HOOKED float of_floats(float a) { return a / 2; }
HOOKED struct pair of_pairs(long a) { return (struct pair){a, -a}; }
HOOKED long double of_long_doubles(long double a) { return a + 1; }
HOOKED uint64_t recursive(uint64_t n) {
  const uint64_t below = n == 0 ? 0 : recursive(n - 1);
  __asm__ volatile("" : : "r"(below));  // no loop is made of it
  return n + below;
}
// A function must have room for a jump, so these have large numbers.
HOOKED int last_call(int n) { return n - 1000000; }
HOOKED int tail_call(int n) { return last_call(n * 2 + 1000001); }
HOOKED long variable(int count, ...) {
  __builtin_va_list list;
  long sum = 0;
  __builtin_va_start(list, count);
  for (int i = 0; i < count; ++i) sum += __builtin_va_arg(list, long);
  __builtin_va_end(list);
  return sum;
}
HOOKED int by_table(int n) {
  switch (n % 8) {
    case 0:
      return 10;
    case 1:
      return 7 * n;
    case 2:
      return -n;
    case 3:
      return n ^ 5;
    case 4:
      return n + 9;
    case 5:
      return n / 2;
    case 6:
      return 3;
    default:
      return 0;
  }
}
// It begins with the nops that a kernel or a tracer may patch.
HOOKED __attribute__((patchable_function_entry(5))) int with_nops(int n) { return -n; }
HOOKED int of_texts(const char* text, const char* other, int n) { return n + (text != other); }

#if defined(__x86_64__)
typedef double vector __attribute__((vector_size(32)));
__attribute__((target("avx"))) HOOKED vector of_vectors(vector a, vector b, const char* text,
                                                        vector c) {
  return a * b + c + (text[0] == 'x');
}
#endif

static jmp_buf place[8];
HOOKED void leaves(int thread) { longjmp(place[thread], 1); }

HOOKED int depth_of_stack(int deep) {
  void* frames[64];
  const int depth = deep > 0 ? depth_of_stack(deep - 1) : backtrace(frames, 64);
  __asm__ volatile("" : : "r"(depth));
  return depth;
}

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "wrong: %s\n", what);
  _exit(1);
}

// All functions of the list, once each, but recursive (4 calls).
static void call_all(int i) {
  int x = 0;
  check(many_arguments(-1, 2, 3, i, 5, &x, 7, 8.5F, 9.25, 10) ==
            -1 + 2 + 3 + i + 5 + 1 + 7 + 8 + 9 + 10,
        "many_arguments");
  check(of_doubles(i, 0.5) == i * 0.5, "of_doubles");
  check(of_floats((float)i) == (float)i / 2, "of_floats");
  const struct pair p = of_pairs(i);
  check(p.a == i && p.b == -i, "of_pairs");
  check(of_long_doubles(i) == (long double)i + 1, "of_long_doubles");
  check(recursive(3) == 6, "recursive");
  check(tail_call(i) == 2 * i + 1, "tail_call");
  check(variable(8, 1L, 2L, 3L, 4L, 5L, 6L, 7L, (long)i) == 28 + i, "variable");
  check(by_table(8 * i + 3) == ((8 * i + 3) ^ 5), "by_table");
  check(with_nops(i) == -i, "with_nops");
  ++counted;
}

static long limit;
static const char* end_file;
static _Atomic int ends;

static void* call_until_end(void* unused) {
  for (int i = 0; !ends; ++i) call_all(i % 1000);
  return unused;
}

static void* call_to_limit(void* unused) {
  for (long i = 0; i < limit; ++i) call_all((int)i);
  return unused;
}

static void run_threads(void* (*function)(void*), int count) {
  pthread_t threads[16];
  for (int i = 0; i < count; ++i)
    check(pthread_create(&threads[i], NULL, function, NULL) == 0, "thread");
  if (function == call_until_end) {
    while (access(end_file, F_OK) != 0) usleep(10000);
    ends = 1;
  }
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

static void run_forks(void) {
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      run_threads(call_to_limit, 1);
      _exit(0);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child && status == 0, "child");
    counted += (uint64_t)limit;
  }
}

static void run_jumps(void) {
  for (volatile long i = 0; i < limit; ++i) {
    if (setjmp(place[0]) == 0) leaves(0);
    call_all((int)i);
  }
}

static volatile int handled;
static void on_alarm(int signal) {
  void* frames[64];
  (void)signal;
  handled += backtrace(frames, 64) > 0;
}

static void run_stacks(void) {
  void* frames[1];
  backtrace(frames, 1);  // loads libgcc_s, which a handler must not
  // A call whose exit is recorded has one frame more.
  const int base = depth_of_stack(0), step = depth_of_stack(1) - base;
  check(step == 1 || step == 2, "frames of a call");
  for (int deep = 1; deep < 20; ++deep)
    check(depth_of_stack(deep) == base + deep * step, "depth of a stack");
  struct sigaction action = {.sa_handler = on_alarm};
  sigaction(SIGPROF, &action, NULL);
  const struct itimerval timer = {{0, 500}, {0, 500}};
  setitimer(ITIMER_PROF, &timer, NULL);
  const time_t end = time(NULL) + limit;
  while (time(NULL) < end) call_all(7);
  const struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &none, NULL);
  check(handled > 0, "signals");
}

static void call_in_handler(int signal) {
  (void)signal;
  call_all(3);
  ++handled;
}

// The signals interrupt the functions, and what records them.
static void run_signals(void) {
  struct sigaction action = {.sa_handler = call_in_handler};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval timer = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &timer, NULL);
  while (handled < limit) call_all(7);
  const struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &none, NULL);
}

static void run_library(const char* path) {
  sleep(1);
  void* library = dlopen(path, RTLD_NOW);
  check(library != NULL, "dlopen");
  int64_t (*checksum)(const void*, uint64_t) =
      (int64_t (*)(const void*, uint64_t))dlsym(library, "my_checksum");
  check(checksum != NULL, "dlsym");
  const volatile uint8_t* const code = (const volatile uint8_t*)checksum;
  while (*code != 0xe9) usleep(10000);  // a jump: it is hooked
  for (long i = 0; i < limit; ++i) check(checksum("\1\2", 2) == 3, "my_checksum");
  check(dlclose(library) == 0, "dlclose");
}

// All 32 bytes go to the function and come back.
#if defined(__x86_64__)
__attribute__((target("avx")))
#endif
static void
run_vectors(void) {
#if defined(__x86_64__)
  for (long i = 0; i < limit && __builtin_cpu_supports("avx"); ++i, ++counted) {
    const double n = (double)i;
    const vector a = {n, 1, 2, 3}, b = {2, n, 4, -n}, c = {1, 2, n, 7};
    const vector out = of_vectors(a, b, "xyz", c);
    check(out[0] == 2 * n + 2 && out[1] == n + 3 && out[2] == n + 9 && out[3] == -3 * n + 8,
          "of_vectors");
  }
#endif
}

static void run_texts(void) {
  char longest[2000];
  memset(longest, 'x', sizeof(longest));
  longest[sizeof(longest) - 1] = 0;
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0, "pages");
  memcpy(pages + 4093, "end", 3);
  for (long i = 0; i < limit; ++i) {
    char name[] = "name";
    check(of_texts(name, pages + 4093, (int)i) == i + 1, "of_texts");
    check(of_texts("", longest, (int)i) == i + 1, "of_texts");
    check(of_texts(NULL, (const char*)-8, (int)i) == i + 1, "of_texts");
    check(of_texts(pages + 4096, (const char*)0x8000000000000000, (int)i) == i + 1, "of_texts");
  }
}

static void print_memory(void) {
  void* const functions[] = {(void*)many_arguments, (void*)of_doubles, (void*)of_floats,
                             (void*)recursive,      (void*)last_call,  (void*)tail_call};
  char line[16];
  while (fgets(line, sizeof(line), stdin) != NULL) {
    call_all(1);
    for (unsigned f = 0; f < sizeof(functions) / sizeof(functions[0]); ++f)
      for (int i = 0; i < 16; ++i) printf("%02x", ((const volatile uint8_t*)functions[f])[i]);
    printf("\n");
    fflush(stdout);
  }
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  limit = argc > 2 ? atol(argv[2]) : 0;
  if (strcmp(mode, "calls") == 0) {
    call_to_limit(NULL);
  } else if (strcmp(mode, "threads") == 0) {
    run_threads(call_to_limit, 4);
  } else if (strcmp(mode, "until") == 0 && argc > 2) {
    end_file = argv[2];
    run_threads(call_until_end, 4);
  } else if (strcmp(mode, "forks") == 0) {
    run_forks();
  } else if (strcmp(mode, "jumps") == 0) {
    run_jumps();
  } else if (strcmp(mode, "stacks") == 0) {
    run_stacks();
  } else if (strcmp(mode, "signals") == 0) {
    run_signals();
  } else if (strcmp(mode, "library") == 0 && argc > 3) {
    for (int times = 0; times < 2; ++times) run_library(argv[3]);
  } else if (strcmp(mode, "vectors") == 0) {
    run_vectors();
  } else if (strcmp(mode, "texts") == 0) {
    run_texts();
  } else if (strcmp(mode, "memory") == 0) {
    print_memory();
  } else {
    fprintf(stderr, "what is \"%s\"?\n", mode);
    return 2;
  }
  printf("counted %llu\n", (unsigned long long)counted);
  return 0;
}
