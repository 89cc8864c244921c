// SPDX-License-Identifier: Apache-2.0
//
// The atomic slot of lib/abi/ring.h: threads without rseq, under the slot's lock; a signal handler on
// thread 0 (same thread pointer, so the same owner); SIGKILL at any step; closing; the reader. The
// slot's ring is one sub-buffer here: switching is the same under the lock as in ring.pml.
//
// The lock's word is 0 or its owner's identity. A writer that finds itself there is a handler that
// interrupted its own thread: its event is discarded as nested. A writer that finds another owner
// gives up after SPINS looks: its event is discarded as contended. If head did not move meanwhile,
// it remembers the owner, and a writer that finds that name in the lock does not wait. Counts of
// discarded events are atomic additions. A writer that counts without the lock looks at closed
// right before.

#ifndef EVENTS0
#define EVENTS0 2
#endif
#ifndef EVENTS1
#define EVENTS1 1
#endif
#ifndef EVENTS2
#define EVENTS2 0
#endif
#ifndef HANDLER
#define HANDLER 1   // events recorded by signal handlers on thread 0
#endif
#ifndef SPINS
#define SPINS 1
#endif
#ifndef ROOM
#define ROOM 3      // records that fit
#endif

#define HANDLER_ID 3
#define EVENTS (EVENTS0 + EVENTS1 + EVENTS2 + HANDLER)

// The shared memory.
byte lock, head, last_time, discarded;
byte words[2 * ROOM];
bit closed;
byte stuck;          // private to the process

// The machine.
bit in_handler, killed;
byte counting;       // writers between their look at closed and the addition
byte writers = 1 + (EVENTS1 > 0) + (EVENTS2 > 0) + (HANDLER > 0);

// Ghosts.
byte committed_id[ROOM + 1];
byte committed, nested, contended, no_room, seen;
bit stale[4];
bit final, closing_done, reader_done;

#define DISCARDS (nested + contended + no_room)

#ifdef SAME_POINTER  // a child in shared memory that runs on its parent's thread pointer
#define SELF 1
#else
#define SELF (me == HANDLER_ID -> 1 : me + 1)
#endif

#define MAY_RUN (!killed && (me != 0 || !in_handler))
#define STEP(action) atomic { MAY_RUN -> action }

// D. Without the lock it looks at closed first; the closer's barrier waits for writers that did so.
inline count_discard_unless_closed(reason) {
#ifdef M_DISCARD_AFTER_CLOSE
  count_discard(reason);
#else
  STEP(d = closed; counting = counting + 1 - closed);
  if
  :: d == 0 ->
     count_discard(reason);
     STEP(counting--)
  :: else
  fi;
#endif
}

inline count_discard(reason) {
#ifdef M_DISCARD_NOT_ATOMIC
  STEP(d = discarded);
  STEP(discarded = d + 1; reason++);
#else
  STEP(discarded++; reason++; assert(!final));
#endif
}

