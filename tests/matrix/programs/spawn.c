/* SPDX-License-Identifier: Apache-2.0 */
/* Calls posix_spawn, system and popen many times, from several threads that trace. */
#include <pthread.h>
#include <spawn.h>

#include "hit.h"

extern char** environ;

static void* work(void* arg) {
  for (int i = 0; i < 25; ++i) {
    char* const argv[] = {(char*)"true", NULL};
    pid_t child;
    int status;
    hit();
    REQUIRE(posix_spawnp(&child, "true", NULL, NULL, argv, environ) == 0);
    hit();
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    if (i % 5 == 0) REQUIRE(system("exit 3") == 3 << 8);
    hit();
  }
  return arg;
}

int main(void) {
  pthread_t thread[3];
  char line[64];
  for (int i = 0; i < 3; ++i) REQUIRE(pthread_create(&thread[i], NULL, work, NULL) == 0);
  for (int i = 0; i < 3; ++i) pthread_join(thread[i], NULL);
  FILE* f = popen("echo from a shell", "r");
  REQUIRE(f != NULL && fgets(line, sizeof(line), f) != NULL);
  printf("%s%d\n", line, pclose(f));
  fflush(stdout);
  report();
  return 0;
}
