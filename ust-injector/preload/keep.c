// SPDX-License-Identifier: Apache-2.0
// See keep.h. Blocks hang on slots, of two kinds.
//
//   own     Belongs to one thread, by its thread pointer, from its first long value on. Only that
//           thread and its signal handlers look at `busy`, so no instruction with a lock is needed.
//           Such an instruction would wait until all earlier writes to the ring have left the CPU's
//           store buffer.
//   shared  For users without a slot of their own: handlers in the middle of a probe, threads after
//           the first ones, threads that share a thread pointer, and large blocks. A thread owns it
//           from the exchange of `busy` to the store of 0.
//
// If no slot is free, a block is mapped for one event and unmapped after it. Expressions that leave
// their probe by longjmp() keep such blocks for good: WEFT_KEEP_LONE limits what they take.
//
// Slots are ordinary private memory, so a fork child that goes on in the middle of a probe finds
// its copies. Slots that other threads of the parent were using at that moment stay busy in the
// child.
#include "ust-injector/preload/keep.h"

#include <linux/mman.h>

#include "ust-injector/preload/sys.h"

#define WEFT_KEEP_OWN_SLOTS 64u
#define WEFT_KEEP_OWN_TRIES 8u /* a thread tries this many of these slots */
#define WEFT_KEEP_SHARED_SLOTS 16u
#define WEFT_KEEP_LARGE_SLOTS 4u      /* the first shared ones: only they take large blocks */
#define WEFT_KEEP_BLOCK (64ull << 10) /* a block's least size, which most events' values fit into */
#define WEFT_KEEP_LARGEST (2ull << 20) /* a block that is larger does not stay in its slot */
#define WEFT_KEEP_LONE (256ull << 20)  /* bytes of blocks without a slot, but for one block */

struct slot {
  uintptr_t owner;  // thread pointer; 0: of no thread yet, or a shared slot
  uint32_t busy;    // the block belongs to an event
  uint32_t reserved;
  struct weft_kept*
      block;  // NULL: none was mapped yet. Only the thread that made the slot busy looks at it
} __attribute__((aligned(64)));

// The head of a block, one cache line.
struct weft_kept {
  struct weft_kept* next;  // in the event's list; the newest comes first
  struct slot* slot;       // NULL: it is unmapped after the event
  uint64_t size;           // with this head
  uint64_t used;           // likewise
  uint64_t total;          // bytes of the blocks behind it
  uint64_t reserved[3];
};

static struct slot own[WEFT_KEEP_OWN_SLOTS];
static struct slot shared[WEFT_KEEP_SHARED_SLOTS];
static uint64_t lone_bytes;  // of blocks without a slot

