// SPDX-License-Identifier: Apache-2.0
// See ring_memory.h. A ring set keeps the channel's sub-buffers as long as threads with rseq can
// use it, since events remember their size (decide.c). In smaller ones all threads use the atomic
// slot.
#include "ust-injector/preload/ring_memory.h"

#include <errno.h>
#include <fcntl.h>

#include "ust-injector/preload/channel.h"
#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"

#define WEFT_SMALL_SUBBUFS_SHIFT 2u /* of a ring whose sub-buffers are smaller than the channel's */

static uint64_t budget_of(const struct weft_channel* c) {
  return (uint64_t)c->memory_pages << WEFT_MEMORY_MIN_UNIT_SHIFT;
}

static uint64_t bytes_of(const struct weft_ring_shape* s) {
  const uint64_t slots = (uint64_t)s->rseq_slots + 1;
  return weft_ring_set_bytes(WEFT_RING_SLOTS_OFFSET + slots * sizeof(struct weft_slot),
                             WEFT_DESCRIPTIONS_BYTES, (uint32_t)slots,
                             s->subbuf_shift + s->subbufs_shift);
}

// Returns the largest shape of one slot within `bytes`.
static struct weft_ring_shape fit_one_slot(const struct weft_channel* c, uint64_t bytes) {
  struct weft_ring_shape s = {0, c->subbuf_shift, c->subbufs_shift};
  for (; s.subbuf_shift >= WEFT_RING_MIN_SUBBUF_SHIFT; --s.subbuf_shift) {
    if (bytes_of(&s) <= bytes) return s;
    if (s.subbufs_shift > WEFT_SMALL_SUBBUFS_SHIFT) s.subbufs_shift = WEFT_SMALL_SUBBUFS_SHIFT;
    if (bytes_of(&s) <= bytes) return s;
  }
  s.subbuf_shift = WEFT_RING_MIN_SUBBUF_SHIFT;
  s.subbufs_shift = WEFT_RING_MIN_SUBBUFS_SHIFT;
  return bytes_of(&s) <= bytes ? s : (struct weft_ring_shape){0};
}

// Returns the largest shape within `bytes`. It gives up sub-buffers first, then slots, then the
// slots' size.
static struct weft_ring_shape fit(const struct weft_channel* c, uint32_t rseq_slots,
                                  uint64_t bytes) {
  struct weft_ring_shape s = {rseq_slots, c->subbuf_shift, c->subbufs_shift};
  if (rseq_slots != 0) {
    for (; s.subbufs_shift >= WEFT_RING_MIN_SUBBUFS_SHIFT; --s.subbufs_shift) {
      if (bytes_of(&s) <= bytes) return s;
    }
    s.subbufs_shift = WEFT_RING_MIN_SUBBUFS_SHIFT;
    for (; s.rseq_slots != 0; s.rseq_slots /= 2) {
      if (bytes_of(&s) <= bytes) return s;
    }
  }
  return fit_one_slot(c, bytes);
}

struct weft_ring_shape weft_ring_memory_unpooled(const struct weft_channel* c) {
  const struct weft_ring_shape least = {0, WEFT_RING_MIN_SUBBUF_SHIFT, WEFT_RING_MIN_SUBBUFS_SHIFT};
  const uint64_t part = budget_of(c) / WEFT_MEMORY_UNPOOLED;
  return fit_one_slot(c, part > bytes_of(&least) ? part : bytes_of(&least));
}

// Units in the pool; negative: no agent holds it, or a filter is in the way. A unit that had to be
// read to find out is in *taken.
static long look_into(long pool, uint64_t* taken) {
  int units = 0;
  char one;
  if (weft_optional(WEFT_CALL_FIONREAD, __NR_ioctl, pool, WEFT_FIONREAD, &units) != 0) return -1;
  if (units > 0) return units;
  const long n = weft_optional(WEFT_CALL_READ, __NR_read, pool, &one, 1);
  if (n == 0 || (n < 0 && n != -EAGAIN)) return -1;  // 0: end of file, no writer
  *taken = n > 0;
  return n > 0;
}

static uint64_t read_units(long pool, uint64_t units) {
  char bytes[256];
  uint64_t got = 0;
  while (got < units) {
    const uint64_t want = units - got < sizeof(bytes) ? units - got : sizeof(bytes);
    const long n = weft_optional(WEFT_CALL_READ, __NR_read, pool, bytes, want);
    if (n <= 0) break;
    got += (uint64_t)n;
  }
  return got;
}

// Memory that another process took meanwhile makes the shape smaller. Units that are then too many
// come back into the pool when the agent compares it with the ring sets that it knows.
static struct weft_ring_shape take_from(long pool, const struct weft_channel* c,
                                        uint32_t rseq_slots) {
  const uint32_t shift = weft_memory_unit_shift(budget_of(c));
  uint64_t taken = 0;
  const long units = look_into(pool, &taken);
  if (units < 0) return weft_ring_memory_unpooled(c);
  const uint64_t left = (uint64_t)units << shift;
  struct weft_ring_shape s = fit(c, rseq_slots, left / 2);
  if (s.subbuf_shift == 0) s = fit(c, rseq_slots, left);
  if (s.subbuf_shift == 0) return s;
  const uint64_t wanted = weft_memory_units(budget_of(c), bytes_of(&s));
  if (taken < wanted) taken += read_units(pool, wanted - taken);
  return taken >= wanted ? s : fit(c, rseq_slots, taken << shift);
}

struct weft_ring_shape weft_ring_memory_take(const struct weft_channel* c, uint32_t rseq_slots,
                                             bool* is_full) {
  *is_full = false;
  if (c->memory_pages == 0)
    return (struct weft_ring_shape){rseq_slots, c->subbuf_shift, c->subbufs_shift};
  // Without O_NONBLOCK the call would wait for an agent.
  const long pool = weft_optional(WEFT_CALL_OPEN_POOL, __NR_openat, AT_FDCWD,
                                  weft_process.memory_pool, WEFT_POOL_FLAGS, 0);
  *is_full = pool == -EMFILE;
  if (*is_full) return (struct weft_ring_shape){0};
  if (pool < 0) return weft_ring_memory_unpooled(c);
  const struct weft_ring_shape shape = take_from(pool, c, rseq_slots);
  weft_syscall(__NR_close, pool);
  return shape;
}

uint32_t weft_ring_memory_max_record(const struct weft_channel* c,
                                     const struct weft_ring_shape* s) {
  if (s->subbuf_shift == 0) return 0;
  const uint32_t quarter = 1u << (s->subbuf_shift - 2);
  return quarter < c->max_record ? quarter : c->max_record;
}
