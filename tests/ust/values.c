/* SPDX-License-Identifier: Apache-2.0 */
/* See values_tp.h. In C and in C++; recorded_test.py says what is expected. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/context.h>
#ifdef __cplusplus
#include <stdexcept>
#include <string>
#endif

#define LONGEST 3000000 /* for no ring */

static const char* dotted(int number) {
  static char text[100];
  memset(text, '#', sizeof(text));
  snprintf(text, sizeof(text), "%d.%d", number >> 8, number & 255);
  return text;
}

static const int* numbers(int first) {
  static int list[20];
  for (int i = 0; i < 20; i++) list[i] = first + i;
  return list;
}

static const char* repeated(char letter, unsigned size) {
  static char text[LONGEST + 1];
  memset(text, letter, size);
  text[size] = 0;
  return text;
}

static int interrupt(unsigned size);

static jmp_buf before_probe;

static int left(int number) {
  if (number != 0) longjmp(before_probe, 1);
  return number;
}

#ifdef __cplusplus
static int thrown(int number) {
  if (number != 0) throw std::runtime_error("on purpose");
  return number;
}
#else
struct returned {
  int numbers[2];
  char text[40];
};

static struct returned returned(int number) {
  struct returned value = {{number, number * 2}, ""};
  snprintf(value.text, sizeof(value.text), "value %d", number);
  return value;
}
#endif

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "./values_tp.h"

/* The handler's events come in the middle of another one, whose earlier value is copied already. */
static void on_signal(int number) {
  (void)number;
  tracepoint(values, letters, 700, 30, 2);
  tracepoint(values, texts, 1, 2);
}

/* Also forks there: the child continues the event, too. */
static int interrupt(unsigned size) {
  const pid_t child = size == 600 ? fork() : 0;
  raise(SIGUSR1);
  if (child > 0) waitpid(child, NULL, 0);
  return (int)size;
}

static void one_buffer(void* data, struct weft_app_context_value* out) {
  static char text[8];
  snprintf(text, sizeof(text), "%s", (const char*)data);
  weft_context_string(out, text);
}

static long mapped_pages(void) {
  long pages = -1;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld", &pages) != 1) exit(2);
  fclose(file);
  return pages;
}

/* Leaves the probe 10,000 times; prints by how many pages that made the process larger. */
static void leave_probes(void) {
  volatile int i;
  const long before = mapped_pages();
  for (i = 10000; i > 0; i--) {
    if (!setjmp(before_probe)) tracepoint(values, leaves, i);
  }
  printf("%ld\n", mapped_pages() - before);
  for (i = 0; i < 10; i++) tracepoint(values, leaves, 0);
}

int main(int argc, char** argv) {
  const pid_t first = getpid();
  (void)argv;
  if (argc > 1) {
    leave_probes();
    return 0;
  }
  signal(SIGUSR1, on_signal);
  weft_context_register("values:one", one_buffer, (void*)"1");
  weft_context_register("values:two", one_buffer, (void*)"2");
  tracepoint(values, texts, 258, 2571);
  tracepoint(values, lists, 1);
  tracepoint(values, letters, 10, 20, 30);
  tracepoint(values, letters, 250, 300, 400);
  tracepoint(values, letters, 5000, 3, 4000);
  tracepoint(values, letters, 20, LONGEST, 1);
  tracepoint(values, interrupted, 40);
  tracepoint(values, interrupted, 500);
  tracepoint(values, interrupted, 600);
  if (getpid() != first) _exit(0);
  tracepoint(values, wrong_length, 4000000000u);
#ifdef __cplusplus
  tracepoint(values, temporaries, "abcdefgh");
  for (int i = 0; i < 1000; i++) {
    try {
      tracepoint(values, throws, i);
    } catch (const std::runtime_error&) {
    }
  }
#else
  tracepoint(values, literals, 7);
#endif
  return 0;
}
