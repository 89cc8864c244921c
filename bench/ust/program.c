// SPDX-License-Identifier: Apache-2.0
// The measured program: `program EVENT THREADS BURSTS EVENTS_PER_BURST PACE`. Every thread makes
// bursts of events. PACE > 0: microseconds of pause between bursts, so that the consumer keeps up
// and nothing is discarded. PACE < 0: -PACE thousand events per second and thread, on a schedule
// (struct schedule), after as many events at an eighth of that speed as WARM_BURSTS have. Prints a
// JSON object (print_figures). With BENCH_OWN_RSEQ in the environment, and glibc told to register
// no rseq area, every thread registers one of its own: weft then uses the atomic slot. Compiled
// once against LTTng's headers, once against weft's. The event "function" is a call of the
// library's function that bench/functions traces, and BENCH_FIRST a command that runs before
// anything is measured, with the process id in $PPID.
//
// In a pause, other programs may or may not take the CPU's caches and its translated addresses. If
// they do, the first event after the pause costs some hundred nanoseconds more than the next
// (LTTng's: some thousand). A bare clock read has no pauses before it. Events are therefore counted
// only after the first ones of a burst; the first ones are shown separately.
//
// A program that shares a core with this CPU, perhaps in another machine, takes up to half of the
// speed from code that executes many instructions, and nothing from a clock read, which waits for a
// counter. A loop of additions before and after each burst measures this. The tenth of the bursts
// with the quickest loops counts as undisturbed.
#define _GNU_SOURCE
#include <linux/rseq.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACEPOINT_DEFINE
#define TRACEPOINT_CREATE_PROBES
#include "lib/abi/control.h"
#include "lib/abi/ring.h"
#include "provider.h"

enum {
  WARM_BURSTS = 150,
  WARM_SLOWER = 8,
  RUN_UP = 100,  // events before each burst
  ADDITIONS = 4000,
  CLOCK_BURSTS = 201,
  CLOCK_READS = 2000,
  RSEQ_SIGNATURE = 0x53053053,
};

static const char* event;
static int bursts, events_per_burst, pace;
static pthread_barrier_t barrier;
static __thread uint64_t emitted;  // calls of tracepoints, whether they are on or not
static __thread struct rseq own_rseq;
static const uint32_t numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline void read_clock(void) {
#if defined(__x86_64__)
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
#else
  uint64_t t;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
#endif
}

__attribute__((weak)) int64_t bench_function(int32_t id, uint64_t bytes, double ratio, void* data);

static void burst(const char* kind, int n) {
  int local = 0;
  emitted += (uint64_t)n;
  if (strcmp(kind, "four") == 0) {
    for (int i = 0; i < n; ++i) tracepoint(bench, four, i, (uint64_t)i * 3, i * 0.5, &local);
  } else if (strcmp(kind, "text") == 0) {
    for (int i = 0; i < n; ++i) tracepoint(bench, text, "a string of thirty-two characters");
  } else if (strcmp(kind, "numbers") == 0) {
    for (int i = 0; i < n; ++i) tracepoint(bench, numbers, numbers, 8);
  } else if (strcmp(kind, "off") == 0) {
    for (int i = 0; i < n; ++i) {
      tracepoint(bench, off, i);
      __asm__ volatile("" ::: "memory");
    }
  } else if (strcmp(kind, "function") == 0) {
    for (int i = 0; i < n; ++i) bench_function(i, (uint64_t)i * 3, i * 0.5, &local);
  } else if (strcmp(kind, "empty") == 0) {
    for (int i = 0; i < n; ++i) __asm__ volatile("" : : "r"(i) : "memory");
  } else {
    for (int i = 0; i < n; ++i) read_clock();
  }
}

