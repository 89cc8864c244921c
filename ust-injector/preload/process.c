// SPDX-License-Identifier: Apache-2.0
// Start of libweft.so in a process, its lock and its memory. See process.h.
#include "ust-injector/preload/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <sys/stat.h>

#include "lib/ring/atomic_slot.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/own_control.h"
#include "ust-injector/preload/seccomp.h"

#ifndef AT_RSEQ_FEATURE_SIZE
#define AT_RSEQ_FEATURE_SIZE 27
#endif
#define WEFT_RSEQ_FEATURE_MM_CID 28

// Where the webhook mounts the library's volume; it sets WEFT_CONTAINER and no WEFT_DIR.
#define WEFT_POD_FOLDER "/weft"
#define WEFT_ARENA_BYTES (256u * 1024u)
#define WEFT_AT_EMPTY_PATH 0x1000
#define WEFT_LOCK_TRIES 2000 /* each may let others run for milliseconds */
#define WEFT_QUIET_SPINS 100000
#define WEFT_WAITED_DEAD 0x41000005L /* WEXITED | WNOHANG | WNOWAIT | __WALL */

struct weft_process weft_process;
struct weft_anchor* weft_anchor;
uint32_t weft_silent;

// All from a libc, all weak: NULL where there is none.
extern void* __libc_stack_end __attribute__((weak));
extern char** __environ __attribute__((weak));
extern unsigned long getauxval(unsigned long type) __attribute__((weak));
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

// glibc's ld.so keeps the address of argc: the environment of exec time, before any constructor.
// Elsewhere (musl) __environ is set before constructors run.
static char** environment(void) {
  if (&__libc_stack_end != NULL && __libc_stack_end != NULL) {
    long* argc = __libc_stack_end;
    return (char**)(argc + 1 + *argc + 1);
  }
  return &__environ != NULL ? __environ : NULL;
}

const char* weft_environment(const char* name) {
  char** env = environment();
  const size_t n = strlen(name);
  for (; env != NULL && *env != NULL; ++env) {
    if (memcmp(*env, name, n) == 0 && (*env)[n] == '=') return *env + n + 1;
  }
  return NULL;
}

unsigned long weft_auxiliary(unsigned long type) {
  if (getauxval != NULL) return getauxval(type);
  return 0;
}

static void find_rseq(void) {
  // __rseq_size says 20 on Debian 12 although 32 bytes are registered and mm_cid works.
  const uint32_t id_offset = weft_auxiliary(AT_RSEQ_FEATURE_SIZE) >= WEFT_RSEQ_FEATURE_MM_CID
                                 ? WEFT_RSEQ_MM_CID_OFFSET
                                 : WEFT_RSEQ_CPU_ID_OFFSET;
  if (&__rseq_size == NULL || __rseq_size == 0) {
    weft_process.own_id_offset = id_offset;
    weft_process.own_rseq = 1;
    return;
  }
  weft_process.rseq_offset = __rseq_offset;
  weft_process.slot_id_offset = id_offset;
}

static bool control_is_sound(const struct weft_control_header* c, uint64_t size) {
  return c->magic == WEFT_CONTROL_MAGIC && c->major == WEFT_CONTROL_MAJOR && c->features == 0 &&
         c->header_size >= sizeof(*c) && c->total_size <= size &&
         c->word_count == WEFT_CONTROL_WORDS && c->words_offset % 64 == 0 &&
         c->words_offset <= size - 4ull * WEFT_CONTROL_WORDS && c->arena_offset <= size &&
         c->arena_size <= size - c->arena_offset;
}

// What the agent decided for ring sets.
static bool take_config(const struct weft_control_header* c) {
  if (c->slot_count < 1 || c->slot_count >= WEFT_RING_MAX_SLOTS) return false;
  if (c->clock != WEFT_CLOCK_TSC && c->clock != WEFT_CLOCK_MONOTONIC) return false;
  weft_process.slot_count = c->slot_count;
  weft_process.clock = c->clock;
  if (c->clock == WEFT_CLOCK_MONOTONIC) weft_clock_start();
  return true;
}

