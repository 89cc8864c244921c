/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Obeys its arguments and reports its own state. Each `emit` emits self:here and prints, as one
 * line of JSON, the values that the contexts of that event must have, as the kernel and libc tell
 * them.
 *
 *   self COMMAND...
 *     emit              the event; its `number` counts from 1 in each process
 *     fork              a child goes on with the commands behind; when it has ended, so does the
 *                       parent
 *     thread            the commands behind are a new thread's
 *     exec              executes itself with the commands behind
 *     uid:R,E,S gid:... setresuid, setresgid
 *     unshare:NAME      a new namespace, named as in /proc/self/ns
 *     name:NAME         of the thread, for the kernel
 *     cpu:last          runs on the last CPU that it may run on
 *     app               application contexts self:number (of the next event) and self:word ("even",
 *                       "odd")
 *     types             one application context of each type, named after it
 *     wait:FILE         until FILE is there
 */
#define _GNU_SOURCE
#define TRACEPOINT_CREATE_PROBES
#define TRACEPOINT_DEFINE
#include "tests/local/self_tp.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/context.h>

static const char* const namespaces[] = {"cgroup", "ipc",  "mnt",  "net",
                                         "pid",    "time", "user", "uts"};
static const int flags[] = {CLONE_NEWCGROUP, CLONE_NEWIPC, CLONE_NEWNS,   CLONE_NEWNET,
                            CLONE_NEWPID,    0x80,         CLONE_NEWUSER, CLONE_NEWUTS};
#define NAMESPACES (sizeof(flags) / sizeof(flags[0]))

static int number;

static void check(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "self: %s: %s\n", what, strerror(errno));
  fflush(NULL);
  _exit(90);
}

static unsigned long long inode(const char* name) {
  char path[64], link[64] = "";
  snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", name);
  check(readlink(path, link, sizeof(link) - 1) < 0, path);
  const char* begin = strchr(link, '[');
  return begin != NULL ? strtoull(begin + 1, NULL, 10) : 0;
}

static void emit(void) {
  uid_t u[3];
  gid_t g[3];
  char name[17] = "";
  tracepoint(self, here, ++number);
  check(getresuid(&u[0], &u[1], &u[2]), "getresuid");
  check(getresgid(&g[0], &g[1], &g[2]), "getresgid");
  check(prctl(PR_GET_NAME, name), "PR_GET_NAME");
  printf("{\"vpid\": %d, \"vtid\": %ld, \"pthread_id\": %llu, \"cpu_id\": %d, \"procname\": \"%s\"",
         getpid(), syscall(SYS_gettid), (unsigned long long)pthread_self(), sched_getcpu(), name);
  printf(", \"vuid\": %u, \"veuid\": %u, \"vsuid\": %u", u[0], u[1], u[2]);
  printf(", \"vgid\": %u, \"vegid\": %u, \"vsgid\": %u", g[0], g[1], g[2]);
  for (size_t i = 0; i < NAMESPACES; ++i)
    printf(", \"%s_ns\": %llu", namespaces[i], inode(namespaces[i]));
  printf("}\n");
  fflush(stdout);
}

static void unshare_one(const char* name) {
  for (size_t i = 0; i < NAMESPACES; ++i)
    if (strcmp(name, namespaces[i]) == 0) check(unshare(flags[i]), name);
}

static void run_on_last_cpu(void) {
  cpu_set_t set;
  check(sched_getaffinity(0, sizeof(set), &set), "sched_getaffinity");
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &set)) --last;
  CPU_ZERO(&set);
  CPU_SET(last, &set);
  check(sched_setaffinity(0, sizeof(set), &set), "sched_setaffinity");
}

static void get_number(void* data, struct weft_app_context_value* out) {
  (void)data;
  weft_context_signed(out, number);
}

static void get_word(void* data, struct weft_app_context_value* out) {
  (void)data;
  weft_context_string(out, number % 2 == 0 ? "even" : "odd");
}

static void get_typed(void* data, struct weft_app_context_value* out) {
  switch ((enum weft_context_dynamic)(uintptr_t)data) {
    case WEFT_DYNAMIC_NONE:
      break;
    case WEFT_DYNAMIC_S64:
      weft_context_signed(out, INT64_MIN);
      break;
    case WEFT_DYNAMIC_U64:
      weft_context_unsigned(out, UINT64_MAX);
      break;
    case WEFT_DYNAMIC_DOUBLE:
      weft_context_double(out, 0.1);
      break;
    case WEFT_DYNAMIC_STRING:
      weft_context_string(out, "a \"text\"");
      break;
    case WEFT_DYNAMIC_FLOAT: {
      const float value = -2.5F;
      memcpy(&out->bits, &value, sizeof(value));
      out->type = WEFT_DYNAMIC_FLOAT;
      break;
    }
    default:  // the narrow integers: of all bits their own count
      out->type = (uint32_t)(uintptr_t)data;
      out->bits = 0x12345678fedcba98;
  }
}

static void offer_types(void) {
  static const char* const names[] = {"self:none", "self:s8",    "self:s16",    "self:s32",
                                      "self:s64",  "self:u8",    "self:u16",    "self:u32",
                                      "self:u64",  "self:float", "self:double", "self:string"};
  for (uintptr_t type = 0; type < sizeof(names) / sizeof(names[0]); ++type)
    check(weft_context_register(names[type], get_typed, (void*)type), names[type]);
}

static void set_ids(const char* command) {
  unsigned r, e, s;
  const int is_uid = command[0] == 'u';
  check(sscanf(command + 4, "%u,%u,%u", &r, &e, &s) != 3, command);
  check(is_uid ? setresuid(r, e, s) : setresgid(r, e, s), command);
}

static void* run(void* argument);

static void run_in_thread(char** commands) {
  pthread_t thread;
  check(pthread_create(&thread, NULL, run, commands), "pthread_create");
  pthread_join(thread, NULL);
}

static void fork_here(void) {
  const pid_t child = fork();
  check(child < 0, "fork");
  if (child == 0) {
    number = 0;
    return;
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) _exit(91);
}

static void* run(void* argument) {
  for (char** at = argument; *at != NULL; ++at) {
    const char* command = *at;
    const char* colon = strchr(command, ':');
    const char* value = colon != NULL ? colon + 1 : "";
    if (strcmp(command, "emit") == 0) emit();
    if (strcmp(command, "fork") == 0) fork_here();
    if (strncmp(command, "uid:", 4) == 0 || strncmp(command, "gid:", 4) == 0) set_ids(command);
    if (strncmp(command, "unshare:", 8) == 0) unshare_one(value);
    if (strncmp(command, "name:", 5) == 0) check(prctl(PR_SET_NAME, value), command);
    if (strcmp(command, "cpu:last") == 0) run_on_last_cpu();
    if (strcmp(command, "app") == 0) {
      check(weft_context_register("self:number", get_number, NULL), command);
      check(weft_context_register("self:word", get_word, NULL), command);
    }
    if (strcmp(command, "types") == 0) offer_types();
    while (strncmp(command, "wait:", 5) == 0 && access(value, F_OK) != 0) usleep(1000);
    if (strcmp(command, "exec") == 0) check(execv("/proc/self/exe", at), command);
    if (strcmp(command, "thread") == 0) {
      run_in_thread(at + 1);
      return NULL;
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  (void)argc;
  run(argv + 1);
  fflush(NULL);
  _exit(0);  // a sanitizer's look for leaks, at exit, fails in a namespace that is not /proc's
}
