// SPDX-License-Identifier: Apache-2.0
// The calls of hooked functions whose end is recorded (hooks.h). Each has a stub and its data.
//
// A call is free or taken. Free calls lie in lists, not in a stack: a thread may switch to another
// stack inside a function (coroutines). A call is lost when its function is left without a return
// (longjmp, an exception, the end of the thread). When none is free, those are collected whose
// return address was overwritten, or whose stack is gone.
//
// Invariants
//  1. The owner of a free call is its list, or the thread that took it from there and did not
//     publish it yet. The owner of a published call (`turn` is odd) is the thread that runs its
//     function, or the one that collects it.
//  2. While a published call's function runs, and until `turn` is even again, its slot leads to its
//     stub (weft_call_is_left). So a call that its own thread ends is not collected at once: the
//     slot changes only after `turn` did.
//  3. A cache holds up to WEFT_CACHED_CALLS free calls in one word, and belongs to a slot of rseq:
//     one thread at a time uses it, in a restartable sequence. Its calls are in no list.
//
// Any thread, signal handlers, fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOK_CALLS_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOK_CALLS_H_

#include "lib/abi/hooks.h"

#if defined(__x86_64__)

#include "lib/ring/writer_x86_64.h"
#include "ust-injector/preload/hook_values.h"
#include "ust-injector/preload/hooks_asm.h"
#include "ust-injector/preload/process.h"

#define WEFT_CALL_NUMBER_BITS 12
#define WEFT_CACHED_CALLS 5
#define WEFT_CALL_CACHES 128

_Static_assert(WEFT_HOOK_STUBS == 1u << WEFT_CALL_NUMBER_BITS, "a number of a call fits");
_Static_assert(WEFT_CACHED_CALLS* WEFT_CALL_NUMBER_BITS <= 64, "a cache is one word");

// A call in one of its turns: its number, and above it the turn. 0: none.
typedef uint64_t weft_call_id;

// The place of a call among those of its thread (hook_depth.h).
struct weft_open_call {
  weft_call_id newest;  // of the thread, before this call
  weft_call_id around;  // the call around this one; 0: none
  uint16_t depth;       // number of calls around it
  // The call whose function jumped to this one's at its end: this one returns to its stub. 0: none.
  uint32_t jumped_from;
};

struct weft_hook_call {
  struct weft_hook* hook;  // these three are struct weft_hook_call_head
  uint64_t* slot;          // where the return address lies
  uint64_t turn;           // odd: published, the function runs. Each change adds 1
  uint64_t next;           // free: the next one of its list; 0: none
  struct weft_open_call open;
  uint64_t begin;  // time of the entry, if the whole call is recorded
  uint32_t argument_bytes;
  uint64_t arguments[WEFT_HOOK_MAX_VALUES];  // of the entry, if an event of the end has them
  struct weft_hook_pieces pieces;            // if the hook reads memory
  uint64_t unwound;                          // the turn in which it was unwound, which was reported
} __attribute__((aligned(64)));
#define WEFT_IN_HEAD(member) \
  (offsetof(struct weft_hook_call, member) == offsetof(struct weft_hook_call_head, member))
_Static_assert(WEFT_IN_HEAD(hook) && WEFT_IN_HEAD(slot) && WEFT_IN_HEAD(turn), "lib/abi/hooks.h");

// What a stub and unwinders read lies at the stub's own distance from the begin of this table.
extern struct weft_hook_stub_data weft_hook_stub_data[WEFT_HOOK_STUBS]
    __attribute__((visibility("hidden")));
// Indexed by the call's number; NULL before the first call. Pages that no call uses take no memory.
extern struct weft_hook_call* weft_hook_calls __attribute__((visibility("hidden")));

// Free calls of a slot of rseq, WEFT_CALL_NUMBER_BITS each, the last one lowest; 0: none. Each on a
// cache line.
struct weft_call_cache {
  uint64_t numbers;
  uint64_t reserved[7];
};
extern struct weft_call_cache weft_call_caches[WEFT_CALL_CACHES]
    __attribute__((visibility("hidden")));

