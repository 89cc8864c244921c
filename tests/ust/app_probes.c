/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own probes and contexts. Prints what happens; recorded_test.py compares it, with
 * libweft.so and without. Attaches and detaches while another thread is at the tracepoint: memory
 * that a probe uses is poisoned right after its detach.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/context.h>
#include <weft/probe.h>

#include "./every_short_tp.h"
#include "./lone_tp.h"

#define ROUNDS 300

static void on_level(void* data, int number, const char* text) {
  printf("probe %s: %d %s\n", (const char*)data, number, text);
}

static void detach_inside(void* data, int number, const char* text) {
  (void)number;
  (void)text;
  printf("inside: %d\n",
         weft_tracepoint_detach(every_short, level_debug, detach_inside, data) == -EDEADLK);
}

struct listed {
  int offered, lone, lone_offered;
};

static int list_one(void* data, const char* name, const struct weft_event_desc* desc) {
  struct listed* listed = (struct listed*)data;
  if (strncmp(name, "every_short:", 12) == 0 && desc) listed->offered++;
  if (strcmp(name, "lone:alone") == 0) {
    listed->lone++;
    if (desc) listed->lone_offered++;
  }
  return 0;
}

static void answer(void* data, struct weft_app_context_value* out) {
  weft_context_signed(out, *(int*)data);
}

struct checked {
  int alive;
  unsigned calls;
};

static int stop, dead_calls;

static void on_nothing(void* data) {
  struct checked* checked = (struct checked*)data;
  if (checked->alive != 1) dead_calls++;
  checked->calls++;
}

static void* run_tracepoints(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) tracepoint(every_short, nothing);
  return unused;
}

/* Returns how many rounds saw their probe called. */
static int attach_and_detach(void) {
  pthread_t thread;
  int seen = 0;
  pthread_create(&thread, NULL, run_tracepoints, NULL);
  for (int i = 0; i < ROUNDS; i++) {
    struct checked* checked = (struct checked*)calloc(1, sizeof(*checked));
    checked->alive = 1;
    if (weft_tracepoint_attach(every_short, nothing, on_nothing, checked) != 0) abort();
    while (__atomic_load_n(&checked->calls, __ATOMIC_RELAXED) == 0) sched_yield();
    if (weft_tracepoint_detach(every_short, nothing, on_nothing, checked) != 0) abort();
    seen += checked->calls > 0;
    checked->alive = 0;
    free(checked);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  return seen;
}

struct slow {
  int inside, ended;
};

static void on_nothing_slowly(void* data) {
  struct slow* slow = (struct slow*)data;
  __atomic_store_n(&slow->inside, 1, __ATOMIC_RELAXED);
  usleep(200 * 1000);
  slow->ended = 1;
}

static void* run_once(void* unused) {
  tracepoint(every_short, nothing);
  return unused;
}

static void* run_now_and_then(void* unused) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    usleep(20 * 1000);
    tracepoint(every_short, nothing);
  }
  return unused;
}

/* Did a detach return only when the call of its probe had ended, though calls of another probe
 * began and ended meanwhile? */
static int detach_from_a_call(void) {
  pthread_t caller, others;
  struct slow slow = {0, 0};
  struct checked checked = {1, 0};
  int waited;
  stop = 0;
  if (weft_tracepoint_attach(every_short, nothing, on_nothing_slowly, &slow) != 0) abort();
  pthread_create(&caller, NULL, run_once, NULL);
  while (!__atomic_load_n(&slow.inside, __ATOMIC_RELAXED)) sched_yield();
  if (weft_tracepoint_attach(every_short, nothing, on_nothing, &checked) != 0) abort();
  pthread_create(&others, NULL, run_now_and_then, NULL);
  waited =
      weft_tracepoint_detach(every_short, nothing, on_nothing_slowly, &slow) == 0 && slow.ended;
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(caller, NULL);
  pthread_join(others, NULL);
  if (weft_tracepoint_detach(every_short, nothing, on_nothing, &checked) != 0) abort();
  return waited;
}

int main(void) {
  static char one[] = "one", two[] = "two";
  static int value = 42;
  struct listed listed = {0, 0, 0};
  if (weft_probe_list(list_one, &listed) == -ENOSYS) {
    printf("no library: %d %d %d\n",
           weft_tracepoint_attach(every_short, level_info, on_level, one) == -ENOSYS,
           weft_probe_detach("every_short:level_err", on_level, two) == -ENOSYS,
           weft_context_register("app:answer", answer, &value) == -ENOSYS);
    tracepoint(every_short, level_info, 1, "off");
    return 0;
  }
  printf("listed %d %d %d\n", listed.offered, listed.lone, listed.lone_offered);
  printf("attach %d\n", weft_tracepoint_attach(every_short, level_info, on_level, one));
  printf("attach %d\n", weft_probe_attach("every_short:level_err", on_level, two));
  printf("unknown %d\n", weft_probe_attach("every_short:unknown", on_level, two) == -ENOENT);
  printf("context %d\n", weft_context_register("app:answer", answer, &value));
  printf("again %d\n", weft_context_register("app:answer", answer, &value) == -EEXIST);
  tracepoint(every_short, level_info, 1, "first");
  value = 43;
  tracepoint(every_short, level_err, 2, "second");
  printf("detach %d\n", weft_tracepoint_detach(every_short, level_info, on_level, one));
  printf("detached %d\n",
         weft_tracepoint_detach(every_short, level_info, on_level, one) == -ENOENT);
  tracepoint(every_short, level_info, 3, "third");
  printf("unregister %d\n", weft_context_unregister("app:answer"));
  tracepoint(every_short, level_info, 4, "fourth");
  weft_tracepoint_attach(every_short, level_debug, detach_inside, one);
  tracepoint(every_short, level_debug, 5, "fifth");
  weft_tracepoint_detach(every_short, level_debug, detach_inside, one);
  printf("rounds %d\n", attach_and_detach());
  printf("dead calls %d\n", dead_calls);
  printf("waited %d\n", detach_from_a_call());
  return 0;
}
