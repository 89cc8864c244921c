/* SPDX-License-Identifier: Apache-2.0 */
/* Signals interrupt events all the time, and their handlers trace. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "hit.h"

static volatile sig_atomic_t alarms;

static void on_alarm(int number) {
  (void)number;
  hit();
  hit_text("from a handler");
  ++alarms;
}

static void* poke(void* main_thread) {
  for (int i = 0; i < 3000; ++i) {
    pthread_kill(*(pthread_t*)main_thread, SIGUSR1);
    usleep(20);
  }
  return NULL;
}

int main(void) {
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_NODEFER};
  const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
  pthread_t self = pthread_self(), thread;
  REQUIRE(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
  REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
  REQUIRE(pthread_create(&thread, NULL, poke, &self) == 0);
  for (int i = 0; i < 200; ++i) {
    hit_many(50);
    usleep(100);
  }
  pthread_join(thread, NULL);
  REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0);
  REQUIRE(alarms > 0);
  report();
  return 0;
}
