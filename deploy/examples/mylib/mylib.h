// SPDX-License-Identifier: Apache-2.0
// A library that knows nothing of tracing. mylib-trace.yaml records its functions.
#ifndef WEFT_DEPLOY_EXAMPLES_MYLIB_MYLIB_H_
#define WEFT_DEPLOY_EXAMPLES_MYLIB_MYLIB_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Works for the time that was set, by the clock.
void my_traced_function(int id, uint64_t bytes, double ratio, void* data);

// Microseconds that each call of my_traced_function takes; 0 at first.
void set_simulated_work_duration(unsigned microseconds);

// Returns the sum of the `count` bytes at `data`.
int64_t my_checksum(const void* data, uint64_t count);

#ifdef __cplusplus
}
#endif

#endif  // WEFT_DEPLOY_EXAMPLES_MYLIB_MYLIB_H_
