/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wall early|late PLUGIN: threads that wait for children of all kinds (__WALL), by taking them and
 * by looking at them, while the plugin's events are recorded. If the plugin is loaded early, before
 * there is a second thread, none of them may meet a child that the program did not make. If it is
 * loaded late, they may; everything still ends, and is counted.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3
#define MOST_SEEN 64
#define EVENTS 1000

#define REQUIRE(what) \
  do {                \
    if (!(what)) {    \
      perror(#what);  \
      _exit(98);      \
    }                 \
  } while (0)

struct seen {
  pid_t pids[MOST_SEEN];
  int count;
};

static int stop, rounds[2];
static struct seen taken, looked_at;
static pid_t made[CHILDREN];
static void (*plugin_hit)(int);

static void see(struct seen* seen, pid_t pid) {
  for (int i = 0; i < seen->count; ++i) {
    if (seen->pids[i] == pid) return;
  }
  if (seen->count == MOST_SEEN) return;
  seen->pids[seen->count] = pid;
  __atomic_store_n(&seen->count, seen->count + 1, __ATOMIC_RELEASE);
}

static void* take(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    __atomic_add_fetch(&rounds[0], 1, __ATOMIC_RELAXED);
    const pid_t pid = waitpid(-1, NULL, __WALL | WNOHANG);
    if (pid > 0) see(&taken, pid);
  }
  return unused;
}

static void* look(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_ACQUIRE)) {
    __atomic_add_fetch(&rounds[1], 1, __ATOMIC_RELAXED);
    siginfo_t info = {.si_pid = 0};
    const int flags = WEXITED | WNOHANG | WNOWAIT | __WALL;
    if (waitid(P_ALL, 0, &info, flags) == 0 && info.si_pid != 0) see(&looked_at, info.si_pid);
  }
  return unused;
}

static int count_unknown(const struct seen* seen) {
  int unknown = seen->count;
  for (int i = 0; i < seen->count; ++i) {
    for (int c = 0; c < CHILDREN; ++c) unknown -= seen->pids[i] == made[c];
  }
  return unknown;
}

static void load(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  REQUIRE(plugin != NULL);
  plugin_hit = (void (*)(int))dlsym(plugin, "plugin_hit");
  REQUIRE(plugin_hit != NULL);
}

int main(int argc, char** argv) {
  pthread_t threads[2];
  REQUIRE(argc == 3);
  const int early = strcmp(argv[1], "early") == 0;
  if (early) load(argv[2]);
  REQUIRE(pthread_create(&threads[0], NULL, take, NULL) == 0);
  REQUIRE(pthread_create(&threads[1], NULL, look, NULL) == 0);
  for (int i = 0; i < 2; ++i) {
    while (__atomic_load_n(&rounds[i], __ATOMIC_RELAXED) < 2) usleep(1000);
  }
  if (!early) load(argv[2]);
  for (int i = 0; i < EVENTS; ++i) plugin_hit(i);
  for (int i = 0; i < CHILDREN; ++i) {
    made[i] = fork();
    REQUIRE(made[i] >= 0);
    if (made[i] == 0) {
      plugin_hit(i);
      _exit(0);
    }
  }
  for (int left = CHILDREN; left != 0; usleep(1000)) {
    left = CHILDREN;
    const int count = __atomic_load_n(&taken.count, __ATOMIC_ACQUIRE);
    for (int i = 0; i < count; ++i) {
      for (int c = 0; c < CHILDREN; ++c) left -= taken.pids[i] == made[c];
    }
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
  REQUIRE(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
  if (early)
    printf("taken %d unknown, seen %d\n", count_unknown(&taken), count_unknown(&looked_at));
  printf("emitted %d\n", EVENTS + CHILDREN);
  return 0;
}
