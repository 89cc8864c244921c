// SPDX-License-Identifier: Apache-2.0
// A program without tracepoints whose functions take and return addresses: of texts, bytes and
// members of structs, good ones and bad ones.
//
//   functions_values N    calls all of them N times
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/local/hooked.h"

struct header {
  uint32_t kind;
  int16_t size;
};

struct request {
  uint64_t id;
  struct header header;
  char label[8];
  const char* name;
  const struct request* next;
  double ratio;
};

_Static_assert(offsetof(struct request, header.size) == 12, "as the test says");
_Static_assert(offsetof(struct request, label) == 16, "as the test says");
_Static_assert(offsetof(struct request, name) == 24, "as the test says");
_Static_assert(offsetof(struct request, next) == 32, "as the test says");
_Static_assert(offsetof(struct request, ratio) == 40, "as the test says");

static const void* const bad = (const void*)(uintptr_t)-8;

HOOKED const char* text_of(int n) {
  static char text[16];
  snprintf(text, sizeof(text), "text %d", n);
  return n % 3 == 0 ? text : n % 3 == 1 ? NULL : bad;
}

HOOKED uint32_t take_bytes(const void* data, int32_t size, const char* name) {
  return (uint32_t)size + (data != name);
}

// As read() does: fills what it says, and -1 is an error.
HOOKED int64_t fill(void* to, uint64_t size) {
  if (to == bad) return -1;
  const uint64_t filled = size / 2;
  for (uint64_t i = 0; i < filled; ++i) ((volatile uint8_t*)to)[i] = (uint8_t)(i + 1);
  return (int64_t)filled;
}

HOOKED uint64_t handle(const struct request* request) {
  __asm__ volatile("" : : "r"(request) : "memory");
  return 7;
}

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

static void call_all(int n, const uint8_t* pages) {
  uint8_t bytes[1024], filled[64];
  for (unsigned i = 0; i < sizeof(bytes); ++i) bytes[i] = (uint8_t)i;
  for (int i = 0; i < 3; ++i) check((text_of(i) == NULL) == (i == 1), "text_of");
  check(take_bytes(bytes, 5, "five") == 6, "take_bytes");
  check(take_bytes(bytes + 1, 1024, "many") == 1025, "take_bytes");
  check(take_bytes(bytes, -1, "less") == 0, "take_bytes");
  check(take_bytes(pages + 4096 - 3, 3, "last") == 4, "take_bytes");
  check(take_bytes(pages + 4096 - 3, 4, "over") == 5, "take_bytes");
  check(take_bytes(bad, 4, "bad") == 5, "take_bytes");
  check(fill(filled, 6) == 3, "fill");
  check(fill((void*)(uintptr_t)bad, 6) == -1, "fill");
  const struct request inner = {.id = 2, .header = {3, -4}, .label = "in", .name = "inner"};
  const struct request outer = {.id = (uint64_t)n,
                                .header = {1, 300},
                                .label = "outside",
                                .name = "outer",
                                .next = &inner,
                                .ratio = 0.5};
  check(handle(&outer) == 7, "handle");
  check(handle(&inner) == 7, "handle");
  check(handle(NULL) == 7, "handle");
}

int main(int argc, char** argv) {
  const int limit = argc > 1 ? atoi(argv[1]) : 1;
  uint8_t* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  check(pages != MAP_FAILED && mprotect(pages + 4096, 4096, PROT_NONE) == 0, "mmap");
  memset(pages, 9, 4096);
  for (int n = 0; n < limit; ++n) call_all(n, pages);
  printf("called %d\n", limit);
  return 0;
}
