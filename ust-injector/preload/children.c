// SPDX-License-Identifier: Apache-2.0
// See children.h.
#include "ust-injector/preload/children.h"

#include "lib/ring/atomic_slot.h"

#define WEFT_GATE_SPINS 100000

// Guards the number of running vfork children together with all slot counts. Without it a thread
// whose child is gone could put the counts back just after another thread took them away. Returns
// false if the gate did not open in bounded time: its holder was killed, or is the thread that this
// handler interrupted.
static bool enter(void) {
  for (int i = 0; i < WEFT_GATE_SPINS; ++i) {
    // acquire: sees the counts of the thread that left before
    if (!__atomic_exchange_n(&weft_anchor->gate, 1, __ATOMIC_ACQUIRE)) return true;
    weft_spin_pause();
  }
  return false;
}

static void leave(void) {
  // release: the counts, before the next one enters
  __atomic_store_n(&weft_anchor->gate, 0, __ATOMIC_RELEASE);
}

static void set_slots(struct weft_anchor_channel* c) {
  const bool safe = weft_process.vforked == 0 && !weft_process.shares_tls;
  // acquire: the slots before their number
  const uint32_t count = __atomic_load_n(&c->rseq_slots, __ATOMIC_ACQUIRE);
  // acquire: the table before it
  struct weft_writer_slots* slots = __atomic_load_n(&c->ring.slots, __ATOMIC_ACQUIRE);
  // seq_cst: in force before the child exists
  if (slots != NULL) __atomic_store_n(&slots->count, safe ? count : 0, __ATOMIC_SEQ_CST);
}

static void set_all_slots(void) {
  for (uint32_t i = 0; i < WEFT_MAX_CHANNELS; ++i) set_slots(&weft_anchor->channels[i]);
}

void weft_before_shared_child(void) {
  // seq_cst: a thread that publishes a ring set from now on sees it; see weft_children_allow_slots
  __atomic_store_n(&weft_process.shares_tls, 1, __ATOMIC_SEQ_CST);
  if (weft_anchor != NULL) set_all_slots();  // only ever to 0: needs no gate
}

void weft_children_allow_slots(struct weft_anchor_channel* channel, uint32_t count) {
  // release: the slots before their number, also where another thread sets it
  __atomic_store_n(&channel->rseq_slots, count, __ATOMIC_RELEASE);
  if (enter()) {
    set_slots(channel);
    leave();
  } else {
    weft_before_shared_child();
  }
  // seq_cst: the other side stores shares_tls, then the counts
  if (__atomic_load_n(&weft_process.shares_tls, __ATOMIC_SEQ_CST)) set_slots(channel);
}

static struct weft_slot* atomic_slot(uint32_t channel) {
  const struct weft_writer_ring* ring = &weft_anchor->channels[channel].ring;
  return ring->slots != NULL ? weft_atomic_slot(ring) : NULL;
}

uint64_t weft_before_vfork(void) {
  uint64_t locked = 0;
  if (weft_anchor == NULL) return 0;
  if (enter()) {
    ++weft_process.vforked;
    set_all_slots();
    leave();
  } else {
    weft_before_shared_child();
    locked = 1ull << 63;  // not counted
  }
  const uintptr_t self = weft_thread_pointer();
  for (uint32_t i = 0; i < WEFT_MAX_CHANNELS; ++i) {
    const struct weft_slot* slot = atomic_slot(i);
    // relaxed: only this thread stores its own name
    if (slot != NULL && __atomic_load_n(&slot->lock, __ATOMIC_RELAXED) == self) locked |= 1ull << i;
  }
  return locked;
}

void weft_after_vfork(long pid, uint64_t locked_before) {
  if (weft_anchor == NULL) return;
  const uint64_t self = weft_thread_pointer();
  for (uint32_t i = 0; pid > 0 && i < WEFT_MAX_CHANNELS; ++i) {
    struct weft_slot* slot = atomic_slot(i);
    uint64_t owner = self;
    if (slot != NULL && (locked_before >> i & 1) == 0) {
      // release: as the child's own unlock, had it lived; nothing it did not commit is visible
      __atomic_compare_exchange_n(&slot->lock, &owner, 0, false, __ATOMIC_RELEASE,
                                  __ATOMIC_RELAXED);
    }
  }
  uint32_t child = (uint32_t)pid;
  if (pid > 0) {
    // release: likewise
    __atomic_compare_exchange_n(&weft_anchor->lock, &child, 0, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
  }
  if (locked_before >> 63) return;
  if (enter()) {
    if (weft_process.vforked != 0) --weft_process.vforked;
    set_all_slots();
    leave();
  } else {
    weft_before_shared_child();
  }
}