proctype Writer(byte me; byte events) {
  byte id, spins, position, time_floor, owner, d, before;

event:
  atomic {
    MAY_RUN ->
    if
    :: me == HANDLER_ID -> in_handler = 1
    :: else
    fi;
    id = me * 8 + events; events--; spins = 0;
    before = head;       // a hint, whether an owner gets on
    stale[me] = 0        // the clock: its read may be executed as early as here
  };
#ifdef M_CLOSED_BEFORE_LOCK
  STEP(d = closed);
  if
  :: d -> goto done
  :: else
  fi;
#endif

try:
#if defined(M_LOCK_NOT_ATOMIC)
  STEP(owner = lock);
  if
  :: owner == 0 -> STEP(lock = SELF)
  :: else
  fi;
#else
  STEP(owner = lock; lock = (owner == 0 -> SELF : owner));
#endif
  if
  :: owner == 0 -> goto owned
#if defined(M_OWNER_ENTERS_AGAIN)
  :: owner == SELF -> goto owned
#elif !defined(M_OWNER_NOT_NAMED)
  :: owner == SELF -> count_discard_unless_closed(nested); goto done
#endif
#ifdef M_OWNER_NOT_NAMED
  :: owner != 0 -> atomic { lock == 0 }; goto try
#else
  :: owner != 0 && owner != SELF ->
     spins++;
     if
     :: spins > SPINS || owner == stuck ->
        STEP(stuck = (head == before -> owner : stuck));
        count_discard_unless_closed(contended);
        goto done
     :: else -> goto try
     fi
#endif
  fi;

owned:
  STEP(stuck = 0; before = 0);
#ifndef M_CLOSED_BEFORE_LOCK
  STEP(d = closed);                                                                          // W1
  if
  :: d -> goto unlock
  :: else
  fi;
#endif
  STEP(position = head);
  if
  :: position >= 2 * ROOM -> count_discard(no_room); goto unlock                                // W2
  :: else
  fi;
#ifndef M_TIME_NOT_CLAMPED
  STEP(time_floor = last_time);                                                              // W3
#endif
  STEP(last_time = time_floor);
#ifdef LONGJMP
  // A handler that interrupted the owner here leaves by siglongjmp; the lock is never given back.
  if
  :: me == 0 -> goto done
  :: skip
  fi;
#endif
#ifdef M_UNLOCK_BEFORE_HEAD
  STEP(lock = 0);
#endif
#ifdef M_COMMIT_BEFORE_PAYLOAD
  STEP(head = position + 2; committed_id[committed] = id; committed++);
#endif
  STEP(words[position] = id);                                                                // W4
  STEP(words[position + 1] = id);
#ifndef M_COMMIT_BEFORE_PAYLOAD
  atomic {                                                                                   // W5
    MAY_RUN ->
    head = position + 2;
    assert(!final);
    assert(!stale[me] || time_floor == committed);
    committed_id[committed] = id; committed++; last_time = committed;  // the same time, see ring.pml
    stale[0] = 1; stale[1] = 1; stale[2] = 1; stale[3] = 1;
    assert(head == 2 * committed)
  };
#endif
unlock:
#ifdef M_OWNER_ENTERS_AGAIN
  STEP(lock = (me == HANDLER_ID && in_handler && owner != 0 -> lock : 0));
#else
  STEP(lock = 0);
#endif

done:
  atomic {
    !killed -> id = 0; spins = 0; position = 0; time_floor = 0; owner = 0; d = 0;
    before = 0;
    if
    :: me == HANDLER_ID -> in_handler = 0
    :: else
    fi;
    if
    :: events == 0 -> writers--
    :: else -> goto event
    fi
  }
}

#ifdef KILL
active proctype Killer() {
  killed = 1
}
#endif

#ifdef CLOSE
// Sets closed to 1, then waits until no thread has the lock. A stuck lock is waited for until the
// process ends.
active proctype Closer() {
  closed = 1;
#ifndef M_CLOSE_DOES_NOT_WAIT
  atomic { lock == 0 || killed || writers == 0 };
#endif
#ifndef M_NO_BARRIER
  atomic { counting == 0 || killed || writers == 0 };
#endif
  closing_done = 1
}
#endif

// With CLOSE_IS_FINAL the last reading is made as soon as the slot is closed; otherwise, when the
// process has ended.
#ifdef CLOSE_IS_FINAL
#define OVER (killed || writers == 0 || closing_done)
#else
#define OVER (killed || writers == 0)
#endif

#if REACH == 1
#define REACHED (nested == 1 && contended == 1 && committed == 2)
#elif REACH == 2
#define REACHED (killed && lock != 0 && contended == 1)
#elif REACH == 3
#define REACHED (no_room == 1 && committed == ROOM)
#endif

active proctype Reader() {
  byte h, a;
  bit last;
  do
  :: atomic { head > 2 * seen || OVER ->
              if
              :: OVER -> last = 1; final = 1
              :: else
              fi };
     h = head;
     do
     :: 2 * seen < h ->
        a = words[2 * seen];
        atomic {
          assert(a == words[2 * seen + 1]);
          assert(a == committed_id[seen]);
          a = 0; seen++
        }
     :: else -> break
     od;
     if
     :: last -> break
     :: else
     fi
  od;
  assert(seen == committed);
  assert(discarded == DISCARDS);
  reader_done = 1
#ifdef REACH
  ; assert(!REACHED)
#endif
}

active proctype NothingHangs() {
  timeout -> assert(reader_done)
}

init {
  atomic {
    run Writer(0, EVENTS0);
    if
    :: EVENTS1 > 0 -> run Writer(1, EVENTS1)
    :: else
    fi;
    if
    :: EVENTS2 > 0 -> run Writer(2, EVENTS2)
    :: else
    fi;
    if
    :: HANDLER > 0 -> run Writer(HANDLER_ID, HANDLER)
    :: else
    fi
  }
}
