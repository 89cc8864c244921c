// SPDX-License-Identifier: Apache-2.0
//
// The orders that lib/abi/ring.h and control.h rely on, on a machine as weak as arm64: one memory
// that all see the same way, and threads that execute their instructions in any order which the
// named orders allow. Each T_... is one small program with two sides; what is left out in a
// variant M_... must be found.
//
// An instruction runs once, as soon as the instructions that must come before it have run. release:
// runs after everything before it. acquire: runs before everything behind it. A store never runs
// before a load that decides whether the store happens at all. All other instructions may be
// exchanged.

#define STEP(name, condition, action) :: atomic { !name && (condition) -> name = 1; action }
#define ALWAYS 1

bit left_done, right_done;

#if defined(T_COMMIT)
// W4 comes before W5; head (R1) comes before the copy (R2).
bit payload, head;
#ifdef M_HEAD_STORE_PLAIN
#define W5_AFTER ALWAYS
#else
#define W5_AFTER w4              // release
#endif
#ifdef M_HEAD_LOAD_PLAIN
#define R2_AFTER ALWAYS
#else
#define R2_AFTER r1              // acquire
#endif
active proctype Left() {
  bit w4, w5;
  do
  STEP(w4, ALWAYS, payload = 1)
  STEP(w5, W5_AFTER, head = 1)
  :: w4 && w5 -> break
  od;
  left_done = 1
}
active proctype Right() {
  bit r1, r2, h, p;
  do
  STEP(r1, ALWAYS, h = head)
  STEP(r2, R2_AFTER, p = payload)
  :: r1 && r2 -> break
  od;
  assert(!h || p);
  right_done = 1
}

#elif defined(T_FRONTIER)
// S2 comes before the first store into the old sub-buffer (S4, W4); the copy (R2) comes before
// frontier (R3).
bit frontier, overwritten;
#ifdef M_FRONTIER_RELEASE_STORE
#define S4_AFTER ALWAYS          // a release store orders what is before it, not what is behind it
#else
#define S4_AFTER s2              // store, then a fence
#endif
#ifdef M_FRONTIER_LOAD_PLAIN
#define R3_AFTER ALWAYS
#else
#define R3_AFTER r2              // fence, then the load
#endif
active proctype Left() {
  bit s2, s4;
  do
  STEP(s2, ALWAYS, frontier = 1)
  STEP(s4, S4_AFTER, overwritten = 1)
  :: s2 && s4 -> break
  od;
  left_done = 1
}
active proctype Right() {
  bit r2, r3, f, o;
  do
  STEP(r2, ALWAYS, o = overwritten)
  STEP(r3, R3_AFTER, f = frontier)
  :: r2 && r3 -> break
  od;
  assert(!o || f);
  right_done = 1
}

#elif defined(T_TAIL)
// The copy (R2) comes before tail (R5); tail (S1) decides whether anything is stored into the old
// place.
bit tail, overwritten;
#ifdef M_TAIL_STORE_PLAIN
#define R5_AFTER ALWAYS
#else
#define R5_AFTER r2              // release
#endif
active proctype Left() {
  bit r2, r5, o;
  do
  STEP(r2, ALWAYS, o = overwritten)
  STEP(r5, R5_AFTER, tail = 1)
  :: r2 && r5 -> break
  od;
  assert(!o);
  left_done = 1
}
active proctype Right() {
  bit s1, s4, t;
  do
  STEP(s1, ALWAYS, t = tail)
  STEP(s4, s1, overwritten = t)
  :: s1 && s4 -> break
  od;
  right_done = 1
}

#elif defined(T_CLOSE)
// The atomic slot. Writer: lock, closed (W1), head (W5), unlock. Closer: closed, lock, head. The
// lock's exchange is a load (acquire) and a store that others may see later than the load of closed.
bit lock, closed, head, read;
#ifdef WRITER_FENCE
#define W1_AFTER (taken && stored)
#else
#define W1_AFTER taken
#endif
#ifdef CLOSER_MEMBARRIER
// The barrier returns at a point of the writer at which everything before is done and nothing
// behind.
#define PREFIX (done == 0 || done == 1 || done == 3 || done == 7 || done == 15 || done == 31)
#else
#define PREFIX ALWAYS
#endif
byte done;
active proctype Left() {
  bit taken, stored, w1, w5, unlocked, c;
  do
  STEP(taken, ALWAYS, assert(!lock); done = done + 1)
  STEP(stored, taken, lock = 1; done = done + 2)
  STEP(w1, W1_AFTER, c = closed; done = done + 4)
  STEP(w5, w1, head = (c -> head : 1); done = done + 8; assert(c || !read))
  STEP(unlocked, stored && w1 && w5, lock = 0; done = done + 16)
  :: unlocked -> break
  od;
  left_done = 1
}
active proctype Right() {
  closed = 1;
  atomic { PREFIX };
  atomic { !lock };
  read = 1;
  right_done = 1
}

#elif defined(T_PUBLISH)
// A1, A2, A3 run in this order, and so do P1, P2, P3. A process that sees the new word and the old
// rules would remember the old decision for the new generation.
bit bytes, rules, word;
#ifdef M_AGENT_WITHOUT_FENCES
#define A2_AFTER ALWAYS
#define A3_AFTER ALWAYS
#else
#define A2_AFTER a1
#define A3_AFTER a2
#endif
#ifdef M_WORD_LOAD_PLAIN
#define P2_AFTER ALWAYS
#else
#define P2_AFTER p1              // acquire
#endif
active proctype Left() {
  bit a1, a2, a3;
  do
  STEP(a1, ALWAYS, bytes = 1)
  STEP(a2, A2_AFTER, rules = 1)
  STEP(a3, A3_AFTER, word = 1)
  :: a1 && a2 && a3 -> break
  od;
  left_done = 1
}
active proctype Right() {
  bit p1, p2, p3, w, r, b;
  do
  STEP(p1, ALWAYS, w = word)
  STEP(p2, P2_AFTER, r = rules)
  STEP(p3, p2, b = bytes)
  :: p1 && p2 && p3 -> break
  od;
  assert(!w || r);
  assert(!r || b);
  right_done = 1
}
#endif

active proctype NothingHangs() {
  bit reader_done;
  timeout -> reader_done = left_done && right_done; assert(reader_done)
}
