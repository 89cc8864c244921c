/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose ring sets are never announced, or that runs before weft does. It emits a known
 * number of events and appends a line "PID EVENTS" to `report` after each round; before the first,
 * one to `ready`.
 *
 *   hidden FOLDER EVENTS HOW...
 *     chroot      into FOLDER/root, before the first event
 *     no-socket   a filter that denies socket(), before the first event
 *     filtered    executes itself under that filter
 *     rounds=N    N rounds; each waits for the file FOLDER/goI (I from 0) and emits EVENTS
 *     fork        a child does the same, from before the first round on
 *     exec        the child executes itself, with its own memory from then on
 *     leave       a child does it; the parent ends with status 0 as soon as it has
 * At the end it waits for FOLDER/release. All files are reached by a descriptor, from inside a
 * chroot too.
 */
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/emitter_tp.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int folder;
static uint64_t events;

static int wants(char** how, const char* what) {
  for (; *how != NULL; ++how)
    if (strcmp(*how, what) == 0) return 1;
  return 0;
}

static int number_of(char** how, const char* what) {
  for (; *how != NULL; ++how)
    if (strncmp(*how, what, strlen(what)) == 0) return atoi(*how + strlen(what));
  return 0;
}

/* A test that is over takes its folder away. */
static void wait_for(const char* name) {
  struct stat st;
  while (faccessat(folder, name, F_OK, 0) != 0) {
    if (fstat(folder, &st) != 0 || st.st_nlink == 0) _exit(92);
    usleep(1000);
  }
}

static void say(const char* file, uint64_t number) {
  char line[64];
  const int n = snprintf(line, sizeof(line), "%d %llu\n", getpid(), (unsigned long long)number);
  const int fd = openat(folder, file, O_WRONLY | O_APPEND | O_CREAT, 0666);
  if (fd < 0 || write(fd, line, (size_t)n) != n) _exit(99);
  close(fd);
}

static void emit(void) {
  for (uint64_t i = 0; i < events; ++i) tracepoint(emitter, tick, getpid(), 0, i);
  say("report", events);
}

static void deny_socket(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    perror("seccomp");
    _exit(97);
  }
}

static void execute_without(int argc, char** argv, const char* word) {
  for (int i = 0; i < argc; ++i)
    if (strcmp(argv[i], word) == 0) argv[i] = (char*)"-";
  execv("/proc/self/exe", argv);
  _exit(96);
}

int main(int argc, char** argv) {
  if (argc < 3) return 95;
  char** how = argv + 3;
  folder = open(argv[1], O_RDONLY | O_DIRECTORY);
  if (folder < 0) return 94;
  events = strtoull(argv[2], NULL, 10);
  if (wants(how, "filtered")) {
    deny_socket();
    execute_without(argc, argv, "filtered");
  }
  if (wants(how, "chroot") &&
      ((mkdirat(folder, "root", 0755) != 0) || (fchdir(folder) != 0) || (chroot("root") != 0)))
    return 93;
  if (wants(how, "no-socket")) deny_socket();
  if (wants(how, "leave")) {
    if (fork() != 0) {
      wait_for("report");
      return 0;
    }
    for (int fd = 0; fd < 3; ++fd) close(fd); /* who reads the parent's output shall see its end */
  }
  if (wants(how, "fork")) (void)!fork();
  if (wants(how, "exec") && fork() == 0) execute_without(argc, argv, "exec");
  const int rounds = number_of(how, "rounds=");
  say("ready", 0);
  if (rounds == 0) emit();
  for (int i = 0; i < rounds; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "go%d", i);
    wait_for(name);
    emit();
  }
  wait_for("release");
  return 0;
}
