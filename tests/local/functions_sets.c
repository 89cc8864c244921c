// SPDX-License-Identifier: Apache-2.0
// A program without tracepoints that knows how often it calls the functions of the sets, also
// beside children of all kinds.
//
//   functions_sets calls N FILE     heap and files, in 4 threads, N times each
//   functions_sets children N FILE  the same in the main thread, beside children
//   functions_sets locks N          a lock that is waited for, N times
//   functions_sets libraries FILE   opens a library
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char* file;
static int limit;

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "wrong: %s\n", what);
  _exit(1);
}

static void use_heap(void) {
  void* volatile made = malloc(12345);  // volatile: no compiler leaves out calls
  memset(made, 1, 12345);
  made = realloc(made, 23456);
  check(((char*)made)[12344] == 1, "realloc");
  free(made);
  made = calloc(7, 1763);
  check(((char*)made)[12340] == 0, "calloc");
  free(made);
  void* aligned = NULL;
  check(posix_memalign(&aligned, 64, 6400) == 0 && (uintptr_t)aligned % 64 == 0, "posix_memalign");
  free(aligned);
}

static void use_file(void) {
  char text[8];
  const int fd = open(file, O_RDONLY);
  check(fd >= 0, "open");
  check(read(fd, text, 5) == 5 && memcmp(text, "12345", 5) == 0, "read");
  check(pread(fd, text, 2, 3) == 2 && memcmp(text, "45", 2) == 0, "pread");
  check(lseek(fd, 1, SEEK_SET) == 1, "lseek");
  check(close(fd) == 0, "close");
}

static void* use_all(void* unused) {
  for (int i = 0; i < limit; ++i) {
    use_heap();
    use_file();
  }
  return unused;
}

static void run_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i)
    check(pthread_create(&threads[i], NULL, use_all, NULL) == 0, "create");
  for (int i = 0; i < 4; ++i) check(pthread_join(threads[i], NULL) == 0, "join");
}

extern char** environ;

static void spawn_and_wait(void) {
  posix_spawn_file_actions_t actions;
  char* const arguments[] = {"true", NULL};
  pid_t pid = 0;
  int status = 0;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, 200);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, 0, 100);
  check(posix_spawnp(&pid, "true", &actions, NULL, arguments, environ) == 0, "posix_spawnp");
  posix_spawn_file_actions_destroy(&actions);
  check(waitpid(pid, &status, 0) == pid && status == 0, "waitpid");
}

static void use_children(void) {
  int status = 0;
  spawn_and_wait();
  check(system("exit 3") == 3 << 8, "system");
  FILE* pipe = popen("echo hi", "r");
  char text[8] = "";
  check(pipe != NULL && fgets(text, sizeof(text), pipe) != NULL && strcmp(text, "hi\n") == 0,
        "popen");
  check(pclose(pipe) == 0, "pclose");
  pid_t pid = vfork();
  if (pid == 0) {
    close(201);
    execlp("true", "true", (char*)NULL);
    _exit(1);
  }
  check(waitpid(pid, &status, 0) == pid && status == 0, "vfork");
  pid = fork();
  if (pid == 0) {
    use_heap();
    use_file();
    _exit(0);
  }
  check(waitpid(pid, &status, 0) == pid && status == 0, "fork");
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t turn;
static int64_t asked;

static void* wait_for_lock(void* unused) {
  for (int i = 0; i < limit; ++i) {
    sem_wait(&turn);
    check(pthread_mutex_lock(&lock) == 0, "lock");
    check(pthread_mutex_unlock(&lock) == 0, "unlock");
    __atomic_store_n(&asked, 1, __ATOMIC_RELEASE);
  }
  return unused;
}

// The lock is held from before the other thread asks for it until some time after it waits. Prints
// the least time that it waited.
static void use_locks(void) {
  pthread_t thread;
  sem_init(&turn, 0, 0);
  check(pthread_create(&thread, NULL, wait_for_lock, NULL) == 0, "create");
  for (int i = 0; i < limit; ++i) {
    check(pthread_mutex_lock(&lock) == 0, "lock");
    __atomic_store_n(&asked, 0, __ATOMIC_RELEASE);
    sem_post(&turn);
    while (__atomic_load_n(&lock.__data.__lock, __ATOMIC_ACQUIRE) != 2) sched_yield();
    const int64_t begin = now();
    usleep(2000);
    printf("%lld\n", (long long)(now() - begin));
    check(pthread_mutex_unlock(&lock) == 0, "unlock");
    while (__atomic_load_n(&asked, __ATOMIC_ACQUIRE) == 0) sched_yield();
  }
  check(pthread_join(thread, NULL) == 0, "join");
}

static void use_libraries(void) {
  void* library = dlopen(file, RTLD_NOW);
  check(library != NULL && dlsym(library, "my_checksum") != NULL, "dlopen");
  check(dlsym(library, "no_such_function") == NULL, "dlsym");
  check(dlclose(library) == 0, "dlclose");
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  limit = argc > 2 ? atoi(argv[2]) : 0;
  file = argc > 3 ? argv[3] : argc > 2 ? argv[2] : "";
  if (strcmp(mode, "calls") == 0) {
    run_threads();
  } else if (strcmp(mode, "children") == 0) {
    for (int i = 0; i < limit; ++i) {
      use_heap();
      use_file();
      use_children();
    }
  } else if (strcmp(mode, "locks") == 0) {
    use_locks();
  } else if (strcmp(mode, "libraries") == 0) {
    use_libraries();
  } else {
    return 2;
  }
  return 0;
}
