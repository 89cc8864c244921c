/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs without weft until weft is loaded into it. It checks itself all the time:
 * values in registers, below its stack pointer, results and errors of system calls, signals. Any
 * difference ends it with a message and status 1.
 *
 *   attached FOLDER CALLS KIND...
 *     busy      the main thread computes
 *     epoll     it waits in epoll_wait, which a stop alone makes return EINTR
 *     sleep     in nanosleep
 *     read      in read, of what another thread writes
 *     sigwait   in sigtimedwait
 *     suspend   in sigsuspend, for a timer's signal
 *     timer     a timer's signal interrupts it, whatever it does
 *     threads   three other threads do the kinds epoll, sleep and busy
 *     filter    it installs a seccomp filter that kills for memfd_create
 *     strict    it installs one that kills for munmap
 *     stopped   it stops itself by SIGSTOP after `ready`
 *
 * It makes FOLDER/ready when it has begun. As soon as FOLDER/go is there it calls traced_call CALLS
 * times, and appends a byte to FOLDER/done. It ends with status 0 when FOLDER/release is there, and
 * when FOLDER is gone. FOLDER is reached by a descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "tests/local/hooked.h"

HOOKED int64_t traced_call(int64_t n) { return n * 3 + 1000001; }

static int folder;
static int64_t calls;
static int ends[2];
static volatile sig_atomic_t ticks;

static void fail(const char* what) {
  char text[160];
  const int n = snprintf(text, sizeof(text), "attached: %s: %s\n", what, strerror(errno));
  (void)!write(2, text, (size_t)n);
  _exit(1);
}

static int is_there(const char* name) { return faccessat(folder, name, F_OK, 0) == 0; }

static void make(const char* name) {
  const int fd = openat(folder, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, ".", 1) != 1) fail(name);
  close(fd);
}

static int is_over(void) {
  struct stat st;
  return is_there("release") || fstat(folder, &st) != 0 || st.st_nlink == 0;
}

/* A leaf function: its values lie in registers and in the red zone. */
__attribute__((noinline)) static double compute(double seed) {
  double a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
  volatile int64_t kept[12];
  for (int i = 0; i < 12; ++i) kept[i] = i * 7;
  for (int i = 0; i < 20000; ++i) {
    a += 0.5;
    b += 0.25;
    c -= 0.5;
    d -= 0.25;
  }
  for (int i = 0; i < 12; ++i)
    if (kept[i] != i * 7) return -1;
  return a + b + c + d;
}

static void busy(void) {
  errno = 0;
  if (compute(1) != 10 || compute(2) != 14) fail("computed wrong");
}

static void wait_in_epoll(void) {
  struct epoll_event event;
  const int fd = epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0 || epoll_wait(fd, &event, 1, 5) != 0) fail("epoll_wait");
  close(fd);
}

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_a_little(void) {
  const struct timespec time = {0, 5000000};
  const int64_t begin = now();
  if (nanosleep(&time, NULL) != 0) fail("nanosleep");
  if (now() - begin < 5000000) fail("nanosleep was short");
}

static void read_a_word(void) {
  static uint64_t expected;
  uint64_t word = 0;
  if (read(ends[0], &word, sizeof(word)) != sizeof(word) || word != expected++) fail("read");
}

static void wait_for_signal(void) {
  const struct timespec time = {0, 5000000};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  if (sigtimedwait(&set, NULL, &time) != -1 || errno != EAGAIN) fail("sigtimedwait");
}

static void suspend(void) {
  sigset_t none;
  sigemptyset(&none);
  const int before = ticks;
  if (sigsuspend(&none) != -1 || errno != EINTR) fail("sigsuspend");
  if (ticks == before) fail("sigsuspend returned without a signal");
}

static void tick(int signal) {
  (void)signal;
  ++ticks;
}

static void start_timer(int flags) {
  const struct sigaction action = {.sa_handler = tick, .sa_flags = flags};
  const struct itimerval each = {{0, 2000}, {0, 2000}};
  if (sigaction(SIGALRM, &action, NULL) != 0 || setitimer(ITIMER_REAL, &each, NULL) != 0)
    fail("setitimer");
}

static void* run_thread(void* step) {
  sigset_t alarm;
  sigemptyset(&alarm);
  sigaddset(&alarm, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarm, NULL);
  while (!is_over()) ((void (*)(void))(uintptr_t)step)();
  return NULL;
}

static void* run_writer(void* ignored) {
  (void)ignored;
  for (uint64_t word = 0; word != UINT64_MAX; ++word) {
    usleep(3000);
    if (write(ends[1], &word, sizeof(word)) != sizeof(word)) fail("write");
  }
  return NULL;
}

static void start_thread(void* (*fn)(void*), void (*step)(void)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, fn, (void*)(uintptr_t)step) != 0) fail("pthread_create");
}

static void install_filter(uint32_t kills) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kills, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    fail("seccomp");
}

static void call_traced(void) {
  for (int64_t i = 0; i < calls; ++i)
    if (traced_call(i) != i * 3 + 1000001) fail("traced_call");
  make("done");
}

static void (*begin(const char* kind))(void) {
  if (strcmp(kind, "epoll") == 0) return wait_in_epoll;
  if (strcmp(kind, "sleep") == 0) return sleep_a_little;
  if (strcmp(kind, "sigwait") == 0) return wait_for_signal;
  if (strcmp(kind, "read") == 0) {
    if (pipe(ends) != 0) fail("pipe");
    start_thread(run_writer, NULL);
    return read_a_word;
  }
  if (strcmp(kind, "suspend") == 0) {
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    start_timer(0);
    return suspend;
  }
  return busy;
}

int main(int argc, char** argv) {
  void (*step)(void) = busy;
  int stops = 0;
  if (argc < 4) return 2;
  folder = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  calls = atoll(argv[2]);
  if (folder < 0) return 2;
  for (int i = 3; i < argc; ++i) {
    if (strcmp(argv[i], "threads") == 0) {
      start_thread(run_thread, wait_in_epoll);
      start_thread(run_thread, sleep_a_little);
      start_thread(run_thread, busy);
    } else if (strcmp(argv[i], "timer") == 0) {
      start_timer(SA_RESTART);
    } else if (strcmp(argv[i], "filter") == 0) {
      install_filter(SYS_memfd_create);
    } else if (strcmp(argv[i], "strict") == 0) {
      install_filter(SYS_munmap);
    } else if (strcmp(argv[i], "stopped") == 0) {
      stops = 1;
    } else {
      step = begin(argv[i]);
    }
  }
  make("ready");
  if (stops) raise(SIGSTOP);
  for (int called = 0; !is_over();) {
    step();
    if (called || !is_there("go")) continue;
    called = 1;
    call_traced();
  }
  return 0;
}
