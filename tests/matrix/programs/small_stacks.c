/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First and later events of each kind in a handler on an alternate stack of the smallest size that
 * this machine allows plus 2 KiB for the handler and everything it calls; a page that cannot be
 * touched lies below. It also makes threads with the smallest stack.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/auxv.h>

#include "hit.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static void on_signal(int number) {
  (void)number;
  hit();
  hit_text("in a handler");
}

static void* in_thread(void* arg) {
  hit_many(8);
  return arg;
}

int main(void) {
  const size_t least = getauxval(AT_MINSIGSTKSZ) ? getauxval(AT_MINSIGSTKSZ) : 2048;
  const size_t size = least + 2048;
  const size_t mapped = 4096 + ((size + 4095) & ~4095ul);
  char* memory =
      (char*)mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED && mprotect(memory, 4096, PROT_NONE) == 0);
  /* The stack begins where the page without access ends. */
  stack_t alternate = {.ss_sp = memory + 4096, .ss_size = size};
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(sigaltstack(&alternate, NULL) == 0);
  REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
  for (int i = 0; i < 50; ++i) raise(SIGUSR1);
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0);
  REQUIRE(pthread_create(&thread, &attributes, in_thread, NULL) == 0);
  pthread_join(thread, NULL);
  report();
  return 0;
}
