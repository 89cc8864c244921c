/* SPDX-License-Identifier: Apache-2.0 */
/* Makes threads that begin together, detached ones and short ones. */
#include <pthread.h>

#include "hit.h"

static unsigned long detached_done;

static void* many(void* arg) {
  hit_many(10000);
  return arg;
}

static void* few(void* arg) {
  hit_many(3);
  __atomic_add_fetch(&detached_done, 1, __ATOMIC_RELEASE);
  return arg;
}

int main(void) {
  pthread_t thread[8];
  for (int i = 0; i < 8; ++i) REQUIRE(pthread_create(&thread[i], NULL, many, NULL) == 0);
  for (unsigned long i = 0; i < 200; ++i) {
    pthread_t one;
    REQUIRE(pthread_create(&one, NULL, few, NULL) == 0);
    REQUIRE(pthread_detach(one) == 0);
  }
  for (int i = 0; i < 8; ++i) REQUIRE(pthread_join(thread[i], NULL) == 0);
  while (__atomic_load_n(&detached_done, __ATOMIC_ACQUIRE) != 200) usleep(1000);
  report();
  return 0;
}
