/* SPDX-License-Identifier: Apache-2.0 */
/* One thread puts itself under a filter that kills for what weft calls; the others go on, and so
 * does tracing; a fork child of the filtered thread only must not be hurt. */
#include <pthread.h>

#include "filter.h"
#include "hit.h"

static void* confined(void* arg) {
  struct sock_filter code[64];
  const struct sock_fprog program = {
      build_filter(code, "memfd_create,socket,sched_yield,getuid", filter_action("kill")), code};
  REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
  for (int i = 0; i < 1000; ++i) hit();
  tracepoint(matrix, text, "decided under the filter", 1);
  return arg;
}

int main(void) {
  pthread_t thread;
  hit_many(8);
  tracepoint(matrix, text, "before", 0);
  __atomic_add_fetch(hits, 2, __ATOMIC_RELAXED);
  REQUIRE(pthread_create(&thread, NULL, confined, NULL) == 0);
  pthread_join(thread, NULL);
  hit_many(1000);
  report();
  return 0;
}
