/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object with the provider, the tracepoint, a call site of it, or some of them, as
 * recorded_test.py defines when it builds it. With IS_PROGRAM it is a program, which does what its
 * arguments say:
 *   +FILE loads a library, ^FILE the same for all to see, -FILE unloads it, @FILE calls its call
 *   site, =NUMBER calls the program's own, ? prints tracepoint_enabled(), ! attaches a probe of its
 *   own, which prints its argument.
 */
#include <weft/probe.h>

#include "./twin_tp.h"

#ifdef HAS_CALL
WEFT_EXTERN_C void call_twin(NUMBER number);
void call_twin(NUMBER number) { tracepoint(twin, event, number); }
#endif

#ifdef IS_PROGRAM
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void print_number(void* data, NUMBER number) { printf("%s%d\n", (char*)data, (int)number); }

int main(int argc, char** argv) {
  static int calls;
  for (int i = 1; i < argc; i++) {
    const char* file = argv[i] + 1;
    void* handle = NULL;
    if (argv[i][0] == '+' || argv[i][0] == '^') {
      handle = dlopen(file, RTLD_NOW | (argv[i][0] == '^' ? RTLD_GLOBAL : RTLD_LOCAL));
    } else if (argv[i][0] == '-' || argv[i][0] == '@') {
      handle = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
    }
    if (argv[i][0] == '-' && handle) dlclose(handle);
    if (argv[i][0] == '-' || argv[i][0] == '@') {
      void (*call)(int) = NULL;
      if (handle && argv[i][0] == '@') *(void**)&call = dlsym(handle, "call_twin");
      if (call) call(++calls);
      if (handle) dlclose(handle);
    }
    if (argv[i][0] == '!') weft_tracepoint_attach(twin, event, print_number, "probe:");
    if (strchr("+^", argv[i][0]) && !handle) fprintf(stderr, "%s\n", dlerror());
#ifdef HAS_CALL
    if (argv[i][0] == '=') call_twin(atoi(file));
    if (argv[i][0] == '?') printf("%d\n", tracepoint_enabled(twin, event) != 0);
#endif
  }
  return 0;
}
#endif
