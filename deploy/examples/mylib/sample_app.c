// SPDX-License-Identifier: Apache-2.0
// sample_app N: calls the functions of libmylib.so N times. SIMULATED_WORK_US in the environment is
// the work of each call in microseconds.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deploy/examples/mylib/mylib.h"

int main(int argc, char** argv) {
  const char* work = getenv("SIMULATED_WORK_US");
  char* end = NULL;
  const long calls = argc == 2 ? strtol(argv[1], &end, 10) : -1;
  if (calls < 0 || *end != '\0') {
    fprintf(stderr, "sample_app: give the number of calls: sample_app N\n");
    return 2;
  }
  if (work != NULL) set_simulated_work_duration((unsigned)strtoul(work, NULL, 10));
  unsigned char data[64];
  int64_t sum = 0;
  memset(data, 1, sizeof(data));
  for (long i = 0; i < calls; ++i) {
    my_traced_function((int)i, (uint64_t)i * 1000, (double)i / 4, data);
    sum += my_checksum(data, (uint64_t)(i % 64));
  }
  printf("sample_app: %ld calls, checksum %lld\n", calls, (long long)sum);
  return 0;
}
