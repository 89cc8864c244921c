/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Replaces a libc for the C files of this folder, also in the kernel. Internal to them. */
#ifndef WEFT_LIB_EVENT_FREESTANDING_H_
#define WEFT_LIB_EVENT_FREESTANDING_H_

#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/types.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#endif

#define WEFT_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEFT_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Reads a value or struct at an address that is not aligned; with its constant size the compiler
 * makes plain loads of it. */
#define WEFT_READ(value, address) __builtin_memcpy(&(value), (address), sizeof(value))

static inline bool weft_bytes_equal(const char* a, const char* b, uint32_t size) {
  uint64_t left, right;

  for (; size >= sizeof(left); size -= (uint32_t)sizeof(left)) {
    WEFT_READ(left, a);
    WEFT_READ(right, b);
    if (left != right) return false;
    a += sizeof(left);
    b += sizeof(right);
  }
  for (; size > 0; size--)
    if (*a++ != *b++) return false;
  return true;
}

static inline uint32_t weft_text_size(const char* text) {
  uint32_t size = 0;

  while (text[size] != 0) size++;
  return size;
}

#endif /* WEFT_LIB_EVENT_FREESTANDING_H_ */