// Makes the memory of all calls; false: there is none. It is made at the first call, since an agent
// may hook functions at any time. Under a filter that was there at exec it is no new call: ld.so
// and libc make it, too.
bool weft_calls_make(void) __attribute__((visibility("hidden")));
// Takes a call from the thread's list. Returns its number; 0: there is none. No vector registers.
uint32_t weft_call_take_listed(void);
// Takes a call from anywhere. Returns its number; 0: all are taken. May make system calls.
uint32_t weft_call_take(void);
// Gives a call that is not published back to the thread's list. No vector registers.
void weft_call_give_back(uint32_t number);
// Was the function of a published call left without a return? Makes a system call.
bool weft_call_is_lost(uint32_t number);

static inline uint64_t weft_stub_of(uint32_t number) {
  return (uint64_t)(uintptr_t)weft_hook_stubs + (uint64_t)number * WEFT_HOOK_STUB_BYTES;
}

// Returns the address that the stub's call returns to.
static inline uint64_t weft_stub_return(uint32_t number) {
  return weft_stub_of(number) + WEFT_HOOK_STUB_RETURN;
}

// Tells an agent where calls are.
void weft_calls_tell(struct weft_hook_places* places);

static inline weft_call_id weft_call_id_of(uint32_t number, uint64_t turn) {
  return turn << WEFT_CALL_NUMBER_BITS | number;
}

// Returns the number of the stub to which an address returns; 0: to none.
static inline uint32_t weft_call_returned_to(uint64_t address) {
  const uint64_t distance = address - weft_stub_return(0);
  return __builtin_expect(distance < WEFT_HOOK_STUBS * WEFT_HOOK_STUB_BYTES, 0) &&
                 distance % WEFT_HOOK_STUB_BYTES == 0
             ? (uint32_t)(distance / WEFT_HOOK_STUB_BYTES)
             : 0;
}

// Returns the address to which a call returns.
static inline uint64_t weft_call_returns_to(const struct weft_open_call* open, uint32_t number) {
  return __builtin_expect(open->jumped_from != 0, 0) ? weft_stub_return(open->jumped_from)
                                                     : weft_hook_stub_data[number].caller;
}

// Is a call left, whose slot has this content, which is not the address of its own stub? No vector
// registers.
bool weft_call_is_left_by(uint64_t content, const uint64_t* slot, uint32_t number);

// Was the function left without a return? While it runs, its slot leads to its stub, also through
// the stubs of functions that were jumped to at the end of another one. A later call at the same
// place of the stack, after an exception, say, leads elsewhere. False also if another thread just
// changes one of these calls.
static inline bool weft_call_is_left(uint64_t content, const uint64_t* slot, uint32_t number) {
  return __builtin_expect(content != weft_stub_return(number), 0) &&
         weft_call_is_left_by(content, slot, number);
}

static inline uint32_t weft_call_number(weft_call_id id) {
  return (uint32_t)id & (WEFT_HOOK_STUBS - 1);
}

// Returns where the calling thread's rseq area is from its thread pointer, if its slot's number may
// be relied on here; 0: it may not.
static inline intptr_t weft_call_rseq(void) {
  return weft_process.slot_id_offset == 0 || weft_ids_are_shared() ? 0 : weft_process.rseq_offset;
}

// The caches' section begins: rcx = the distance of the slot's cache, as for weft_write_words.
#define WEFT_CACHE_ENTER             \
  WEFT_RSEQ_DESCRIPTOR               \
  WEFT_RSEQ_START("%%fs:8(%[rseq])") \
  "movl %%fs:(%[id_at]), %%ecx\n\t"         \
  "cmpl $" WEFT_RSEQ_TEXT(WEFT_CALL_CACHES) \
  ", %%ecx\n\t"                             \
  "jae %l[failed]\n\t"                      \
  "cmpl $0, %%fs:4(%[rseq])\n\t"            \
  "jl %l[failed]\n\t"                       \
  "shll $6, %%ecx\n\t"

