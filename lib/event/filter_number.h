/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Loads numbers of filters and computes with them. Internal to filter_run.c, and to code that must
 * give equal answers.
 */
#ifndef WEFT_LIB_EVENT_FILTER_NUMBER_H_
#define WEFT_LIB_EVENT_FILTER_NUMBER_H_

#include "lib/event/filter_linked.h"
#include "lib/event/freestanding.h"

/* Returns the integer at `at`, extended to 64 bits by its sign. */
static inline __attribute__((always_inline)) uint64_t weft_load_int(uint8_t load, const char* at) {
  uint16_t half;
  uint32_t word;
  uint64_t whole;

  switch (load) {
    case WEFT_LOAD_U8:
      return *(const uint8_t*)at;
    case WEFT_LOAD_S8:
      return (uint64_t)*(const int8_t*)at;
    case WEFT_LOAD_U16:
    case WEFT_LOAD_S16:
      WEFT_READ(half, at);
      return load == WEFT_LOAD_U16 ? half : (uint64_t)(int16_t)half;
    case WEFT_LOAD_U32:
    case WEFT_LOAD_S32:
      WEFT_READ(word, at);
      return load == WEFT_LOAD_U32 ? word : (uint64_t)(int32_t)word;
    case WEFT_LOAD_U16_SWAP:
    case WEFT_LOAD_S16_SWAP:
      WEFT_READ(half, at);
      half = __builtin_bswap16(half);
      return load == WEFT_LOAD_U16_SWAP ? half : (uint64_t)(int16_t)half;
    case WEFT_LOAD_U32_SWAP:
    case WEFT_LOAD_S32_SWAP:
      WEFT_READ(word, at);
      word = __builtin_bswap32(word);
      return load == WEFT_LOAD_U32_SWAP ? word : (uint64_t)(int32_t)word;
    case WEFT_LOAD_64_SWAP:
      WEFT_READ(whole, at);
      return __builtin_bswap64(whole);
    default:
      WEFT_READ(whole, at);
      return whole;
  }
}

/* The shift's right side is in 0..63: the caller has looked. */
static inline uint64_t weft_bits(uint8_t op, uint64_t a, uint64_t b) {
  switch (op) {
    case WEFT_FILTER_OP_SHL:
      return a << b;
    case WEFT_FILTER_OP_SHR:
      return a >> b;
    case WEFT_FILTER_OP_AND:
      return a & b;
    case WEFT_FILTER_OP_XOR:
      return a ^ b;
    default:
      return a | b;
  }
}

static inline bool weft_compare_int(uint8_t op, int64_t a, int64_t b) {
  switch (op) {
    case WEFT_FILTER_OP_EQ:
      return a == b;
    case WEFT_FILTER_OP_NE:
      return a != b;
    case WEFT_FILTER_OP_LT:
      return a < b;
    case WEFT_FILTER_OP_LE:
      return a <= b;
    case WEFT_FILTER_OP_GT:
      return a > b;
    default:
      return a >= b;
  }
}

#ifndef WEFT_FILTER_NO_FLOAT

static inline double weft_double_of_bits(uint64_t bits) {
  double value;

  WEFT_READ(value, &bits);
  return value;
}

static inline uint64_t weft_bits_of_double(double value) {
  uint64_t bits;

  WEFT_READ(bits, &value);
  return bits;
}

/* Returns the float at `at` as a binary64. */
static inline double weft_load_float(uint8_t load, const char* at) {
  uint32_t word;
  uint64_t whole;
  float narrow;

  if (load == WEFT_LOAD_F32 || load == WEFT_LOAD_F32_SWAP) {
    WEFT_READ(word, at);
    if (load == WEFT_LOAD_F32_SWAP) word = __builtin_bswap32(word);
    WEFT_READ(narrow, &word);
    return narrow;
  }
  WEFT_READ(whole, at);
  if (load == WEFT_LOAD_F64_SWAP) whole = __builtin_bswap64(whole);
  return weft_double_of_bits(whole);
}

static inline bool weft_compare_float(uint8_t op, double a, double b) {
  switch (op) {
    case WEFT_FILTER_OP_EQ:
      return a == b;
    case WEFT_FILTER_OP_NE:
      return a != b;
    case WEFT_FILTER_OP_LT:
      return a < b;
    case WEFT_FILTER_OP_LE:
      return a <= b;
    case WEFT_FILTER_OP_GT:
      return a > b;
    default:
      return a >= b;
  }
}

#endif /* WEFT_FILTER_NO_FLOAT */

#endif /* WEFT_LIB_EVENT_FILTER_NUMBER_H_ */
