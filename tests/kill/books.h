// SPDX-License-Identifier: Apache-2.0
// A worker's own record of its events, in a file that it shares with the test: for each lane, how
// many events it has begun and how many have returned. After SIGKILL at any moment the true number
// lies between the two. C and C++.
#ifndef WEFT_TESTS_KILL_BOOKS_H_
#define WEFT_TESTS_KILL_BOOKS_H_

#include <stdint.h>

#define STRESS_LANES 512

struct stress_lane {
  volatile uint64_t begun;
  volatile uint64_t ended;
  uint64_t unused[6];  // a cache line each
};

struct stress_books {
  struct stress_lane lanes[STRESS_LANES];
  volatile uint64_t stop;    // the test: no more events, please
  volatile uint64_t forked;  // lanes given to children so far
};

static inline uint64_t stress_check(uint64_t lane, uint64_t sequence) {
  const uint64_t x = (lane << 48 ^ sequence) * 0x9e3779b97f4a7c15u;
  return x ^ x >> 29;
}

#endif  // WEFT_TESTS_KILL_BOOKS_H_