// Takes a call from the cache of the thread's slot; 0: there is none, or the thread was
// interrupted. `rseq`: weft_call_rseq, not 0.
static inline __attribute__((always_inline)) uint32_t weft_call_take_cached(intptr_t rseq) {
  uint64_t numbers, rest;
  __asm__ volatile goto(
      WEFT_CACHE_ENTER
      "movq (%[caches], %%rcx), %[numbers]\n\t"
      "movq %[numbers], %[rest]\n\t"
      "shrq $" WEFT_RSEQ_TEXT(WEFT_CALL_NUMBER_BITS) ", %[rest]\n\t"
      "movq %[rest], (%[caches], %%rcx)\n"
      "2:\n\t"
      WEFT_RSEQ_ABORT_TO("jmp %l[failed]\n\t")
      : [numbers] "=&r"(numbers), [rest] "=&r"(rest)
      : [rseq] "r"(rseq), [id_at] "r"(rseq + weft_process.slot_id_offset),
        [caches] "r"(weft_call_caches)
      : "rax", "rcx", "memory", "cc"
      : failed);
  return (uint32_t)numbers & (WEFT_HOOK_STUBS - 1);
failed:
  return 0;
}

// Puts a free call into the cache of the thread's slot. False: it is full, or the thread was
// interrupted.
static inline __attribute__((always_inline)) bool weft_call_cache(intptr_t rseq, uint32_t number) {
  uint64_t numbers;
  __asm__ volatile goto(
      WEFT_CACHE_ENTER
      "movq (%[caches], %%rcx), %[numbers]\n\t"
      "movq %[numbers], %%rax\n\t"
      "shrq $(64 - " WEFT_RSEQ_TEXT(WEFT_CALL_NUMBER_BITS) " - 4), %%rax\n\t"
      "jnz %l[failed]\n\t"
      "shlq $" WEFT_RSEQ_TEXT(WEFT_CALL_NUMBER_BITS) ", %[numbers]\n\t"
      "orq %[number], %[numbers]\n\t"
      "movq %[numbers], (%[caches], %%rcx)\n"
      "2:\n\t"
      WEFT_RSEQ_ABORT_TO("jmp %l[failed]\n\t")
      : [numbers] "=&r"(numbers)
      : [rseq] "r"(rseq), [id_at] "r"(rseq + weft_process.slot_id_offset),
        [caches] "r"(weft_call_caches), [number] "r"((uint64_t)number)
      : "rax", "rcx", "memory", "cc"
      : failed);
  return true;
failed:
  return false;
}

// Publishes a call that the thread took: `slot` is where its return address lies. Returns the stub
// to go to.
static inline const void* weft_call_publish(uint32_t number, struct weft_hook* hook, uint64_t* slot,
                                            struct weft_open_call* open) {
  struct weft_hook_call* call = &weft_hook_calls[number];
  open->jumped_from = weft_call_returned_to(*slot);
  weft_hook_stub_data[number].caller =
      open->jumped_from != 0 ? weft_hook_stub_data[open->jumped_from].caller : *slot;
  weft_hook_stub_data[number].calls = hook->resume;
  call->hook = hook;
  call->slot = slot;
  call->open = *open;
  // The stub's call writes the same; but a published call whose slot holds something else is lost.
  *slot = weft_stub_return(number);
  // release: all of it comes before
  __atomic_store_n(&call->turn, call->turn + 1, __ATOMIC_RELEASE);
  return (const void*)(uintptr_t)weft_stub_of(number);
}

// Ends the turn of a call of the thread's own.
static inline void weft_call_end_turn(uint32_t number) {
  // release: what was read of the call comes before
  __atomic_store_n(&weft_hook_calls[number].turn, weft_hook_calls[number].turn + 1,
                   __ATOMIC_RELEASE);
}

// Lets others take a call whose turn the thread ended.
static inline void weft_call_free(uint32_t number) {
  const intptr_t rseq = weft_call_rseq();
  if (rseq == 0 || !weft_call_cache(rseq, number)) weft_call_give_back(number);
}

// Ends a call of the thread's own, which is about to return (invariant 2).
static inline void weft_call_end(uint32_t number) {
  weft_call_end_turn(number);
  weft_call_free(number);
}

#endif

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOK_CALLS_H_
