/* SPDX-License-Identifier: Apache-2.0 */
/* Makes vfork children that trace while other threads of the parent trace; some children execute,
   some are killed. */
#include <pthread.h>
#include <signal.h>

#include "hit.h"

static int stop;

static void* busy(void* arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    hit_many(10);
    usleep(50);
  }
  return arg;
}

static void spawn(const char* program, int children) {
  for (volatile int i = 0; i < children; ++i) {
    const pid_t child = vfork();
    if (child == 0) {
      hit_many(10);
      if (i % 3 == 0) execl(program, program, (char*)NULL);
      if (i % 3 == 1) kill(getpid(), SIGKILL);
      _exit(0);
    }
    REQUIRE(child > 0);
    REQUIRE(waitpid(child, NULL, 0) == child);
    hit();
  }
}

static void* spawner(void* program) {
  spawn((const char*)program, 60);
  return NULL;
}

int main(void) {
  pthread_t thread[3], other;
  spawn("/bin/true", 30); /* one thread */
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_create(&thread[i], NULL, busy, NULL) == 0);
  REQUIRE(pthread_create(&other, NULL, spawner, "/bin/true") == 0);
  spawn("/bin/true", 60);
  pthread_join(other, NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  report();
  return 0;
}
