/* SPDX-License-Identifier: Apache-2.0 */
/* Makes many short threads, one after the other and some at a time. Most of them have the stack and
 * the thread pointer of one that has died; detached ones unmap their own stack. Each traces twice,
 * with a switch of the CPU in between. */
#include <pthread.h>
#include <sched.h>

#include "hit.h"

#define AT_A_TIME 8

static unsigned long left;

static void* work(void* arg) {
  hit();
  sched_yield();
  hit_text("second");
  __atomic_add_fetch(&left, 1, __ATOMIC_RELEASE);
  return arg;
}

int main(void) {
  for (unsigned long round = 1; round <= 600; ++round) {
    pthread_t thread[AT_A_TIME];
    for (int i = 0; i < AT_A_TIME; ++i) {
      REQUIRE(pthread_create(&thread[i], NULL, work, NULL) == 0);
      if (i % 2) REQUIRE(pthread_detach(thread[i]) == 0);
    }
    for (int i = 0; i < AT_A_TIME; i += 2) REQUIRE(pthread_join(thread[i], NULL) == 0);
    while (__atomic_load_n(&left, __ATOMIC_ACQUIRE) != round * AT_A_TIME) usleep(50);
  }
  report();
  return 0;
}
