// SPDX-License-Identifier: Apache-2.0
// See ring_set.h and lib/abi/ring.h. A ring set is made in this order: memfd, mapping, seals,
// header, doorbell.
#include "ust-injector/preload/ring_set.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mman.h>

#include "ust-injector/preload/channel.h"
#include "ust-injector/preload/children.h"
#include "ust-injector/preload/clock.h"
#include "ust-injector/preload/cycles.h"
#include "ust-injector/preload/doorbell.h"
#include "ust-injector/preload/helper_task.h"
#include "ust-injector/preload/lock.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/ring_memory.h"
#include "ust-injector/preload/seccomp.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#endif
#define WEFT_SEALS 7 /* SEAL, SHRINK, GROW */

static uint64_t random_u64(void) {
  uint64_t r = 0;
  if (weft_syscall(__NR_getrandom, &r, sizeof(r), 1 /* GRND_NONBLOCK */) != (long)sizeof(r)) {
    r = weft_cycles() * 0x9e3779b97f4a7c15ull ^ (uint64_t)weft_vpid() << 40 ^ (uintptr_t)&r;
  }
  return r;
}

// Returns the multiple at which a ring begins, in the file and in memory. A single ring is for
// where room is short: it is not aligned to huge pages.
static uint64_t page_of(const struct weft_ring_header* h) {
  const bool is_large = h->slot_count > 1 && 1ull << h->slot_shift >= WEFT_HUGE_PAGE_BYTES;
  return is_large ? WEFT_HUGE_PAGE_BYTES : 4096;
}

// A shape without a ring takes no records: its header has no descriptions.
static void lay_out(struct weft_ring_header* h, uint32_t channel, struct weft_ring_shape shape) {
  const bool only_counts = shape.subbuf_shift == 0;
  if (only_counts) {
    shape = (struct weft_ring_shape){0, WEFT_RING_MIN_SUBBUF_SHIFT, WEFT_RING_MIN_SUBBUFS_SHIFT};
  }
  const struct weft_channel* c = &weft_channels[channel];
  memset(h, 0, sizeof(*h));
  h->magic = WEFT_RING_MAGIC;
  h->major = WEFT_RING_MAJOR;
  h->minor = WEFT_RING_MINOR;
  h->header_size = sizeof(*h);
  h->slot_count = shape.rseq_slots + 1;
  h->slot_size = sizeof(struct weft_slot);
  h->slot_shift = shape.subbuf_shift + shape.subbufs_shift;
  h->subbuf_shift = shape.subbuf_shift;
  h->mode = c->mode;
  h->clock = weft_process.clock;
  h->channel_id = c->id;
  h->slots_offset = WEFT_RING_SLOTS_OFFSET;
  // With few slots, the descriptions share the header's page, since each used page is charged to
  // the pod.
  h->descriptions_offset = h->slots_offset + (uint64_t)h->slot_count * h->slot_size;
  h->descriptions_size = only_counts ? 0 : WEFT_DESCRIPTIONS_BYTES;
  const uint64_t page = page_of(h);
  h->data_offset = (h->descriptions_offset + h->descriptions_size + page - 1) & -page;
  h->total_size = h->data_offset + ((uint64_t)h->slot_count << h->slot_shift);
  h->instance = random_u64();
  h->pid = weft_vpid();
  // Readers also learn of events that were discarded before there was a ring set. relaxed:
  // pending_since is set before `pending`, which is counted later
  const uint64_t since =
      __atomic_load_n(&weft_anchor->channels[channel].pending_since, __ATOMIC_RELAXED);
  h->created = since != 0 ? since : weft_clock_of_rings();
}

void (*weft_ring_set_made)(uint32_t channel, const struct weft_loaded_objects* loaded);

// The request to make_in_helper, and its answer.
struct making {
  uint32_t channel;
  bool only_if_it_records;             // a ring set that counts is there already
  bool has_own_descriptors;            // it runs in a helper thread
  bool is_last_try;                    // a ring set that cannot be announced is better than none
  bool is_full;                        // no descriptor was free
  long socket;                         // for the doorbell; negative: none, or an error
  uint8_t* memory;                     // NULL: not possible
  uint32_t max_record;                 // that its rings take; 0: it only counts
  struct weft_loaded_objects* loaded;  // to be filled, NULL: no state dump is wanted
  struct weft_ring_header header;
};

