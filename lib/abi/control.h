/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The control area tells the processes of one container which events are on. It is a file (or, if
 * the agent came later than the pod, memory that the library made). Only the agent writes it, with
 * pwrite; every process maps it read-only. It survives fork and is never cleared.
 * docs/formats/control.md has an example.
 *
 *   +---------------+ 0
 *   | header        |
 *   +---------------+ words_offset
 *   | enable words  |  WEFT_CONTROL_WORDS of u32, indexed by weft_name_hash("provider:event")
 *   +---------------+ arena_offset
 *   | arena         |  rule sets, appended; `rules` in the header names the one in force
 *   +---------------+ total_size
 *
 * If an enable word is 0, no event of this hash is recorded. Otherwise an event may be recorded,
 * and the word is the generation that changed it last. A process that sees a value it has not
 * decided on yet reads the rule set in force, decides for that event, and remembers (value,
 * decision).
 *
 * The agent [A] publishes a generation g. It is never 0, and higher than all generations that were
 * published whole. A generation whose publication broke off may be used again with other rules, so
 * a process identifies its copy by the checksum, too.
 *   A1  the rule set's bytes into unused arena
 *   A2  header.rules = its offset
 *   A3  every word that the old or the new rules may concern = g, or 0 where none matches any more
 * The process [P]:
 *   P1  reads the word
 *   P2  reads header.rules
 *   P3  copies the rule set, checks bounds and checksum, uses the copy. If the check fails (the
 *       agent is writing, or reused the arena) it decides "off" for this event, only until the next
 *       call. If the decision before was "on", the event is counted as discarded.
 * A rule set is never changed in place while it can be in force; when the arena is used up, the
 * agent starts at its beginning again: the checksum tells a process that was too slow.
 *
 * If there is no file, a process makes such an area at its start, in memory that it maps shared, so
 * that its fork children have it too: a sealed memfd `weft-ctl`, or, if it can make no memfd,
 * anonymous shared memory. slot_count and clock are 0 in it until an agent that came later finds it
 * in /proc/PID/maps [A0: writes both, once it has the file lock, then publishes as above]. The
 * process copies both with every rule set.
 *
 * Extension rules as in ring.h.
 */
#ifndef WEFT_LIB_ABI_CONTROL_H_
#define WEFT_LIB_ABI_CONTROL_H_

#include "ring.h"

#define WEFT_CONTROL_MAGIC 0x4c544357u /* "WCTL" */
#define WEFT_CONTROL_MAJOR 1u
#define WEFT_CONTROL_MINOR 0u
#define WEFT_CONTROL_WORDS 16384u
#define WEFT_CONTROL_ARENA_BYTES (4u * 1024u * 1024u)
/* The offsets of this version; a process reads them in the header. */
#define WEFT_CONTROL_WORDS_OFFSET 4096u
#define WEFT_CONTROL_ARENA_OFFSET (WEFT_CONTROL_WORDS_OFFSET + 4u * WEFT_CONTROL_WORDS)
#define WEFT_CONTROL_TOTAL_BYTES (WEFT_CONTROL_ARENA_OFFSET + WEFT_CONTROL_ARENA_BYTES)

#define WEFT_MAX_CHANNELS 16u /* in force at once in one container */
#define WEFT_MAX_RULES 1024u
#define WEFT_MAX_RULESET_BYTES (512u * 1024u)
#define WEFT_MAX_CONTEXTS 32u /* of one channel */
#define WEFT_MAX_TRACKED_IDS 256u

struct weft_control_header {
  uint32_t magic;
  uint16_t major;
  uint16_t minor;
  uint32_t header_size;
  uint32_t features; /* 0 */
  uint64_t total_size;
  uint64_t words_offset;
  uint64_t arena_offset;
  uint64_t arena_size;
  uint32_t word_count; /* WEFT_CONTROL_WORDS */
  uint32_t slot_count; /* slots that a ring set shall have, without the atomic one; 0: see above */
  uint32_t clock;      /* enum weft_clock_id; 0: likewise */
  uint32_t reserved0;
  uint64_t rules; /* offset of the rule set in force, 0: none */
  uint64_t reserved[8];
};
WEFT_ABI_ASSERT(sizeof(struct weft_control_header) == 136, "control header layout");

/* All offsets in a rule set are from its own start; all tables are aligned to 8. */
struct weft_ruleset {
  uint32_t magic;    /* WEFT_CONTROL_MAGIC */
  uint32_t size;     /* bytes, this header included */
  uint64_t checksum; /* FNV-1a 64 of all bytes behind this field */
  uint32_t generation;
  uint32_t channel_count;
  uint32_t channels_offset; /* struct weft_channel_spec[channel_count] */
  uint32_t rule_count;
  uint32_t rules_offset; /* struct weft_rule[rule_count] */
  uint32_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_ruleset) == 40, "rule set layout");

enum weft_channel_flag {
  WEFT_CHANNEL_STATEDUMP = 1 << 0,     /* record the process's loaded objects at its first event */
  WEFT_CHANNEL_LARGE_RECORDS = 1 << 1, /* the reader takes records of up to WEFT_RECORD_MAX_BYTES */
  WEFT_CHANNEL_FUNCTIONS = 1 << 2,     /* functions are hooked for it: hooks.h */
};

