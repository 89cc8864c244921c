/* SPDX-License-Identifier: Apache-2.0 */
/* The provider is loaded and unloaded while other threads are inside its probes. */
#include <dlfcn.h>
#include <pthread.h>

#define TRACEPOINT_DEFINE
#include "provider_tp.h"
/* hit.h has a provider of its own. */
#undef TRACEPOINT_DEFINE
#include "hit.h"

static int stop;
static long calls;

static void* caller(void* arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    tracepoint(matrix, provided, hits, "over and over");
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  }
  return arg;
}

int main(int argc, char** argv) {
  pthread_t thread[2];
  REQUIRE(argc == 2);
  for (int i = 0; i < 2; ++i) REQUIRE(pthread_create(&thread[i], NULL, caller, NULL) == 0);
  for (int i = 0; i < 500 || __atomic_load_n(&calls, __ATOMIC_RELAXED) < 100000; ++i) {
    void* provider = dlopen(argv[1], RTLD_NOW);
    REQUIRE(provider != NULL);
    REQUIRE(dlclose(provider) == 0);
    /* Calls before this one found no probe. */
    if (i == 0) __atomic_store_n(&calls, 0, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 2; ++i) pthread_join(thread[i], NULL);
  report();
  return 0;
}
