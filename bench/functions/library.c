// SPDX-License-Identifier: Apache-2.0
// The library whose function the bench traces. It knows nothing of tracing. Its function has the
// arguments that my_traced_function in deploy/examples/mylib has, and returns a value.
#include <stdint.h>

int64_t bench_function(int32_t id, uint64_t bytes, double ratio, void* data);

int64_t bench_function(int32_t id, uint64_t bytes, double ratio, void* data) {
  *(int32_t*)data = id;
  return (int64_t)bytes + (int64_t)ratio;
}
