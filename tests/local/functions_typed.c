// SPDX-License-Identifier: Apache-2.0
// A program with debug information: functions_types_test.py gives no types.
// `local_functions_typed N [FILE]` calls each function N times, and then typed until there is FILE.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/local/hooked.h"

struct large {
  long words[4];
};

HOOKED int64_t typed(int32_t id, const char* text, double ratio, unsigned char flag) {
  return id + text[0] + (int64_t)ratio + flag;
}
HOOKED struct large of_large(int32_t a) { return (struct large){{a, 2, 3, 4}}; }

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 0;
  int64_t sum = 0;
  for (int i = 0; i < calls; ++i) sum += typed(i, "abc", 2.5, 200) + of_large(i).words[0];
  for (; argc > 2 && access(argv[2], F_OK) != 0; usleep(10000)) typed(7, "abc", 2.5, 200);
  printf("%lld\n", (long long)sum);
  return 0;
}
