/* SPDX-License-Identifier: Apache-2.0 */
/* A timer's handler forks and traces, wherever the program is; both go on. */
#include <signal.h>
#include <sys/time.h>

#include "hit.h"

static volatile sig_atomic_t forks;

static void on_alarm(int number) {
  const int kept = errno;
  (void)number;
  hit();
  const pid_t child = fork();
  if (child == 0) {
    hit_many(5);
    _exit(0);
  }
  if (child > 0) {
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    ++forks;
  }
  hit();
  errno = kept;
}

int main(void) {
  struct sigaction action = {.sa_handler = on_alarm};
  const struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
  REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
  REQUIRE(setitimer(ITIMER_REAL, &often, NULL) == 0);
  while (forks < 100) {
    hit_many(10);
    usleep(20);
  }
  REQUIRE(setitimer(ITIMER_REAL, &never, NULL) == 0);
  report();
  return 0;
}
