// SPDX-License-Identifier: Apache-2.0
// Another peer, for LD_PRELOAD: a uprobe and a uretprobe on the function through perf. They are of
// any process, since the file is the bench's own. They write records with time, thread and the
// argument registers into rings that overwrite themselves. At the end, the number of hits goes to
// the file that BENCH_UPROBES names; -1: the kernel has no uprobes, or does not allow them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROBES = 2, MAX_CPUS = 256, RING_PAGES = 128 };

// enum perf_event_x86_regs: ax, dx, si, di
#define REGISTERS (1ull << 0 | 1ull << 3 | 1ull << 4 | 1ull << 5)

static int events[PROBES][MAX_CPUS];
static int cpus;
static int failed;

static int type_of_uprobes(void) {
  int type = -1;
  FILE* f = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
  if (f == NULL) return -1;
  if (fscanf(f, "%d", &type) != 1) type = -1;
  fclose(f);
  return type;
}

// Finds the file and the place in it of an address.
static int find(uint64_t address, char path[512], uint64_t* offset) {
  char line[1024];
  int found = 0;
  FILE* f = fopen("/proc/self/maps", "r");
  while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
    unsigned long begin, end, at;
    if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %511s", &begin, &end, &at, path) != 4) continue;
    found = address >= begin && address < end;
    *offset = at + address - begin;
  }
  if (f != NULL) fclose(f);
  return found;
}

static int open_one(int type, int is_return, const char* path, uint64_t offset, int cpu) {
  struct perf_event_attr attr = {
      .type = (uint32_t)type,
      .size = sizeof(attr),
      .config = (uint64_t)is_return,
      .sample_period = 1,
      .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_TID | PERF_SAMPLE_REGS_USER,
      .sample_regs_user = REGISTERS,
      .write_backward = 1,
      .wakeup_events = 1u << 30};
  attr.uprobe_path = (uint64_t)(uintptr_t)path;
  attr.probe_offset = offset;
  const int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return -1;
  // Mapped read-only, the ring overwrites its oldest records.
  const size_t bytes = (size_t)(RING_PAGES + 1) * (size_t)sysconf(_SC_PAGESIZE);
  return mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : fd;
}

__attribute__((constructor)) static void begin(void) {
  char path[512];
  uint64_t offset = 0;
  const int type = type_of_uprobes();
  void* function = dlsym(RTLD_DEFAULT, "bench_function");
  cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
  failed = type < 0 || cpus > MAX_CPUS || !find((uint64_t)(uintptr_t)function, path, &offset);
  for (int probe = 0; probe < PROBES && !failed; ++probe)
    for (int cpu = 0; cpu < cpus && !failed; ++cpu)
      failed = (events[probe][cpu] = open_one(type, probe, path, offset, cpu)) < 0;
  if (failed) fprintf(stderr, "uprobes: %s\n", strerror(errno));
}

__attribute__((destructor)) static void end(void) {
  const char* to = getenv("BENCH_UPROBES");
  FILE* f = to != NULL ? fopen(to, "w") : NULL;
  long long hits = 0;
  if (f == NULL) return;
  for (int probe = 0; probe < PROBES && !failed; ++probe)
    for (int cpu = 0; cpu < cpus; ++cpu) {
      uint64_t count = 0;
      if (read(events[probe][cpu], &count, sizeof(count)) == sizeof(count))
        hits += (long long)count;
    }
  fprintf(f, "%lld\n", failed ? -1 : hits);
  fclose(f);
}
