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
 *     later     it installs the filter of `filter` when FOLDER/go is there, by prctl
 *     seccomp   likewise, by syscall
 *     eintr     epoll_wait may return EINTR, since an agent that dies while it stops threads cannot
 *               set it back
 *     children  calls are its own and those of children: by fork, vfork, and clone on its memory
 *     waits     a thread calls traced_wait, which makes FOLDER/waits and runs until the program
 *               ends; it ends its thread by pthread_exit, so an unwinder passes its caller
 *     deep      its calls are made by traced_deep, in three frames of it
 *     again     it removes FOLDER/go before it makes FOLDER/done, and calls again if that is there
 *
 * It makes FOLDER/ready when it has begun. As soon as FOLDER/go is there it calls traced_call CALLS
 * times, and appends a byte to FOLDER/done. It ends with status 0 when FOLDER/release is there, and
 * when FOLDER is gone. FOLDER is reached by a descriptor.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/local/hooked.h"

static void fail(const char* what);

/* Does this object have an address and, unless it is a static program, tables for unwinders? */
static int find_address(struct dl_phdr_info* info, size_t size, void* address) {
  int has_address = 0, has_tables = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* h = &info->dlpi_phdr[i];
    has_address |=
        h->p_type == PT_LOAD && (uintptr_t)address - info->dlpi_addr - h->p_vaddr < h->p_memsz;
    has_tables |= h->p_type == PT_GNU_EH_FRAME;
  }
  return has_address && (has_tables || info->dlpi_name[0] == '\0');
}

/* Unwinders ask where the code lies to which a function returns. */
HOOKED int64_t traced_call(int64_t n) {
  if (dl_iterate_phdr(find_address, __builtin_return_address(0)) != 1) fail("dl_iterate_phdr");
  return n * 3 + 1000001;
}

static int folder;
static int64_t calls;
static int ends[2];
static volatile sig_atomic_t ticks;
static int may_be_interrupted;

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
  if (fd < 0) fail("epoll_create1");
  if (epoll_wait(fd, &event, 1, 5) != 0 && !(errno == EINTR && may_be_interrupted))
    fail("epoll_wait");
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

HOOKED int64_t traced_wait(int64_t n) {
  make("waits");
  while (!is_over()) sleep_a_little();
  if (n != 0) pthread_exit(NULL);
  return n;
}

static volatile int cleanups;

static void count_cleanup(const int* ignored) { cleanups += 1 + *ignored; }

/* Built with -fexceptions: an unwinder that finds its way past traced_wait runs the cleanup. */
static void* run_waiting(void* ignored) {
  const int nothing __attribute__((cleanup(count_cleanup))) = 0;
  while (!is_there("go")) sleep_a_little();
  traced_wait(1);
  return ignored;
}

static void* run_nothing(void* nothing) { return nothing; }

static pthread_t start_thread(void* (*fn)(void*), void (*step)(void)) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, fn, (void*)(uintptr_t)step) != 0) fail("pthread_create");
  return thread;
}

static void install_filter(uint32_t kills, int by_syscall) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kills, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("prctl");
  if (by_syscall ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0
                 : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    fail("seccomp");
}

HOOKED int64_t traced_deep(int64_t below, int64_t n) {
  const int64_t result = below == 0 ? traced_call(n) : traced_deep(below - 1, n);
  __asm__ volatile("" : : "r"(result));  // no jump is made of the call
  return result;
}

static int is_deep;

static void call_range(int64_t first, int64_t end) {
  for (int64_t i = first; i < end; ++i)
    if ((is_deep ? traced_deep(2, i) : traced_call(i)) != i * 3 + 1000001) fail("traced_call");
}

static void check_child(pid_t child, const char* what) {
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) fail(what);
}

static int child_calls(void* first) {
  call_range((intptr_t)first, (intptr_t)first + calls / 5);
  return 0;
}

static char stack[65536] __attribute__((aligned(16)));

static void call_in_children(void) {
  char* const top = stack + sizeof(stack);
  const intptr_t part = calls / 5;
  call_range(0, part);
  pid_t child = fork();
  if (child == 0) _exit(child_calls((void*)part));
  check_child(child, "fork");
  child = vfork();
  if (child == 0) _exit(child_calls((void*)(2 * part)));
  check_child(child, "vfork");
  const int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
  check_child(clone(child_calls, top, flags, (void*)(3 * part)), "clone that waits");
  check_child(clone(child_calls, top, CLONE_VM | SIGCHLD, (void*)(4 * part)), "clone");
}

/* Functions that a library may stand in front of fail as those of the C library do. */
static void check_errors(void) {
  pthread_t thread;
  errno = 0;
  if (prctl(-1, 0, 0, 0, 0) != -1 || errno != EINVAL) fail("prctl is wrong");
  errno = 0;
  if (syscall(SYS_close, -1) != -1 || errno != EBADF) fail("syscall is wrong");
  errno = 0;
  if (setns(-1, 0) != -1 || errno != EBADF) fail("setns is wrong");
  errno = 0;
  if (unshare(-1) != -1 || errno != EINVAL) fail("unshare is wrong");
  errno = 0;
  if (clone(child_calls, stack + sizeof(stack), CLONE_THREAD, NULL) != -1 || errno != EINVAL)
    fail("clone is wrong");
  if (pthread_create(&thread, NULL, run_nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
    fail("pthread_create");
}

enum call_kind { CALL_ITSELF, CALL_IN_CHILDREN, CALL_UNDER_FILTER, CALL_UNDER_FILTER_BY_SYSCALL };

static void call_traced(enum call_kind kind) {
  check_errors();
  if (kind == CALL_UNDER_FILTER || kind == CALL_UNDER_FILTER_BY_SYSCALL)
    install_filter(SYS_memfd_create, kind == CALL_UNDER_FILTER_BY_SYSCALL);
  if (kind == CALL_IN_CHILDREN) {
    call_in_children();
  } else {
    call_range(0, calls);
  }
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
  int stops = 0, waits = 0, calls_again = 0;
  pthread_t waiting;
  enum call_kind kind = CALL_ITSELF;
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
      install_filter(SYS_memfd_create, 0);
    } else if (strcmp(argv[i], "strict") == 0) {
      install_filter(SYS_munmap, 0);
    } else if (strcmp(argv[i], "stopped") == 0) {
      stops = 1;
    } else if (strcmp(argv[i], "eintr") == 0) {
      may_be_interrupted = 1;
    } else if (strcmp(argv[i], "later") == 0) {
      kind = CALL_UNDER_FILTER;
    } else if (strcmp(argv[i], "seccomp") == 0) {
      kind = CALL_UNDER_FILTER_BY_SYSCALL;
    } else if (strcmp(argv[i], "waits") == 0) {
      waiting = start_thread(run_waiting, NULL);
      waits = 1;
    } else if (strcmp(argv[i], "deep") == 0) {
      is_deep = 1;
    } else if (strcmp(argv[i], "again") == 0) {
      calls_again = 1;
    } else if (strcmp(argv[i], "children") == 0) {
      kind = CALL_IN_CHILDREN;
    } else {
      step = begin(argv[i]);
    }
  }
  make("ready");
  if (stops) raise(SIGSTOP);
  for (int called = 0; !is_over();) {
    step();
    if (called || !is_there("go")) continue;
    called = !calls_again;
    call_traced(kind);
    while (waits && !is_there("waits")) sleep_a_little();
    if (calls_again && unlinkat(folder, "go", 0) != 0) fail("go");
    make("done");
  }
  if (waits && (pthread_join(waiting, NULL) != 0 || cleanups != 1)) fail("pthread_exit");
  return 0;
}
