/* SPDX-License-Identifier: Apache-2.0 */
/* Threads have an rseq area of their own, as with allocators that use per-CPU caches. It needs
 * an environment in which libc registers none. The argument is what every thread does, in this
 * order: e emits, r registers its area, u takes it back. With f two children register areas
 * and emit, too. */
#include <pthread.h>
#include <sys/syscall.h>

#include "hit.h"

#if defined(__aarch64__)
#define SIGNATURE 0xd428bc00
#else
#define SIGNATURE 0x53053053
#endif

struct area {
  uint64_t words[4];
} __attribute__((aligned(32)));

static __thread struct area area;
static const char* steps;

static void call_rseq(int flags) {
  const long done = syscall(SYS_rseq, &area, sizeof(area), flags, SIGNATURE);
  REQUIRE(done == 0);
  /* cpu_id, which the kernel keeps: a CPU, or -1 where the area is not registered. */
  REQUIRE(((int32_t)(area.words[0] >> 32) < 0) == (flags != 0));
}

static void* many(void* arg) {
  for (const char* step = steps; *step; ++step) {
    if (*step == 'e') hit_many(1500);
    if (*step == 'r') call_rseq(0);
    if (*step == 'u') call_rseq(1);
  }
  return arg;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 2);
  steps = argv[1];
  pid_t children[2];
  for (int i = 0; i < 2; ++i) {
    children[i] = strchr(steps, 'f') ? fork() : -1;
    if (children[i] == 0) {
      steps = "re";
      break;
    }
  }
  pthread_t thread[16];
  for (int i = 0; i < 16; ++i) REQUIRE(pthread_create(&thread[i], NULL, many, NULL) == 0);
  for (int i = 0; i < 16; ++i) REQUIRE(pthread_join(thread[i], NULL) == 0);
  if (children[0] == 0 || children[1] == 0) return 0;
  for (int i = 0; i < 2; ++i) {
    if (children[i] > 0) say_end("child", children[i]);
  }
  report();
  return 0;
}