static long make_memfd(void) {
  const long f = weft_syscall(__NR_memfd_create, WEFT_RING_MEMFD_NAME,
                              MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
  if (f != -EINVAL) return f;
  return weft_syscall(__NR_memfd_create, WEFT_RING_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

static void close_if_open(long fd) {
  if (fd >= 0) weft_syscall(__NR_close, fd);
}

// Opens the memfd and m->socket, since both are needed at once. If the table is full of copies of
// the program's descriptors, closing two of the copies makes room.
static long make_descriptors(struct making* m) {
  for (bool may_close = m->has_own_descriptors;; may_close = false) {
    if (m->socket < 0) m->socket = weft_doorbell_open();
    long f = make_memfd();
    m->is_full = f == -EMFILE || m->socket == -EMFILE;
    if (!m->is_full) return f;
    if (m->is_last_try && !may_close) {
      if (f >= 0) return f;
      close_if_open(m->socket);
      m->socket = -EMFILE;
      return make_memfd();
    }
    close_if_open(f);
    close_if_open(m->socket);
    m->socket = -EMFILE;
    if (!may_close) return -EMFILE;
    weft_helper_close_copies();
  }
}

// ftruncate over RLIMIT_FSIZE would raise SIGXFSZ.
static bool may_be_so_large(uint64_t size) {
  uint64_t limit[2] = {0, 0};
  return weft_syscall(__NR_prlimit64, 0, 1 /* RLIMIT_FSIZE */, 0, limit) != 0 || size <= limit[0];
}

// The memory is PROT_NONE at first, and is unlocked before access, so that mlockall(MCL_FUTURE)
// populates nothing.
static long map_untouched(long f, uint64_t size, uint64_t at) {
  return weft_syscall(__NR_mmap, at, size, 0, MAP_SHARED | MAP_NORESERVE, f, 0);
}

// Maps at an address for huge pages, if the kernel has room there. As a rule the kernel maps from
// the top down, so that the memory right below is free.
static long map_aligned(long f, uint64_t size, uint64_t page) {
  const long map = map_untouched(f, size, 0);
  if (weft_failed(map) || ((uint64_t)map & (page - 1)) == 0) return map;
  weft_syscall(__NR_munmap, map, size);
  return map_untouched(f, size, (uint64_t)map & -page);
}

// Makes and maps the memfd of a ring set of m->header's size; stores its descriptor in *fd. Returns
// NULL if that is not possible.
static uint8_t* make_memory(struct making* m, int* fd) {
  const uint64_t size = m->header.total_size;
  if (!may_be_so_large(size)) return NULL;
  const long f = make_descriptors(m);
  if (f < 0) return NULL;
  *fd = (int)f;
  if (weft_syscall(__NR_ftruncate, f, size) != 0) goto close_fd;
  const long map = map_aligned(f, size, page_of(&m->header));
  if (weft_failed(map)) goto close_fd;
  weft_syscall(__NR_munlock, map, size);
  if (weft_syscall(__NR_madvise, map, size, MADV_DONTFORK) != 0 ||
      weft_syscall(__NR_mprotect, map, size, 3) != 0 ||
      weft_syscall(__NR_fcntl, f, F_ADD_SEALS, WEFT_SEALS) != 0) {
    weft_syscall(__NR_munmap, map, size);
    goto close_fd;
  }
  weft_syscall(__NR_madvise, map, size, MADV_DONTDUMP);
  return (uint8_t*)map;

close_fd:
  weft_syscall(__NR_close, f);
  return NULL;
}

static bool is_tracked(const uint32_t* ids, uint32_t count, uint32_t id) {
  if (count == 0) return true;
  for (uint32_t i = 0; i < count; ++i) {
    if (ids[i] == id) return true;
  }
  return false;
}

static bool is_wanted(const struct weft_channel* c) {
  return is_tracked(c->vpids, c->vpid_count, weft_vpid()) &&
         (c->vuid_count == 0 ||
          is_tracked(c->vuids, c->vuid_count, (uint32_t)weft_syscall(__NR_getuid, 0)));
}

// Fills the writer's view. First each slot, then `slots`, then their count: a section looks at one
// of the last two before it uses the rest.
//
// A ring set that only counts gives way to one of one slot: a thread that still sees the former's
// max_record stores into none of its rings.
static void publish(uint32_t channel, const struct making* m) {
  uint8_t* memory = m->memory;
  const struct weft_ring_header* h = &m->header;
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  struct weft_writer_slots* slots = weft_channels[channel].slots;
  struct weft_slot* shared = (struct weft_slot*)(memory + h->slots_offset);
  uint8_t* data = memory + h->data_offset;
  for (uint32_t i = 0; i < h->slot_count; ++i) {
    slots->slot[i] = (struct weft_writer_slot){shared + i, data + ((uint64_t)i << h->slot_shift)};
  }
  a->header = (struct weft_ring_header*)memory;
  a->ring.atomic_slot = h->slot_count - 1;
  a->ring.subbuf_shift = h->subbuf_shift;
  a->ring.subbuf_mask = (1u << h->subbuf_shift) - 1;
  a->ring.slot_mask = (1u << h->slot_shift) - 1;
  a->ring.subbufs = 1u << (h->slot_shift - h->subbuf_shift);
  a->ring.mode = h->mode;
  a->ring.clock = h->clock;
  // release: the view of these rings, before records that they take
  __atomic_store_n(&a->ring.max_record, m->max_record, __ATOMIC_RELEASE);
  // seq_cst: everything above must be visible to other threads' sections, and before `pending` is
  // taken
  __atomic_store_n(&a->ring.slots, slots, __ATOMIC_SEQ_CST);
  weft_children_allow_slots(a, h->slot_count - 1);
}

// Copies the descriptions that the channel has and the ring set lacks. Under the lock.
static void copy_descriptions(struct weft_ring_header* h, const struct weft_channel* c) {
  const uint64_t used = h->descriptions_used;
  if (used >= c->descriptions_used || h->descriptions_size == 0) return;
  memcpy((uint8_t*)h + h->descriptions_offset + used, c->descriptions + used,
         c->descriptions_used - used);
  // release: the entries' bytes before the length that covers them
  __atomic_store_n(&h->descriptions_used, c->descriptions_used, __ATOMIC_RELEASE);
}

// The events of a process without a ring set are in no count. The name tells the reader that there
// is such a process.
static void keep_name(uint32_t channel, uint64_t instance) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  if (a->instance != 0) return;
  a->instance = instance;
  weft_doorbell_keep_name(instance, weft_channels[channel].id);
}

// Takes a kept name back, because there is a ring set after all. If the name was reported
// meanwhile, it stays counted; the ring set has another name.
static void take_name_back(uint32_t channel) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  if (a->instance != 0) weft_doorbell_take_name_back(a->instance);
  a->instance = 0;
}

// If no descriptor is free even for the last try, the pool counts as out of reach.
static struct weft_ring_shape take_memory(struct making* m, uint32_t rseq_slots) {
  const struct weft_channel* c = &weft_channels[m->channel];
  struct weft_ring_shape shape = weft_ring_memory_take(c, rseq_slots, &m->is_full);
  if (!m->is_full || !m->is_last_try) return shape;
  if (m->has_own_descriptors) weft_helper_close_copies();
  shape = weft_ring_memory_take(c, rseq_slots, &m->is_full);
  if (m->is_full) shape = weft_ring_memory_unpooled(c);
  m->is_full = false;
  return shape;
}

static void make_in_helper(void* arg) {
  struct making* m = arg;
  int fd = -1;
  // Without rseq all threads use the atomic slot.
  const bool sections = weft_process.slot_id_offset != 0 || weft_process.own_rseq;
  const struct weft_channel* c = &weft_channels[m->channel];
  const uint32_t slots_for_rseq = sections && !m->only_if_it_records ? c->slots_for_rseq : 0;

  struct weft_ring_shape shape = take_memory(m, slots_for_rseq);
  if (m->is_full || (m->only_if_it_records && shape.subbuf_shift == 0)) return;
  lay_out(&m->header, m->channel, shape);
  m->memory = make_memory(m, &fd);
  if (m->memory == NULL && !m->is_full && shape.rseq_slots != 0) {
    shape.rseq_slots = 0;  // RLIMIT_AS, perhaps: one slot is better than none
    lay_out(&m->header, m->channel, shape);
    m->memory = make_memory(m, &fd);
  }
  if (m->memory == NULL) {
    close_if_open(m->socket);
    return;
  }
  m->max_record = weft_ring_memory_max_record(c, &shape);

  struct weft_slot* slots = (struct weft_slot*)(m->memory + m->header.slots_offset);
  for (uint32_t i = 0; i < m->header.slot_count; ++i) slots[i].head = WEFT_HEAD_INITIAL;
  // An agent that looks right now finds no ring set, or a whole one.
  m->header.magic = 0;
  memcpy(m->memory, &m->header, sizeof(m->header));
  m->header.magic = WEFT_RING_MAGIC;
  // Copies the descriptions before another thread, which has its event's id already, can find the
  // ring.
  copy_descriptions((struct weft_ring_header*)m->memory, c);
  // release: everything above
  __atomic_store_n((uint32_t*)m->memory, WEFT_RING_MAGIC, __ATOMIC_RELEASE);
  take_name_back(m->channel);
  weft_doorbell_ring(m->socket, fd, &m->header);
  weft_syscall(__NR_close, fd);
  weft_clock_learn_offset();  // there is room for a descriptor now
  if (m->loaded != NULL) weft_loaded_objects_gather(m->loaded);
}

struct weft_writer_slots* weft_ring_set_slots(uint32_t channel) {
  struct weft_channel* c = &weft_channels[channel];
  if (c->slots == NULL) {
    c->slots_for_rseq = weft_process.slot_count;
    c->slots =
        weft_allocate_wiped_on_fork(sizeof(struct weft_writer_slots) +
                                    (c->slots_for_rseq + 1) * sizeof(struct weft_writer_slot));
  }
  return c->slots;
}

// Runs in a helper thread, or in this thread if there can be no helper.
static void make_apart(struct making* m) {
  m->is_last_try = true;
  m->has_own_descriptors = true;
  if (weft_helper_thread_run(make_in_helper, m)) return;
  m->has_own_descriptors = false;
  make_in_helper(m);
}

static bool make_ring(uint32_t channel, struct weft_loaded_objects* loaded) {
  if (weft_ring_set_slots(channel) == NULL) return false;
  struct making m = {.channel = channel, .socket = -EMFILE, .loaded = loaded};
  m.only_if_it_records = weft_anchor->channels[channel].ring.slots != NULL;
  if (weft_is_threaded()) {
    make_apart(&m);
  } else {
    make_in_helper(&m);
    if (m.is_full) make_apart(&m);
  }
  if (m.memory == NULL) {
    if (!m.only_if_it_records) keep_name(channel, m.header.instance);
    return false;
  }

  publish(channel, &m);
  weft_ring_set_count_pending(channel);
  return true;
}

void weft_ring_set_count_pending(uint32_t channel) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  // relaxed: counters; exchanged and added whole
  const uint64_t pending = __atomic_exchange_n(&a->pending, 0, __ATOMIC_RELAXED);
  if (pending != 0) {
    // relaxed: as above
    struct weft_slot* slot = weft_atomic_slot(&a->ring);
    __atomic_fetch_add(&slot->discarded[WEFT_DISCARD_MEMORY], pending, __ATOMIC_RELAXED);
  }
}