// Returns how long a number of instructions that wait for nothing takes now.
static double additions(void) {
  uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
  const double start = now();
  for (int i = 0; i < ADDITIONS; ++i) {
    a += 1, b += 2, c += 3, d += 4, e += 5, f += 6;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
  return now() - start;
}

struct result {
  double ns;         // for each event
  double run_up;     // the same, of those before the burst
  double additions;  // the slower ones of those before and after
};

static struct result measure(const char* kind, int n) {
  const double before = additions();
  const double begin = now();
  burst(kind, RUN_UP);
  const double start = now();
  burst(kind, n);
  const double end = now();
  const double after = additions();
  return (struct result){(end - start) / n, (start - begin) / RUN_UP,
                         before > after ? before : after};
}

// The times at which bursts begin: each a period after the one before. A burst that is late by more
// than a period is not made up for. Otherwise bursts without a pause between them would come at the
// tracer's speed, not at the wanted one, and a faster tracer would give its consumer more work.
struct schedule {
  double period;  // ns
  double next;
};

static void wait_for_turn(struct schedule* s) {
  const double time = now();
  if (s->next > time) usleep((useconds_t)((s->next - time) / 1000));
  if (s->next < time - s->period) s->next = time - s->period;
  s->next += s->period;
}

struct thread {
  pthread_t id;
  struct result* results;  // of every burst
  double seconds;          // from the first of them to the last
  uint64_t emitted;
};

static void* run(void* arg) {
  struct thread* mine = arg;
  if (getenv("BENCH_OWN_RSEQ") != NULL &&
      syscall(SYS_rseq, &own_rseq, sizeof(own_rseq), 0, RSEQ_SIGNATURE) != 0) {
    perror("rseq");
    exit(1);
  }
  burst(event, 100);
  pthread_barrier_wait(&barrier);
  const double period = pace < 0 ? events_per_burst * 1e6 / -pace : 0;
  struct schedule schedule = {period * WARM_SLOWER, now()};
  for (int b = 0; pace < 0 && b < WARM_BURSTS; ++b) {
    wait_for_turn(&schedule);
    burst(event, events_per_burst);
  }
  pthread_barrier_wait(&barrier);
  const double begin = now();
  schedule = (struct schedule){period, begin};
  for (int b = 0; b < bursts; ++b) {
    if (pace < 0) {
      wait_for_turn(&schedule);
      burst(event, events_per_burst);
    } else {
      pthread_barrier_wait(&barrier);
      mine->results[b] = measure(event, events_per_burst);
      usleep((useconds_t)pace);
    }
  }
  mine->seconds = (now() - begin) / 1e9;
  mine->emitted = emitted;
  return NULL;
}

static int compare(double x, double y) { return (x > y) - (x < y); }
static int by_ns(const void* a, const void* b) {
  return compare(((const struct result*)a)->ns, ((const struct result*)b)->ns);
}
static int by_run_up(const void* a, const void* b) {
  return compare(((const struct result*)a)->run_up, ((const struct result*)b)->run_up);
}
static int by_additions(const void* a, const void* b) {
  return compare(((const struct result*)a)->additions, ((const struct result*)b)->additions);
}

static double percentile(struct result* results, int n, int percent) {
  qsort(results, (size_t)n, sizeof(results[0]), by_ns);
  return results[(int)((int64_t)n * percent / 100)].ns;
}

static double median(struct result* results, int n) { return percentile(results, n, 50); }

// Returns the medians of the undisturbed bursts, which are the tenth with the quickest additions,
// and the slowest additions among these.
static struct result undisturbed(struct result* results, int n) {
  qsort(results, (size_t)n, sizeof(results[0]), by_additions);
  const int tenth = (n + 9) / 10;
  const double additions = results[tenth - 1].additions;
  qsort(results, (size_t)tenth, sizeof(results[0]), by_run_up);
  const double run_up = results[tenth / 2].run_up;
  return (struct result){median(results, tenth), run_up, additions};
}

// Reads weft's ring set in this process, if there is one: its clock (enum weft_clock_id, 0: no ring
// set), and whether the atomic slot has records.
static void look_at_ring(int* clock, int* atomic) {
  char line[512];
  FILE* f = fopen("/proc/self/maps", "r");
  while (f != NULL && *clock == 0 && fgets(line, sizeof(line), f) != NULL) {
    unsigned long start, end, offset;
    if (strstr(line, "memfd:" WEFT_RING_MEMFD_NAME) == NULL ||
        sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) != 3 || offset != 0)
      continue;
    const struct weft_ring_header* h = (const struct weft_ring_header*)start;
    const uint64_t last = h->slots_offset + (uint64_t)(h->slot_count - 1) * h->slot_size;
    if (h->magic != WEFT_RING_MAGIC || last + sizeof(struct weft_slot) > end - start) continue;
    *clock = (int)h->clock;
    *atomic = ((const struct weft_slot*)(start + last))->head > WEFT_HEAD_INITIAL;
  }
  if (f != NULL) fclose(f);
}

// ns are per event. quiet: median of the undisturbed bursts; clock_read: that of a bare clock read;
// run_up: median of the RUN_UP events before the undisturbed bursts; median and p99: of all bursts;
// rate: events per second, without the slow ones before; additions: ns of the additions around the
// most disturbed one of the undisturbed bursts.
static void print_figures(struct result* results, const struct thread* all, int threads) {
  const int n = threads * bursts;
  double seconds = 0;
  uint64_t calls = 0;
  for (int i = 0; i < threads; ++i) {
    if (all[i].seconds > seconds) seconds = all[i].seconds;
    calls += all[i].emitted;
  }
  struct result clock_reads[CLOCK_BURSTS];
  for (int i = 0; i < CLOCK_BURSTS; ++i) clock_reads[i] = measure("clock", CLOCK_READS);
  const double all_bursts = median(results, n);
  const double slow = percentile(results, n, 99);
  const struct result quiet = undisturbed(results, n);
  int clock = 0, atomic = 0;
  look_at_ring(&clock, &atomic);
  printf("{\"quiet\": %.3f, \"clock_read\": %.3f, \"median\": %.3f, \"p99\": %.3f, ", quiet.ns,
         undisturbed(clock_reads, CLOCK_BURSTS).ns, all_bursts, slow);
  printf("\"rate\": %.0f, \"run_up\": %.3f, \"additions\": %.0f, ",
         (double)n * events_per_burst / seconds, quiet.run_up, quiet.additions);
  printf("\"emitted\": %llu, \"ring_clock\": %d, \"atomic_slot\": %d}\n", (unsigned long long)calls,
         clock, atomic);
}

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: %s EVENT THREADS BURSTS EVENTS_PER_BURST PACE\n", argv[0]);
    return 2;
  }
  event = argv[1];
  const int threads = atoi(argv[2]);
  bursts = atoi(argv[3]);
  events_per_burst = atoi(argv[4]);
  pace = atoi(argv[5]);
  struct result* results = calloc((size_t)(threads * bursts), sizeof(results[0]));
  struct thread* all = calloc((size_t)threads, sizeof(all[0]));
  if (threads < 1 || bursts < 1 || results == NULL || all == NULL) return 2;
  if (strcmp(event, "function") == 0 && bench_function == NULL) return 2;
  if (getenv("BENCH_FIRST") != NULL && system(getenv("BENCH_FIRST")) != 0) return 2;
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i) {
    all[i].results = results + i * bursts;
    pthread_create(&all[i].id, NULL, run, &all[i]);
  }
  for (int i = 0; i < threads; ++i) pthread_join(all[i].id, NULL);
  print_figures(results, all, threads);
  free(all);
  free(results);
  return 0;
}
