// SPDX-License-Identifier: Apache-2.0
// Tells at how many open calls a hooked function is called (hooks.h). A call is open from its entry
// to its end, if its end is recorded.
//
// Each thread has the number of its newest open call, and each call that of the one around it. A
// call that was left without an end (longjmp, an exception) still is the newest one. It is
// recognised by the place of its return address, which lies below that of the next call, or holds
// another address. If that place is on another page than the next call's, it takes a system call
// to read it. A thread that runs on several stacks (coroutines) may see a depth that belongs to
// another of its stacks.
//
// Any thread, signal handlers, fork and vfork children.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOK_DEPTH_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOK_DEPTH_H_

#include <stdbool.h>
#include <stdint.h>

// A call in one of its turns: its number, and above it the turn. 0: none.
typedef uint64_t weft_call_id;

struct weft_open_call {
  weft_call_id newest;  // of the thread, before this call
  weft_call_id around;  // the call around this one; 0: none
  uint16_t depth;       // number of calls around it
};

// What the functions below need to know of a call; hooks.c answers.
struct weft_call_place {
  const uint64_t* slot;  // where its return address lies
  uint64_t stub;         // what it is
  weft_call_id around;
  uint16_t depth;
};
// Returns false if that call is not open any more.
bool weft_hook_find_call(weft_call_id id, struct weft_call_place* place)
    __attribute__((visibility("hidden")));
// Was the function of an open call left without an end?
bool weft_hook_is_left(weft_call_id id, const struct weft_call_place* place, bool is_readable)
    __attribute__((visibility("hidden")));

// Returns the place of a call whose return address lies in `slot`.
struct weft_open_call weft_depth_find(const uint64_t* slot);

// The call is the thread's newest one from now on.
void weft_depth_push(weft_call_id id);

// A call ends.
void weft_depth_pop(const struct weft_open_call* call);

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOK_DEPTH_H_
