/* SPDX-License-Identifier: Apache-2.0 */
/* loader PROVIDER.so: loads a provider after its tracepoints, unloads it, loads it again. */
#include <dlfcn.h>
#include <stdio.h>

#include "./every_short_tp.h"

int main(int argc, char** argv) {
  for (int i = 0; argc == 2 && i < 3; i++) {
    void* handle;
    tracepoint(every_short, level_info, 100 + i, "not loaded");
    handle = dlopen(argv[1], RTLD_NOW);
    if (!handle) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    tracepoint(every_short, level_info, i, "loaded");
    dlclose(handle);
  }
  return 0;
}
