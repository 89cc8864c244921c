/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a plugin that traces, calls it, unloads it, again and again; other threads trace
 * meanwhile. The number of ring sets and event ids stays the same. */
#include <dlfcn.h>
#include <pthread.h>

#include "hit.h"

static int stop;

static void* busy(void* arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    hit_many(10);
    usleep(100);
  }
  return arg;
}

int main(int argc, char** argv) {
  pthread_t thread;
  REQUIRE(argc == 2);
  REQUIRE(pthread_create(&thread, NULL, busy, NULL) == 0);
  for (int i = 0; i < 300; ++i) {
    void* plugin = dlopen(argv[1], RTLD_NOW);
    if (!plugin) {
      printf("%s\n", dlerror());
      return 1;
    }
    void (*plugin_hit)(int) = (void (*)(int))dlsym(plugin, "plugin_hit");
    REQUIRE(plugin_hit != NULL);
    plugin_hit(i);
    plugin_hit(-i);
    __atomic_add_fetch(hits, 2, __ATOMIC_RELAXED);
    REQUIRE(dlclose(plugin) == 0);
    if (dlerror()) return 2; /* no other code left an error behind */
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  report();
  return 0;
}