bool weft_ring_set_make(uint32_t channel) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  uint64_t mask;
  // relaxed: a hint; decided again under the lock
  if (__atomic_load_n(&a->refused, __ATOMIC_RELAXED) || weft_process.no_clock ||
      weft_cycles() < a->retry_after) {
    return false;
  }
  if (!weft_seccomp_may_call() || !weft_lock(&mask)) return false;
  const struct weft_channel* c = &weft_channels[channel];
  struct weft_loaded_objects* loaded = NULL;
  bool made = false;
  // relaxed: stored under the lock
  const bool records =
      a->ring.slots != NULL && __atomic_load_n(&a->ring.max_record, __ATOMIC_RELAXED) != 0;
  if (!records && !a->refused) {
    if (!is_wanted(c)) {
      a->refused = 1;
    } else {
      if ((c->flags & WEFT_CHANNEL_STATEDUMP) != 0) loaded = weft_loaded_objects_new();
      made = make_ring(channel, loaded);
      if (!made || a->ring.max_record == 0) a->retry_after = weft_cycles() + WEFT_ABOUT_A_SECOND;
    }
  }
  weft_unlock(mask);
  if (loaded != NULL) {
    if (made && weft_ring_set_made != NULL) weft_ring_set_made(channel, loaded);
    weft_loaded_objects_free(loaded);
  }
  return a->ring.slots != NULL;
}

void weft_ring_set_describe(uint32_t channel) {
  const struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  if (a->ring.slots != NULL) copy_descriptions(a->header, &weft_channels[channel]);
}

void weft_ring_set_withdraw(struct weft_anchor_channel* a) {
  weft_children_allow_slots(a, 0);
  // release: nothing of a next channel is seen with this one's memory
  __atomic_store_n(&a->ring.slots, NULL, __ATOMIC_RELEASE);
}

void weft_ring_set_forget(uint32_t channel) {
  struct weft_anchor_channel* a = &weft_anchor->channels[channel];
  weft_ring_set_withdraw(a);
  a->pending_since = 0;
  a->refused = 0;
  a->retry_after = 0;
  a->instance = 0;
  a->ring.max_record = 0;
}
