// SPDX-License-Identifier: Apache-2.0
// See mylib.h.
#include "deploy/examples/mylib/mylib.h"

#include <time.h>

static unsigned work_us;
static double last_ratio;

static uint64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void set_simulated_work_duration(unsigned microseconds) { work_us = microseconds; }

void my_traced_function(int id, uint64_t bytes, double ratio, void* data) {
  const uint64_t end = work_us == 0 ? 0 : now_us() + work_us;
  if (bytes != 0 && data != 0) *(uint8_t*)data = (uint8_t)id;
  last_ratio = ratio;
  while (end != 0 && now_us() < end) {
  }
}

int64_t my_checksum(const void* data, uint64_t count) {
  const uint8_t* bytes = data;
  int64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += bytes[i];
  return sum;
}
