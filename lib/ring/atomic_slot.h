/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The atomic slot: steps W, S and D of lib/abi/ring.h for threads that have no rseq (old kernel,
 * musl, a seccomp filter, too many aborts). One per ring set, same format and same guarantees,
 * slower: a lock makes its owner the only writer.
 *
 * Invariants
 *  1. Only the owner of `lock` stores to the slot's ring and head. It never makes a system call and
 *     never calls out while it owns the lock, so a living owner leaves it in bounded time.
 *  2. A signal handler that interrupts the owner finds its own thread in `lock`: its event is
 *     discarded as NESTED. No thread waits for itself.
 *  3. Waiting is bounded: after WEFT_ATOMIC_SPINS looks, `wait` gives the CPU to the owner, which
 *     may have lost it, and tells when the wait was long enough. Then the event is discarded as
 *     CONTENDED. An owner that was waited for in vain (dead, or it left by siglongjmp) is
 *     remembered, and no thread waits for it again. A waiter that saw the slot's head move had bad
 *     luck, and remembers no owner.
 *  4. discarded[] is counted by atomic additions, with or without the lock, unless the slot is
 *     closed: a thread that does not own the lock looks at `closed` right before. The barrier of a
 *     close waits for threads between that look and the addition, as for sections.
 * Owners are named by a word that is unique per running thread (its thread pointer).
 *
 * It uses atomic builtins only, so that ThreadSanitizer sees all of it.
 */
#ifndef WEFT_LIB_RING_ATOMIC_SLOT_H_
#define WEFT_LIB_RING_ATOMIC_SLOT_H_

#include "writer.h"

/* Some microseconds: longer than an owner that has a CPU needs for a record of usual size. */
#define WEFT_ATOMIC_SPINS 100

static inline void weft_spin_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static inline void weft_atomic_discard(struct weft_slot* slot, enum weft_discard_reason reason) {
  /* relaxed: a counter, nothing is published by it */
  __atomic_fetch_add(&slot->discarded[reason], 1, __ATOMIC_RELAXED);
}

/* D without the lock. CLOSED: the event is not counted, as if it were off. */
static inline enum weft_write_result weft_atomic_discard_unless_closed(
    struct weft_slot* slot, enum weft_discard_reason reason) {
  /* acquire: as in W1 */
  if (__atomic_load_n(&slot->closed, __ATOMIC_ACQUIRE)) return WEFT_WRITE_CLOSED;
  weft_atomic_discard(slot, reason);
  return WEFT_WRITE_FULL;
}

/* S. The caller owns the lock. Returns false if no sub-buffer is free. */
static inline int weft_atomic_switch(const struct weft_writer_ring* ring, struct weft_slot* slot,
                                     uint8_t* base, uint64_t* head) {
  const uint32_t offset = (uint32_t)*head;
  const struct weft_subbuf_header* current =
      (const struct weft_subbuf_header*)(base + (offset & ~ring->subbuf_mask));
  const uint32_t next_offset =
      ((offset & ~ring->subbuf_mask) + ring->subbuf_mask + 1) & ring->slot_mask;
  struct weft_subbuf_header* next = (struct weft_subbuf_header*)(base + next_offset);
  const int64_t needed = (int64_t)(current->sequence + 2 - ring->subbufs);

  if (needed > 0) {
    const uint64_t limit = (uint64_t)needed << ring->subbuf_shift;
    if (ring->mode == WEFT_RING_DISCARD) {
      /* acquire: the reader's copy is done before the tail that allows to overwrite (R5) */
      if (__atomic_load_n(&slot->tail, __ATOMIC_ACQUIRE) < limit) return 0;
    } else {
      __atomic_store_n(&slot->frontier, limit, __ATOMIC_RELAXED);
      /* release fence: no store into the old sub-buffer is seen before the frontier (R3) */
      __atomic_thread_fence(__ATOMIC_RELEASE);
    }
  }
  const uint64_t records_before = current->records_before + (*head >> 32);
  const uint64_t sequence = current->sequence + 1;
  *(uint64_t*)(base + offset) = 0;
  next->sequence = sequence;
  next->records_before = records_before;
  next->reserved[0] = 0;
  next->reserved[1] = 0;
  *head = (uint64_t)next_offset + WEFT_HEAD_INITIAL;
  /* release: pad and header before the head that leads there (S5) */
  __atomic_store_n(&slot->head, *head, __ATOMIC_RELEASE);
  return 1;
}

static inline void weft_atomic_copy(uint8_t* to, const struct weft_record_parts* parts) {
  for (uint64_t i = 0; i < parts->piece_count; ++i) {
    __builtin_memcpy(to, parts->pieces[i].data, parts->pieces[i].size);
    to += parts->pieces[i].size;
  }
}

