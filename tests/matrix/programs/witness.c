/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider for programs without events of their own. It is preloaded behind libweft.so and emits
 * an event whenever they call one of the functions below, in whatever process. It counts in the
 * file WITNESS, which all processes share: emitted events, and how many of them in children that
 * share their parent's memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "matrix_tp.h"

#define WITNESS __attribute__((visibility("default")))

static struct {
  unsigned long emitted;
  unsigned long emitted_sharing;
}* counts;
static long own_pid; /* of whom this memory is */

/* A vfork child may not bind anything: found before. */
static int (*next_execve)(const char*, char* const[], char* const[]);
static int (*next_execvp)(const char*, char* const[]);
static int (*next_dup2)(int, int);
static int (*next_close)(int);
static ssize_t (*next_write)(int, const void*, size_t);
static pid_t (*next_waitpid)(pid_t, int*, int);
static pid_t (*next_wait3)(int*, int, struct rusage*);
static void (*next_exit)(int) __attribute__((noreturn)); /* the last that is found */

static void learn_pid(void) { own_pid = syscall(SYS_getpid); }

static void find_next(void) {
  *(void**)&next_execve = dlsym(RTLD_NEXT, "execve");
  *(void**)&next_execvp = dlsym(RTLD_NEXT, "execvp");
  *(void**)&next_dup2 = dlsym(RTLD_NEXT, "dup2");
  *(void**)&next_close = dlsym(RTLD_NEXT, "close");
  *(void**)&next_write = dlsym(RTLD_NEXT, "write");
  *(void**)&next_waitpid = dlsym(RTLD_NEXT, "waitpid");
  *(void**)&next_wait3 = dlsym(RTLD_NEXT, "wait3");
  *(void**)&next_exit = dlsym(RTLD_NEXT, "_exit");
}

static void emit(const char* what) {
  if (next_exit == NULL) find_next(); /* another library's constructor ran first */
  if (counts == NULL) return;
  const unsigned long number = __atomic_add_fetch(&counts->emitted, 2, __ATOMIC_RELAXED);
  if (syscall(SYS_getpid) != own_pid)
    __atomic_add_fetch(&counts->emitted_sharing, 2, __ATOMIC_RELAXED);
  tracepoint(matrix, hit, (int)number);
  tracepoint(matrix, text, what, (int)number);
}

static void __attribute__((constructor)) begin(void) {
  find_next();
  learn_pid();
  pthread_atfork(NULL, NULL, learn_pid);
  const char* path = getenv("WITNESS");
  const int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  next_close(fd);
  if (map != MAP_FAILED) counts = map;
  emit("begin");
}

static void __attribute__((destructor)) end(void) { emit("end"); }

WITNESS int execve(const char* path, char* const argv[], char* const envp[]) {
  emit("execve");
  return next_execve(path, argv, envp);
}

WITNESS int execvp(const char* file, char* const argv[]) {
  emit("execvp");
  return next_execvp(file, argv);
}

WITNESS int dup2(int from, int to) {
  emit("dup2");
  return next_dup2(from, to);
}

WITNESS int close(int fd) {
  emit("close");
  return next_close(fd);
}

WITNESS ssize_t write(int fd, const void* bytes, size_t size) {
  emit("write");
  return next_write(fd, bytes, size);
}

WITNESS pid_t waitpid(pid_t pid, int* status, int options) {
  emit("waitpid");
  return next_waitpid(pid, status, options);
}

WITNESS pid_t wait3(int* status, int options, struct rusage* usage) {
  emit("wait3");
  return next_wait3(status, options, usage);
}

WITNESS void _exit(int status) {
  emit("_exit");
  next_exit(status);
}