static void use_control(const uint8_t* memory, uint64_t size, const struct weft_control_header* c) {
  weft_process.control = memory;
  weft_process.control_size = size;
  weft_process.arena_offset = c->arena_offset;
  weft_process.words = (const uint32_t*)(memory + c->words_offset);
}

bool weft_process_learn(void) {
  struct weft_control_header header;
  if (!weft_process.own_control) return true;
  memcpy(&header, weft_process.control, sizeof(header));
  return take_config(&header);
}

// The file's descriptor, or a negative errno: there is none.
static long open_control(const char* path) {
  return weft_syscall(__NR_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
}

// Closes fd.
static bool map_control(long fd) {
  struct weft_control_header header;
  // Only calls that ld.so makes, too: a filter that was there at exec has let them pass.
  struct stat file = {0};
  long map = -EINVAL;
  if (weft_syscall(__NR_newfstatat, fd, "", &file, WEFT_AT_EMPTY_PATH) == 0 &&
      file.st_size >= (long)(sizeof(header) + 4ul * WEFT_CONTROL_WORDS)) {
    map = weft_syscall(__NR_mmap, 0, file.st_size, 1 /* PROT_READ */, MAP_SHARED, fd, 0);
  }
  weft_syscall(__NR_close, fd);
  const long size = file.st_size;
  if (map < 0 && map > -4096) return false;

  memcpy(&header, (const void*)map, sizeof(header));
  if (!control_is_sound(&header, (uint64_t)size) || !take_config(&header)) {
    weft_syscall(__NR_munmap, map, size);
    return false;
  }
  use_control((const uint8_t*)map, (uint64_t)size, &header);
  return true;
}

// No agent has been here: memory that a later one finds.
static bool make_control(void) {
  const uint8_t* memory = weft_own_control_make(weft_process.filter != WEFT_FILTER_NONE);
  if (memory == NULL) return false;
  use_control(memory, WEFT_CONTROL_TOTAL_BYTES, (const struct weft_control_header*)memory);
  weft_process.own_control = 1;
  return true;
}

// Where nothing is recorded the anchor holds no more than the lock, and needs no call.
static struct weft_anchor lone_anchor;

static bool make_anchor(void) {
  const long page = weft_syscall(__NR_mmap, 0, sizeof(struct weft_anchor), 3 /* read, write */,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page < 0 && page > -4096) return false;
  weft_anchor = (struct weft_anchor*)page;
  return true;
}

// False: Linux < 4.14, where a child would write into its parent's rings.
// A page that is used only where it is needed.
static void share_counts(void) {
  const long page = weft_syscall(__NR_mmap, 0, sizeof(struct weft_unannounced), 3,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (page > 0) weft_process.unannounced = (struct weft_unannounced*)page;
}

static bool wipe_on_fork(void* pages, uint64_t size) {
  return weft_syscall(__NR_madvise, pages, size, MADV_WIPEONFORK) == 0;
}

static bool wipe_anchor_on_fork(void) { return wipe_on_fork(weft_anchor, sizeof(*weft_anchor)); }

// The question of valgrind.h (RUNNING_ON_VALGRIND): instructions that do nothing elsewhere.
static bool is_on_valgrind(void) {
  const uint64_t question[6] = {0x1001};
  uint64_t answer = 0;
#if defined(__x86_64__)
  __asm__ volatile(
      "rolq $3, %%rdi\n\t"
      "rolq $13, %%rdi\n\t"
      "rolq $61, %%rdi\n\t"
      "rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx\n\t"
      : "+d"(answer)
      : "a"(question)
      : "cc", "memory", "rdi");
#else
  register const uint64_t* x4 __asm__("x4") = question;
  register uint64_t x3 __asm__("x3") = 0;
  __asm__ volatile(
      "ror x12, x12, 3\n\t"
      "ror x12, x12, 13\n\t"
      "ror x12, x12, 51\n\t"
      "ror x12, x12, 61\n\t"
      "orr x10, x10, x10\n\t"
      : "+r"(x3)
      : "r"(x4)
      : "cc", "memory", "x12");
  answer = x3;
#endif
  return answer != 0;
}

static bool start(void) {
  weft_anchor = &lone_anchor;
  const char* folder = weft_environment("WEFT_DIR");
  const char* container = weft_environment("WEFT_CONTAINER");
  if (folder == NULL && container != NULL) folder = WEFT_POD_FOLDER;
  if (folder == NULL || folder[0] != '/' || weft_auxiliary(AT_SECURE) != 0) return false;
  char* at = weft_process.folder;
  if (!weft_append(&at, at + WEFT_PATH_MAX, folder)) return false;

  char path[WEFT_PATH_MAX];
  at = path;
  if (container == NULL) container = "local";
  if (!weft_append(&at, path + WEFT_PATH_MAX, folder) ||
      !weft_append(&at, path + WEFT_PATH_MAX, "/") ||
      !weft_append(&at, path + WEFT_PATH_MAX, container) ||
      !weft_append(&at, path + WEFT_PATH_MAX, ".ctl")) {
    return false;
  }
  weft_process.filter = weft_seccomp_is_filtered() ? WEFT_FILTER_UNTRIED : WEFT_FILTER_NONE;
  const long fd = open_control(path);
  if (!(fd >= 0 ? map_control(fd) : make_control()) || !make_anchor()) return false;
  weft_process.on_valgrind = is_on_valgrind();
  if (weft_process.filter == WEFT_FILTER_NONE && !wipe_anchor_on_fork()) return false;
  find_rseq();
  if (weft_process.clock == WEFT_CLOCK_MONOTONIC) weft_clock_learn_offset();
  share_counts();
  return true;
}

bool weft_process_ready(void) {
  // acquire: pairs with the release below; the state's readers see what it stands for
  uint32_t state = __atomic_load_n(&weft_process.state, __ATOMIC_ACQUIRE);
  if (state == WEFT_PROCESS_NEW) {
    // Constructors run on one thread; the first call of a process is from one.
    state = start() ? WEFT_PROCESS_READY : WEFT_PROCESS_OFF;
    // release: everything that start() filled in
    __atomic_store_n(&weft_process.state, state, __ATOMIC_RELEASE);
  }
  return state == WEFT_PROCESS_READY;
}

bool weft_process_may_call(void) {
  uint64_t mask;
  // relaxed: decided again under the lock
  if (weft_silent) return false;
  if (__atomic_load_n(&weft_process.filter, __ATOMIC_RELAXED) == WEFT_FILTER_NONE) return true;
  if (!weft_lock(&mask)) return false;
  if (weft_process.filter == WEFT_FILTER_UNTRIED && !weft_silent) {
    if (weft_seccomp_try() && wipe_anchor_on_fork()) {
      // relaxed: the lock's release publishes it
      __atomic_store_n(&weft_process.filter, WEFT_FILTER_NONE, __ATOMIC_RELAXED);
    } else {
      weft_silent = 1;
    }
  }
  weft_unlock(mask);
  return !weft_silent;
}

// Where nothing is traced only the registry needs the lock, and no call may surprise a filter.
static bool must_be_quiet(void) {
  return weft_silent != 0 || weft_process.filter == WEFT_FILTER_UNTRIED ||
         weft_process.state == WEFT_PROCESS_OFF;
}

// The owner may have to wait for a CPU: more than so many tries, and for so long where time can be
// told without a call.
struct patience {
  uint32_t tries;
  uint64_t cycles, begin;
};

static struct patience patience(uint32_t tries, uint64_t cycles) {
  return (struct patience){tries, cycles, weft_process.no_clock ? 0 : weft_cycles()};
}

static bool is_patient(struct patience* p) {
  if (p->tries != 0) return p->tries-- != 0;
  return !weft_process.no_clock && weft_cycles() - p->begin < p->cycles;
}

static bool lock_quietly(uint64_t* saved_mask) {
  const uint32_t self = (uint32_t)(weft_thread_pointer() >> 4) | WEFT_LOCK_QUIET;
  struct patience p = patience(WEFT_QUIET_SPINS, WEFT_ABOUT_A_TENTH);
  while (is_patient(&p)) {
    uint32_t owner = 0;
    // acquire: sees what the previous owner did
    if (__atomic_compare_exchange_n(&weft_anchor->lock, &owner, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      *saved_mask = 0;
      return true;
    }
    if (owner == self) return false;  // a handler that interrupted it
    weft_spin_pause();
  }
  return false;
}

bool weft_is_dead(uint32_t owner) {
  if ((owner & WEFT_LOCK_QUIET) != 0) return false;
  if (weft_syscall(__NR_tkill, owner, 0) == -ESRCH) return true;
  int32_t info[32] = {0};
  return weft_syscall(__NR_waitid, 1 /* P_PID */, owner, info, WEFT_WAITED_DEAD, 0) == 0 &&
         info[0] != 0;
}

bool weft_lock(uint64_t* saved_mask) {
  const uint64_t all = ~0ull;
  if (must_be_quiet()) return lock_quietly(saved_mask);
  weft_syscall(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &all, saved_mask, sizeof(all));
  const uint32_t self = (uint32_t)weft_syscall(__NR_gettid, 0);
  struct patience p = patience(WEFT_LOCK_TRIES, WEFT_ABOUT_A_SECOND);
  for (uint32_t i = 0; is_patient(&p); ++i) {
    uint32_t owner = 0;
    // acquire: sees what the previous owner did
    if (__atomic_compare_exchange_n(&weft_anchor->lock, &owner, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
    if (i % 256 == 255 && weft_is_dead(owner) &&
        // acquire: as above, from a dead owner
        __atomic_compare_exchange_n(&weft_anchor->lock, &owner, self, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return true;
    }
    weft_syscall(__NR_sched_yield, 0);
  }
  weft_syscall(__NR_rt_sigprocmask, 2, saved_mask, 0, sizeof(all));
  return false;
}

uint32_t weft_generation(void) {
  static uint32_t last;  // a fork child goes on counting
  uint32_t known = 0;
  // relaxed: it orders nothing
  const uint32_t mine = __atomic_load_n(&weft_anchor->generation, __ATOMIC_RELAXED);
  if (mine != 0) return mine;
  // relaxed: as above
  const uint32_t next = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return __atomic_compare_exchange_n(&weft_anchor->generation, &known, next, false,
                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)
             ? next
             : known;
}

void weft_unlock(uint64_t saved_mask) {
  // relaxed: our own word
  const bool quiet = (__atomic_load_n(&weft_anchor->lock, __ATOMIC_RELAXED) & WEFT_LOCK_QUIET) != 0;
  // release: pairs with the acquire of the next owner
  __atomic_store_n(&weft_anchor->lock, 0, __ATOMIC_RELEASE);
  if (quiet) return;
  weft_syscall(__NR_rt_sigprocmask, 2, &saved_mask, 0, sizeof(saved_mask));
}

// A fork may find any state between two stores: `end` NULL means "nothing left".
static uint8_t* volatile next, * volatile end;

void weft_reserve_memory(void) {
  end = NULL;
  (void)weft_allocate(16);
}

void* weft_allocate(uint64_t size) {
  size = (size + 15) & ~15ull;
  if (end == NULL || size > (uint64_t)(end - next)) {
    const uint64_t bytes = size > WEFT_ARENA_BYTES ? (size + 4095) & ~4095ull : WEFT_ARENA_BYTES;
    const long map =
        weft_syscall(__NR_mmap, 0, bytes, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map < 0 && map > -4096) return NULL;
    if (size > WEFT_ARENA_BYTES / 2) return (void*)map;
    end = NULL;
    next = (uint8_t*)map;
    end = (uint8_t*)map + bytes;
  }
  void* out = next;
  next += size;
  return out;
}

void* weft_allocate_wiped_on_fork(uint64_t size) {
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map < 0 && map > -4096) return NULL;
  if (wipe_on_fork((void*)map, size)) return (void*)map;
  weft_syscall(__NR_munmap, map, size);
  return NULL;
}

__attribute__((constructor)) static void on_load(void) { (void)weft_process_ready(); }