/* W under the lock. `now` reads the channel's clock without a system call that could block. */
static inline enum weft_discard_reason weft_atomic_write_locked(
    const struct weft_writer_ring* ring, struct weft_slot* slot,
    const struct weft_record_parts* parts, uint32_t cpu, uint64_t (*now)(void)) {
  uint8_t* base = ring->slots->slot[ring->atomic_slot].data;
  /* relaxed: only owners of the lock store it */
  uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_RELAXED);
  if (((uint32_t)head & ring->subbuf_mask) + (uint32_t)parts->increment > ring->subbuf_mask &&
      !weft_atomic_switch(ring, slot, base, &head)) {
    return WEFT_DISCARD_FULL;
  }
  uint64_t time = now();
  /* The clock's read may be executed before the lock was had: never step back behind the last
     one. */
  if (time < slot->last_time) time = slot->last_time;
  slot->last_time = time;
  uint64_t* record = (uint64_t*)(base + (uint32_t)head);
  record[0] = parts->word0 | ((uint64_t)cpu << 48);
  record[1] = time;
  weft_atomic_copy((uint8_t*)(record + 2), parts);
  /* release: the commit; header and payload before it (W5) */
  __atomic_store_n(&slot->head, head + parts->increment, __ATOMIC_RELEASE);
  return WEFT_DISCARD_REASONS;
}

/* One step of a wait for the lock, counted from 0: gives the CPU away. False: it was long enough.
 * `owner` is what the lock says. */
typedef int (*weft_atomic_wait)(struct weft_slot* slot, uint64_t owner, uint32_t step);

/* Remembers an owner that does not get on, so that no thread waits for it. */
static __attribute__((noinline, unused)) enum weft_discard_reason weft_atomic_give_up(
    struct weft_writer_ring* ring, const struct weft_slot* slot, uint64_t owner, uint64_t head) {
  /* relaxed: hints; an owner that leaves the lock after all is forgotten by the next one */
  if (head == __atomic_load_n(&slot->head, __ATOMIC_RELAXED))
    __atomic_store_n(&ring->stuck_owner, owner, __ATOMIC_RELAXED);
  return WEFT_DISCARD_CONTENDED;
}

/* DISCARD_REASONS: the caller owns the lock; else why it does not. */
static inline enum weft_discard_reason weft_atomic_lock(struct weft_writer_ring* ring,
                                                        struct weft_slot* slot, uint64_t self,
                                                        weft_atomic_wait wait) {
  /* relaxed: a hint, whether an owner gets on */
  const uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_RELAXED);

  for (uint32_t looks = 0;; ++looks) {
    /* relaxed: the exchange decides. A look alone leaves the cache line with the owner, which
       writes it. */
    uint64_t owner = __atomic_load_n(&slot->lock, __ATOMIC_RELAXED);
    /* acquire: pairs with the release of the unlock; sees the previous owner's head */
    if (owner == 0 && __atomic_compare_exchange_n(&slot->lock, &owner, self, 0, __ATOMIC_ACQUIRE,
                                                  __ATOMIC_RELAXED)) {
      return WEFT_DISCARD_REASONS;
    }
    if (owner == self) return WEFT_DISCARD_NESTED;
    /* relaxed: a hint, see above */
    int goes_on = owner != __atomic_load_n(&ring->stuck_owner, __ATOMIC_RELAXED);
    if (looks < WEFT_ATOMIC_SPINS) {
      weft_spin_pause();
    } else if (goes_on) {
      goes_on = wait(slot, owner, looks - WEFT_ATOMIC_SPINS);
    }
    if (__builtin_expect(!goes_on, 0)) return weft_atomic_give_up(ring, slot, owner, head);
  }
}

/* Records one event or counts it as discarded. `self` is not 0. `wait` is called while another
 * thread owns the lock. Returns COMMITTED, FULL (discarded, whatever the reason) or CLOSED
 * (neither). */
static inline enum weft_write_result weft_atomic_write(struct weft_writer_ring* ring, uint64_t self,
                                                       const struct weft_record_parts* parts,
                                                       uint32_t cpu, uint64_t (*now)(void),
                                                       weft_atomic_wait wait) {
  struct weft_slot* slot = weft_atomic_slot(ring);
  enum weft_discard_reason reason = weft_atomic_lock(ring, slot, self, wait);

  if (reason != WEFT_DISCARD_REASONS) return weft_atomic_discard_unless_closed(slot, reason);
  /* relaxed: as above */
  if (__builtin_expect(__atomic_load_n(&ring->stuck_owner, __ATOMIC_RELAXED) != 0, 0))
    __atomic_store_n(&ring->stuck_owner, 0, __ATOMIC_RELAXED);
  /* acquire: closed is set before the reader's last look at head */
  const uint32_t closed = __atomic_load_n(&slot->closed, __ATOMIC_ACQUIRE);
  if (!closed) reason = weft_atomic_write_locked(ring, slot, parts, cpu, now);
  if (reason != WEFT_DISCARD_REASONS) weft_atomic_discard(slot, reason);
  /* release: everything above before the next owner */
  __atomic_store_n(&slot->lock, 0, __ATOMIC_RELEASE);
  if (closed) return WEFT_WRITE_CLOSED;
  return reason == WEFT_DISCARD_REASONS ? WEFT_WRITE_COMMITTED : WEFT_WRITE_FULL;
}

#endif /* WEFT_LIB_RING_ATOMIC_SLOT_H_ */