struct weft_channel_spec {
  uint64_t id; /* never used for another channel of this control area */
  uint32_t mode;
  uint32_t subbuf_shift;
  uint32_t subbufs_shift; /* log2 of sub-buffers per slot */
  uint32_t flags;
  uint32_t context_count;
  uint32_t contexts_offset; /* struct weft_context_spec[context_count], see context.h */
  uint32_t vpid_count;      /* trackers: 0 all, else only these */
  uint32_t vpids_offset;    /* u32[vpid_count] */
  uint32_t vuid_count;
  uint32_t vuids_offset;
  uint64_t memory_budget; /* bytes for all rings of the container, a multiple of a page; 0: any */
  uint64_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_channel_spec) == 64, "channel layout");

/* An event is recorded in `channel` if any rule of that channel matches it. */
struct weft_rule {
  uint32_t channel;     /* index */
  int32_t loglevel_min; /* both included; LTTng's scale, 0 emergency to 14 debug */
  int32_t loglevel_max;
  uint32_t pattern_offset; /* NUL-terminated glob over "provider:event" */
  uint32_t exclusion_count;
  uint32_t exclusions_offset; /* u32 offsets of NUL-terminated globs */
  uint32_t filter_offset;     /* a program of lib/abi/filter.h, 0: none */
  uint32_t filter_size;
  uint64_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_rule) == 40, "rule layout");

/* Returns the index of an enable word: FNV-1a, 32 bits, folded. */
static inline uint32_t weft_name_hash(const char* name) {
  uint32_t h = 2166136261u;
  for (; *name != 0; ++name) h = (h ^ (uint8_t)*name) * 16777619u;
  return (h ^ (h >> 14) ^ (h >> 28)) % WEFT_CONTROL_WORDS;
}

/* FNV-1a, 64 bits: the checksum of rule sets. */
static inline uint64_t weft_fnv1a64(const void* bytes, uint64_t size) {
  const uint8_t* p = (const uint8_t*)bytes;
  uint64_t h = 14695981039346656037ull;
  for (uint64_t i = 0; i < size; ++i) h = (h ^ p[i]) * 1099511628211ull;
  return h;
}

/*
 * The memory of rings is charged to the container. The pool, a FIFO `$WEFT_CONTAINER.mem` beside
 * the control file, has one byte for each unit of memory that ring sets of the container may still
 * use; the agent holds it open, fills it, and puts back what a ring set that is gone had. A process
 * that makes a ring set of a channel with a memory_budget
 *   M1  opens the pool for reading, and asks how many bytes are in it (FIONREAD)
 *   M2  chooses the largest shape within half of that, at most the channel's (docs/formats/ring.md)
 *   M3  reads as many bytes as weft_memory_units says; if it gets fewer, its ring set is smaller
 * If not even the smallest ring fits, the ring set has no room for descriptions and takes no
 * records: it counts them as discarded (memory). If the pool cannot be opened or no agent holds it
 * (end of file), a ring set has one slot, and at most the budget divided by WEFT_MEMORY_UNPOOLED,
 * or the least that a ring takes.
 */
#define WEFT_MEMORY_POOL_SUFFIX ".mem"
#define WEFT_MEMORY_MIN_UNIT_SHIFT 12u
#define WEFT_MEMORY_MAX_UNITS 4096u /* in a pool: bytes that a pipe holds in one page */
#define WEFT_MEMORY_UNPOOLED 64u

/* Returns log2 of the bytes of memory that one byte in the pool of such a budget means. */
static inline uint32_t weft_memory_unit_shift(uint64_t budget) {
  uint32_t shift = WEFT_MEMORY_MIN_UNIT_SHIFT;
  while (shift < 63 && budget >> shift > WEFT_MEMORY_MAX_UNITS) ++shift;
  return shift;
}

/* Returns the number of units that so many bytes of memory take, rounded up. */
static inline uint64_t weft_memory_units(uint64_t budget, uint64_t bytes) {
  const uint32_t shift = weft_memory_unit_shift(budget);
  return (bytes + (1ull << shift) - 1) >> shift;
}

/*
 * The doorbell: SOCK_SEQPACKET `agent.sock` in the folder where the library looks for weft. A
 * process sends one message with the ring set's descriptor, without waiting, and closes.
 *
 * If this fails (too many callers, too many descriptors in flight), the process writes the ring
 * set's name, a message of kind WEFT_DOORBELL_MISSING, into the FIFO `agent.names` beside the
 * socket: one write, so that it is whole. Names wait there, whatever the agent does. If even this
 * fails (no descriptor is free, the FIFO is full), the process writes the name into memory that it
 * shares with its forks. The next of these processes that has a descriptor writes the names that
 * are there, and so does each of them that ends by exit. A name may arrive more than once, and
 * before or after the agent has found the ring set by itself.
 */
#define WEFT_DOORBELL_NAME "agent.sock"
#define WEFT_NAMES_NAME "agent.names"
#define WEFT_DOORBELL_MAGIC 0x4c4c4257u /* "WBLL" */

enum weft_doorbell_kind {
  WEFT_DOORBELL_RING = 1,    /* SCM_RIGHTS: one ring set */
  WEFT_DOORBELL_MISSING = 2, /* in the FIFO: a ring set that could not be sent */
};

struct weft_doorbell {
  uint32_t magic;
  uint32_t kind;
  /* The name of the ring set: the instance in its header. */
  uint64_t instance;
  uint64_t channel_id;
  uint64_t reserved; /* 0 */
};
WEFT_ABI_ASSERT(sizeof(struct weft_doorbell) == 32, "doorbell layout");

#define WEFT_RING_MEMFD_NAME "weft-ring"
#define WEFT_CONTROL_MEMFD_NAME "weft-ctl"

#endif /* WEFT_LIB_ABI_CONTROL_H_ */
