// SPDX-License-Identifier: Apache-2.0
// The traced program of the kill tests: `stress_worker BOOKS THREADS EVENTS FLAGS`.
// FLAGS: s  a timer's signal handler traces too, on every thread
//        f  the main thread forks children that trace, and now and then the handler forks
//        v  the main thread makes vfork children that trace
//        m  the main thread makes children with clone(CLONE_VM) that trace beside it
//        k  the main thread kills each of these while it traces
//        a  the main thread starts detached threads that trace and go
//        d  the main thread loads and unloads a plugin that traces, and a provider of events that
//           all emit
//        t  events of all shapes, not of one: with tails, also such as no ring takes, and fixed
//           parts of one to five words
//        n  the timer's handler sleeps now and then, whatever it interrupted
//        x  before the events a seccomp filter that kills for what libweft.so would call
//        w  an event of every shape before anything else: all that has to be set up is there then
//        p  SIGSTOP before the events, so that a debugger can set breakpoints
//        l  the main thread begins last
// EVENTS per thread, 0: until told to stop. Lanes: thread t is 2t, its signal handler 2t + 1,
// children from 2 * THREADS on.
// In the environment: WEFT_STRESS_RSEQ_FEATURES=N  what the kernel is to have said of struct rseq's
//                                                  size
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/kill/books.h"

#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "tests/kill/provider.h"
// Its probes are in objects that come and go.
#undef LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_PROBE_DYNAMIC_LINKAGE
#include "tests/kill/plugin_provider.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif

#define SHARING 4 /* children with CLONE_VM at a time */
#define SHARING_STACK 65536

static struct stress_books* books;
static int threads;
static uint64_t events;
static const char* flags;
static __thread uint64_t my_lane;

// libweft.so calls this definition, since a program's come before its libraries'.
__attribute__((visibility("default"))) unsigned long getauxval(unsigned long type) {
  unsigned long pair[2] = {0, 0};
  const int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
  while (read(fd, pair, sizeof(pair)) == sizeof(pair) && pair[0] != type) {
  }
  close(fd);
  const char* features = getenv("WEFT_STRESS_RSEQ_FEATURES");
  if (type == AT_RSEQ_FEATURE_SIZE && features != NULL) return strtoul(features, NULL, 10);
  return pair[0] == type ? pair[1] : 0;
}

static void emit_a_shape(uint64_t lane, uint64_t n, uint64_t check) {
  uint8_t bytes[1100];  // more than a quarter of the smallest sub-buffer
  const size_t size = n % 128 == 5 ? sizeof(bytes) : check % 200;
  switch (n % 8) {
    case 0:
      lttng_ust_tracepoint(stress, one, lane, n, check);
      break;
    case 1:
      lttng_ust_tracepoint(stress, two, lane, n, check);
      break;
    case 2:
      lttng_ust_tracepoint(stress, four, lane, n, check);
      break;
    case 3:
      lttng_ust_tracepoint(stress, five, lane, n, check);
      break;
    case 4:
    case 5:
      memset(bytes, (int)(uint8_t)check, size);
      lttng_ust_tracepoint(stress, tail, lane, n, check, bytes, size);
      break;
    default:
      lttng_ust_tracepoint(stress, fixed, lane, n, check);
  }
}

static void emit(uint64_t lane) {
  const uint64_t n = books->lanes[lane].begun;
  const uint64_t check = stress_check(lane, n);
  books->lanes[lane].begun = n + 1;
  if (strchr(flags, 't') == NULL) {
    lttng_ust_tracepoint(stress, fixed, lane, n, check);
  } else {
    emit_a_shape(lane, n, check);
  }
  books->lanes[lane].ended = n + 1;
}

// Both files are in the worker's folder.
static void* load(const char* name) {
  char path[4096];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
  if (n <= 0) return NULL;
  path[n] = 0;
  strcpy(strrchr(path, '/') + 1, name);
  void* object = dlopen(path, RTLD_NOW);
  if (object == NULL) fprintf(stderr, "%s\n", dlerror());
  return object;
}

static void use_plugins(uint64_t round) {
  if (round % 64 != 0) return;
  void* provider = load("stress_provider_only.so");
  void* plugin = load("stress_plugin.so");
  if (provider == NULL || plugin == NULL) _exit(3);
  void (*trace)(struct stress_books*, uint64_t) =
      (void (*)(struct stress_books*, uint64_t))dlsym(plugin, "stress_plugin");
  trace(books, my_lane);
  dlclose(plugin);
  dlclose(provider);
}

static void emit_if_provided(uint64_t lane) {
  lttng_ust_tracepoint(stress, provided, lane, &books->lanes[lane]);
  books->lanes[lane].ended = books->lanes[lane].begun;
}

static uint64_t new_lane(void) {
  const uint64_t lane =
      2 * (uint64_t)threads + __atomic_fetch_add(&books->forked, 1, __ATOMIC_RELAXED);
  return lane < STRESS_LANES ? lane : 0;
}

static void child_events(uint64_t lane) {
  for (int i = 0; i < 50; ++i) emit(lane);
}

static char stacks[SHARING][SHARING_STACK] __attribute__((aligned(16)));
static pid_t sharing[SHARING];

