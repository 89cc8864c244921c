/* SPDX-License-Identifier: Apache-2.0 */
/* A tracepoint's argument points nowhere: the program dies of it as it would elsewhere, or its
 * handler gets it and traces. Events that were recorded before stay. */
#include <setjmp.h>
#include <signal.h>

#include "hit.h"

static sigjmp_buf back;

static void on_fault(int number) {
  hit();
  siglongjmp(back, number);
}

static int* volatile nowhere = (int*)8;

static void fault(void) { *nowhere = 1; }

int main(int argc, char** argv) {
  struct sigaction action = {.sa_handler = on_fault};
  (void)argv;
  for (volatile int i = 0; i < 20; ++i) {
    REQUIRE(sigaction(SIGSEGV, &action, NULL) == 0);
    if (sigsetjmp(back, 1) == 0) {
      hit();
      fault();
    }
  }
  hit_many(100);
  report();
  if (argc > 1) return 0;
  signal(SIGSEGV, SIG_DFL);
  fault();
  return 0;
}
