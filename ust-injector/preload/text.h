// SPDX-License-Identifier: Apache-2.0
// Functions on bytes and strings, which other libraries take from a libc. They are defined hidden
// in text.c, since the compiler may call memcpy and memset by itself.
#ifndef WEFT_UST_INJECTOR_PRELOAD_TEXT_H_
#define WEFT_UST_INJECTOR_PRELOAD_TEXT_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void* memcpy(void* restrict to, const void* restrict from, size_t n);
void* memmove(void* to, const void* from, size_t n);
void* memset(void* to, int c, size_t n);
int memcmp(const void* a, const void* b, size_t n);
size_t strlen(const char* s);

static inline bool weft_equal(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

// Appends `s` at *at, which stays below `end`; returns false if it does not fit. The text always
// ends with a NUL.
bool weft_append(char** at, char* end, const char* s);
bool weft_append_number(char** at, char* end, uint64_t n);

#endif  // WEFT_UST_INJECTOR_PRELOAD_TEXT_H_
