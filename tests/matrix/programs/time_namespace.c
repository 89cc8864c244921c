/* SPDX-License-Identifier: Apache-2.0 */
/*
 * time_namespace WHEN SECONDS: emits events in processes that come into a time namespace whose
 * CLOCK_MONOTONIC is so many seconds ahead, in each way there is: fork, raw clone3, exec, setns
 * there and back; before the process's first event or after it (early, late: the process that makes
 * the namespaces emits before it does). matrix.py compares their times.
 */
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>

#include "hit.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static int late;
static const char* seconds;

static void make_namespace(int by_number) {
  if (late) hit();
  REQUIRE((by_number ? (int)syscall(SYS_unshare, CLONE_NEWTIME) : unshare(CLONE_NEWTIME)) == 0);
  char line[64];
  const int size = snprintf(line, sizeof(line), "monotonic %s 5\n", seconds);
  const int file = open("/proc/self/timens_offsets", O_WRONLY);
  REQUIRE(file >= 0 && write(file, line, (size_t)size) == size);
  close(file);
  hit(); /* it is still where it was */
}

static void emit_and_end(int status) {
  hit();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    hit();
    _exit(0);
  }
  say_end("grandchild", child);
  _exit(status);
}

static void try_fork(void) {
  make_namespace(0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) emit_and_end(11);
  say_end("fork", child);
  hit();
}

static void try_clone3(void) {
  struct {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
  } args = {.exit_signal = 17};
  make_namespace(1);
  const pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
  REQUIRE(child >= 0);
  if (child == 0) emit_and_end(12);
  say_end("clone3", child);
  hit();
}

static void try_exec(const char* self) {
  make_namespace(0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (late) hit();
    execl(self, self, "executed", NULL);
    _exit(97);
  }
  say_end("exec", child);
}

/* Goes into the children's namespace, and back. */
static void try_setns(int by_number) {
  const int outer = open("/proc/self/ns/time", O_RDONLY);
  make_namespace(by_number);
  const int inner = open("/proc/self/ns/time_for_children", O_RDONLY);
  REQUIRE(outer >= 0 && inner >= 0);
  for (int i = 0; i < 4; ++i) {
    const int to = i % 2 == 0 ? inner : outer;
    const int type = i < 2 ? CLONE_NEWTIME : 0;
    REQUIRE((by_number ? (int)syscall(SYS_setns, to, type) : setns(to, type)) == 0);
    hit();
  }
  REQUIRE(setns(-1, CLONE_NEWTIME) == -1 && errno == EBADF);
  REQUIRE(setns(0, CLONE_NEWTIME) == -1 && errno == EINVAL);
  hit();
}

static void run_in_child(int what, const char* self) {
  fflush(stdout);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (what == 0) try_fork();
    if (what == 1) try_clone3();
    if (what == 2) try_exec(self);
    if (what > 2) try_setns(what == 4);
    _exit(what);
  }
  say_end("one", child);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "executed") == 0) {
    hit();
    report();
    return 13;
  }
  REQUIRE(argc == 3);
  late = strcmp(argv[1], "late") == 0;
  seconds = argv[2];
  for (int what = 0; what < 5; ++what) run_in_child(what, argv[0]);
  report();
  return 0;
}
