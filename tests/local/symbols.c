/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols [PLUGIN]: emits one event in each of several functions, so that a test knows which name
 * belongs to the address of each: in main's process, in a thread, in a function of PLUGIN, loaded
 * by then, and in a fork child. `where` is the function's name. Says on stdout what is loaded, as
 * ld.so has it, when the plugin is there: "BASE PATH".
 */
#define _GNU_SOURCE
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/symbols_tp.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EMITS(name)                                  \
  static __attribute__((noinline)) void name(void) { \
    tracepoint(symbols, here, #name);                \
    __asm__ volatile("");                            \
  }
EMITS(first_function)
EMITS(thread_function)
EMITS(child_function)

static void* run_thread(void* unused) {
  (void)unused;
  thread_function();
  return NULL;
}

static int print_object(struct dl_phdr_info* info, size_t size, void* data) {
  static int first = 1;
  const char* name = info->dlpi_name;
  char path[4096] = "";
  (void)size;
  (void)data;
  if (first) name = "/proc/self/exe";
  first = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    if (realpath(name, path) != NULL) {
      printf("%llX %s\n", (unsigned long long)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr), path);
    }
    return 0;
  }
  return 0;
}

int main(int argc, char** argv) {
  pthread_t thread;
  first_function();
  pthread_create(&thread, NULL, run_thread, NULL);
  pthread_join(thread, NULL);
  if (argc > 1) {
    void* plugin = dlopen(argv[1], RTLD_NOW);
    void (*emits)(const char*) =
        plugin ? (void (*)(const char*))dlsym(plugin, "plugin_emits") : NULL;
    if (!emits) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    emits("plugin_emits");
  }
  dl_iterate_phdr(print_object, NULL);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    child_function();
    _exit(0);
  }
  return waitpid(child, NULL, 0) == child ? 0 : 1;
}