static struct weft_kept* map_block(uint64_t size) {
  const long map =
      weft_syscall(__NR_mmap, 0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return NULL;
  struct weft_kept* block = (struct weft_kept*)map;
  block->size = size;
  return block;
}

static void unmap_block(struct weft_kept* block) { weft_syscall(__NR_munmap, block, block->size); }

static void unmap_lone_block(struct weft_kept* block) {
  __atomic_fetch_sub(&lone_bytes, block->size, __ATOMIC_RELAXED);  // relaxed: only counts
  unmap_block(block);
}

// Maps a block for one event. Returns NULL if there are too many, or no memory.
static struct weft_kept* map_lone_block(uint64_t size) {
  // relaxed: only counts
  const uint64_t before = __atomic_fetch_add(&lone_bytes, size, __ATOMIC_RELAXED);
  struct weft_kept* block = before == 0 || before + size <= WEFT_KEEP_LONE ? map_block(size) : NULL;
  if (block == NULL) {
    __atomic_fetch_sub(&lone_bytes, size, __ATOMIC_RELAXED);  // relaxed: as above
  } else {
    block->slot = NULL;
  }
  return block;
}

// Returns the next power of two; for large sizes, whole pages.
static uint64_t block_size(uint64_t size) {
  uint64_t rounded = WEFT_KEEP_BLOCK;
  if (size > WEFT_KEEP_LARGEST) return (size + 4095) & ~4095ull;
  while (rounded < size) rounded *= 2;
  return rounded;
}

static void leave(struct slot* slot) {
  // release: we are done with the block
  __atomic_store_n(&slot->busy, 0, __ATOMIC_RELEASE);
}

// Returns the busy slot's block, if it has or now gets one of that size; else leaves the slot and
// returns NULL.
static struct weft_kept* block_of(struct slot* slot, uint64_t size) {
  if (slot->block == NULL || slot->block->size < size) {
    struct weft_kept* larger = map_block(block_size(size));
    if (larger == NULL) {
      leave(slot);
      return NULL;
    }
    if (slot->block != NULL) unmap_block(slot->block);
    slot->block = larger;
  }
  slot->block->slot = slot;
  return slot->block;
}

// Makes the calling thread's own slot busy. NULL: it has none, or is in the middle of using it.
static struct slot* take_own(void) {
  const uintptr_t thread = weft_thread_pointer();
  const uintptr_t hash = thread >> 12 ^ thread >> 23;
  for (uint32_t i = 0; i < WEFT_KEEP_OWN_TRIES; ++i) {
    struct slot* slot = &own[(hash + i) % WEFT_KEEP_OWN_SLOTS];
    // relaxed, both: only the owner uses what is in the slot
    uintptr_t owner = __atomic_load_n(&slot->owner, __ATOMIC_RELAXED);
    if (owner == 0 && __atomic_compare_exchange_n(&slot->owner, &owner, thread, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      owner = thread;
    }
    if (owner != thread) continue;
    // relaxed, both: a handler that comes in between has left the slot when it returns
    if (__atomic_load_n(&slot->busy, __ATOMIC_RELAXED) != 0) return NULL;
    __atomic_store_n(&slot->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return slot;
  }
  return NULL;
}

static struct slot* take_shared(uint32_t count) {
  const uintptr_t hash = weft_thread_pointer() >> 12;
  for (uint32_t i = 0; i < count; ++i) {
    struct slot* slot = &shared[(hash + i) % count];
    uint32_t free = 0;
    // acquire: what the slot's last owner did
    if (__atomic_compare_exchange_n(&slot->busy, &free, 1, false, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
      return slot;
    }
  }
  return NULL;
}

static struct weft_kept* find_block(uint64_t size, bool may_own) {
  struct slot* slot = NULL;
  if (size <= WEFT_KEEP_BLOCK) {
    if (may_own) slot = take_own();
    if (slot == NULL) slot = take_shared(WEFT_KEEP_SHARED_SLOTS);
  } else if (size <= WEFT_KEEP_LARGEST) {
    slot = take_shared(WEFT_KEEP_LARGE_SLOTS);
  }
  if (slot != NULL) return block_of(slot, size);
  return map_lone_block(block_size(size));
}

void* weft_keep_bytes(struct weft_kept** kept, uint64_t size, bool may_own) {
  struct weft_kept* block = *kept;
  size = (size + 15) & ~15ull;
  if (block == NULL || size > block->size - block->used) {
    block = find_block(sizeof(*block) + size, may_own);
    if (block == NULL) return NULL;
    block->next = *kept;
    block->used = sizeof(*block);
    block->total = weft_kept_bytes(*kept);
    *kept = block;
  }
  void* bytes = (uint8_t*)block + block->used;
  block->used += size;
  return bytes;
}

uint64_t weft_kept_bytes(const struct weft_kept* kept) {
  return kept != NULL ? kept->total + kept->used : 0;
}

void weft_release(struct weft_kept* kept) {
  while (kept != NULL) {
    struct weft_kept* next = kept->next;
    if (kept->slot == NULL) {
      unmap_lone_block(kept);
    } else {
      leave(kept->slot);
    }
    kept = next;
  }
}

void weft_keep_reserve(void) {
  struct weft_kept* block = NULL;
  if (weft_keep_bytes(&block, 16, true) != NULL) weft_release(block);
}
