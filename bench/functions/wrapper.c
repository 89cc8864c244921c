// SPDX-License-Identifier: Apache-2.0
// The peer: a wrapper of the function as people write it by hand for LTTng-UST, for LD_PRELOAD.
#define _GNU_SOURCE
#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "wrapper.h"

#include <dlfcn.h>

typedef int64_t function(int32_t id, uint64_t bytes, double ratio, void* data);

function bench_function;
static function* original;

__attribute__((constructor)) static void find(void) {
  original = (function*)dlsym(RTLD_NEXT, "bench_function");
}

int64_t bench_function(int32_t id, uint64_t bytes, double ratio, void* data) {
  tracepoint(bench, function_entry, id, bytes, ratio, data);
  const int64_t ret = original(id, bytes, ratio, data);
  tracepoint(bench, function_exit, ret);
  return ret;
}