static int share_memory(void* lane) {
  const int is_endless = strchr(flags, 'k') != NULL;
  for (int i = 0; (is_endless || i < 2000) && !books->stop; ++i) emit((uint64_t)(uintptr_t)lane);
  return 0;
}

// Ends this process in the way in which its child ended, if the child was not killed by the test.
static void end_sharing(int which) {
  int status = 0;
  if (sharing[which] == 0) return;
  if (strchr(flags, 'k') != NULL) kill(sharing[which], SIGKILL);
  waitpid(sharing[which], &status, 0);
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) raise(WTERMSIG(status));
  sharing[which] = 0;
}

static void start_sharing(int which) {
  end_sharing(which);
  const uint64_t lane = new_lane();
  if (lane == 0) return;
  const pid_t pid = clone(share_memory, stacks[which] + SHARING_STACK, CLONE_VM | SIGCHLD,
                          (void*)(uintptr_t)lane);
  if (pid > 0) sharing[which] = pid;
}

static unsigned long detached;  // threads that trace

static void* trace_and_go(void* lane) {
  for (int i = 0; i < 200; ++i) emit((uint64_t)(uintptr_t)lane);
  __atomic_sub_fetch(&detached, 1, __ATOMIC_RELEASE);
  return NULL;
}

static void start_detached(void) {
  const uint64_t lane = new_lane();
  if (lane == 0) return;
  pthread_t thread;
  __atomic_add_fetch(&detached, 1, __ATOMIC_RELAXED);
  if (pthread_create(&thread, NULL, trace_and_go, (void*)(uintptr_t)lane) != 0) _exit(4);
  pthread_detach(thread);
}

static void forbid_calls(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(4);
  }
}

static void on_timer(int number) {
  (void)number;
  const uint64_t lane = my_lane + 1;
  emit(lane);
  if (strchr(flags, 'n') != NULL && books->lanes[lane].begun % 16 == 0) usleep(10000);
  if (strchr(flags, 'f') != NULL && books->lanes[lane].begun % 64 == 0) {
    const uint64_t child_lane = new_lane();
    if (child_lane == 0) return;
    const pid_t pid = (pid_t)syscall(SYS_fork);
    if (pid == 0) {
      child_events(child_lane);
      _exit(0);
    }
    waitpid(pid, NULL, 0);
  }
}

static void start_timer(void) {
  struct sigevent event;
  memset(&event, 0, sizeof(event));
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGUSR1;
  event.sigev_notify_thread_id = (int)syscall(SYS_gettid);
  const struct itimerspec period = {{0, 70000}, {0, 70000}};
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &period, NULL);
}

static void make_children(uint64_t round) {
  if (round % 256 == 0 && strchr(flags, 'a') != NULL) start_detached();
  if (round % 1024 != 0) return;
  if (strchr(flags, 'm') != NULL) start_sharing((int)(round / 1024 % SHARING));
  if (strchr(flags, 'f') != NULL) {
    const uint64_t lane = new_lane();
    const pid_t pid = lane == 0 ? -1 : fork();
    if (pid == 0) {
      child_events(lane);
      _exit(0);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
  }
  if (strchr(flags, 'v') != NULL) {
    const uint64_t lane = new_lane();
    const pid_t pid = lane == 0 ? -1 : vfork();
    if (pid == 0) {
      child_events(lane);
      _exit(0);
    }
    if (pid > 0) waitpid(pid, NULL, 0);
  }
}

static void wait_for_another(void) {
  while (books->lanes[2].begun == 0 && !books->stop) usleep(1000);
}

static void* run(void* arg) {
  my_lane = 2 * (uint64_t)(uintptr_t)arg;
  if (my_lane == 0 && strchr(flags, 'l') != NULL) wait_for_another();
  const int has_plugins = strchr(flags, 'd') != NULL;
  if (strchr(flags, 's') != NULL) start_timer();
  for (uint64_t i = 0; (events == 0 || i < events) && !books->stop; ++i) {
    emit(my_lane);
    if (has_plugins) emit_if_provided(my_lane);
    if (has_plugins && my_lane == 0) use_plugins(i);
    if (my_lane == 0) make_children(i);
  }
  // No handler of this thread's may begin an event after the thread says that it is done.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: %s BOOKS THREADS EVENTS FLAGS\n", argv[0]);
    return 2;
  }
  const int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  books = mmap(NULL, sizeof(*books), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || books == MAP_FAILED) {
    perror(argv[1]);
    return 2;
  }
  close(fd);
  threads = atoi(argv[2]);
  events = strtoull(argv[3], NULL, 10);
  flags = argv[4];
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; strchr(flags, 'w') != NULL && i < 8; ++i) emit(0);
  if (strchr(flags, 'x') != NULL) forbid_calls();
  if (strchr(flags, 'p') != NULL) raise(SIGSTOP);
  pthread_t ids[64];
  for (int i = 1; i < threads; ++i) pthread_create(&ids[i], NULL, run, (void*)(uintptr_t)i);
  run(NULL);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
  for (int i = 0; i < SHARING; ++i) end_sharing(i);
  while (__atomic_load_n(&detached, __ATOMIC_ACQUIRE) != 0) usleep(100);
  return 0;
}
