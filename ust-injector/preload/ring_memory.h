// SPDX-License-Identifier: Apache-2.0
// Decides how large a ring set may be: the container has a budget of memory for all its rings
// (lib/abi/control.h). On the slow path, under weft_lock; a helper thread may call it.
#ifndef WEFT_UST_INJECTOR_PRELOAD_RING_MEMORY_H_
#define WEFT_UST_INJECTOR_PRELOAD_RING_MEMORY_H_

#include <stdbool.h>
#include <stdint.h>

struct weft_channel;

struct weft_ring_shape {
  uint32_t rseq_slots;     // slots beside the atomic one
  uint32_t subbuf_shift;   // the channel's, wherever there are rseq_slots; 0: no memory for a ring
  uint32_t subbufs_shift;  // log2 of sub-buffers per slot
};

// Returns the largest shape of at most `rseq_slots` that the pool has memory for, and takes this
// memory out of the pool. `*is_full`: no descriptor was free, nothing was decided.
struct weft_ring_shape weft_ring_memory_take(const struct weft_channel* channel,
                                             uint32_t rseq_slots, bool* is_full);

// Returns the shape for a pool that tells nothing. It is small, since any number of processes may
// use it.
struct weft_ring_shape weft_ring_memory_unpooled(const struct weft_channel* channel);

// Returns the bytes of the largest record that a ring set of this shape takes; 0: it takes none.
uint32_t weft_ring_memory_max_record(const struct weft_channel* channel,
                                     const struct weft_ring_shape* shape);

#endif  // WEFT_UST_INJECTOR_PRELOAD_RING_MEMORY_H_
