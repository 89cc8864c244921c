// SPDX-License-Identifier: Apache-2.0
// See text.h. Compiled with -fno-builtin, and by gcc with -fno-tree-loop-distribute-patterns,
// else these would call themselves.
#include "text.h"

void* memcpy(void* restrict to, const void* restrict from, size_t n) {
#if defined(__x86_64__)
  void* d = to;
  __asm__ volatile("rep movsb" : "+D"(d), "+S"(from), "+c"(n) : : "memory");
#else
  uint8_t* d = to;
  const uint8_t* s = from;
  while (n-- != 0) *d++ = *s++;
#endif
  return to;
}

void* memmove(void* to, const void* from, size_t n) {
  uint8_t* d = to;
  const uint8_t* s = from;
  if ((uintptr_t)d - (uintptr_t)s >= n) return memcpy(to, from, n);
  while (n-- != 0) d[n] = s[n];
  return to;
}

void* memset(void* to, int c, size_t n) {
  uint8_t* d = to;
  while (n-- != 0) *d++ = (uint8_t)c;
  return to;
}

int memcmp(const void* a, const void* b, size_t n) {
  const uint8_t* x = a;
  const uint8_t* y = b;
  for (; n != 0; --n, ++x, ++y) {
    if (*x != *y) return *x < *y ? -1 : 1;
  }
  return 0;
}

size_t strlen(const char* s) {
  size_t n = 0;
  while (s[n] != 0) ++n;
  return n;
}

bool weft_append(char** at, char* end, const char* s) {
  while (*s != 0) {
    if (*at + 1 >= end) return false;
    *(*at)++ = *s++;
  }
  **at = 0;
  return true;
}

bool weft_append_number(char** at, char* end, uint64_t n) {
  char digits[24];
  char* p = digits + sizeof(digits) - 1;
  *p = 0;
  do {
    *--p = (char)('0' + n % 10);
    n /= 10;
  } while (n != 0);
  return weft_append(at, end, p);
}
