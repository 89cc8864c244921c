// SPDX-License-Identifier: Apache-2.0
//
// The ring of lib/abi/ring.h: threads that share one slot under rseq, a signal handler, one reader
// that may die and come back, SIGKILL, and the closing of the slot. Run by models/run; the letters
// W, S, D, R are the steps of ring.h. README.md says what is shown, with which bounds, and what is
// not.
//
// rseq. `cur` is the thread that runs on the slot's concurrency id. A thread that finds another one
// in `cur` was preempted in the middle of its section and starts it again (STEP). Stores that it made
// stay. A handler runs only while its thread is `cur`, and its thread waits for it.
// SIGKILL. `killed` may be set between any two steps; no writer makes a step after it.
//
// Abstractions: a sub-buffer has WORDS words behind its header. A record is a header word and one
// or two payload words; each is stored and copied in a step of its own. A payload word looks like a
// record header, so that a reader that parses the wrong place finds something there. Positions are
// sequence * WORDS + offset.

#ifndef SUBBUFS
#define SUBBUFS 2
#endif
#ifndef WORDS
#define WORDS 3
#endif
#ifndef EVENTS0
#define EVENTS0 2   // events that each thread tries to record
#endif
#ifndef EVENTS1
#define EVENTS1 2
#endif
#ifndef EVENTS2
#define EVENTS2 0
#endif
#ifndef HANDLER
#define HANDLER 0   // events recorded by signal handlers on thread 0
#endif
#ifndef CRASHES
#define CRASHES 0   // deaths of the reader
#endif

#define HANDLER_ID 3   // a writer's number; threads are 0, 1, 2
#define NO_WRITER 7
#define THREADS (1 + (EVENTS1 > 0) + (EVENTS2 > 0))
#define EVENTS (EVENTS0 + EVENTS1 + EVENTS2 + HANDLER)
#define WORD(size, id) ((size) * 32 + (id))
#define SIZE_OF(word) ((word) / 32)
#define ID_OF(word) ((word) % 32)
#define SUB(position) ((position) / WORDS)
#define OFFSET(position) ((position) % WORDS)

// The shared memory.
byte head_position, head_count;    // one u64: always loaded and stored in one step
byte sequence[SUBBUFS], records_before[SUBBUFS];
byte words[SUBBUFS * WORDS];
byte frontier, tail;               // frontier as a sequence, tail as a position
byte discarded;
byte last_time;                    // how many commits are not later than the time that it holds
bit closed;

// The machine.
byte cur = 0;
bit in_handler, killed, barrier_done;
byte writers = THREADS + (HANDLER > 0);

// Ghosts: a record of what happened, for the assertions only.
byte committed_id[EVENTS + 1];     // by order of commit; 0 again when the reader has accounted for it
byte committed, discards, delivered, overwritten, accounted;
bit stale[4];                      // a commit came after this writer read the clock
bit reader_done;
bit final;                         // the reader has begun its last round

#ifdef M_SPACE_FOR_PAD
#define FITS(position, size) (OFFSET(position) + (size) <= WORDS)
#else
#define FITS(position, size) (OFFSET(position) + (size) < WORDS)
#endif

#ifdef M_CLOSED_NOT_CHECKED
#define CLOSED 0
#else
#define CLOSED closed
#endif

#ifdef M_DISCARD_AFTER_CLOSE
#define CLOSED_D 0
#else
#define CLOSED_D CLOSED
#endif

#ifdef M_SWITCH_AFTER_CLOSE
#define CLOSED_S 0
#else
#define CLOSED_S CLOSED
#endif

#ifdef M_CHILD_WITHOUT_RSEQ  // it runs on another CPU, with the id that it inherited
#define TAKE_CPU cur = (me == 1 -> cur : me)
#else
#define TAKE_CPU cur = me
#endif

#if defined(M_CHILD_WITHOUT_RSEQ)
#define RUNNING (cur == me || me == 1)
#elif defined(M_SIGNAL_DOES_NOT_ABORT)
#define RUNNING (cur == me || (me == 0 && cur == HANDLER_ID))
#else
#define RUNNING (cur == me)
#endif

#define MAY_RUN (!killed && (me != 0 || !in_handler))

#ifdef REACH
bit restarted_after_handler, restarted_after_close;
#define NOTE_RESTART                                                                       \
  restarted_after_handler = restarted_after_handler || (me == 0 && cur == HANDLER_ID);     \
  restarted_after_close = restarted_after_close || closed;
#else
#define NOTE_RESTART
#endif

// One step of a section that began at `start`.
#define STEP(action, start)                                               \
  if                                                                      \
  :: atomic { MAY_RUN && RUNNING -> action }                              \
  :: atomic { MAY_RUN && !RUNNING -> NOTE_RESTART TAKE_CPU; goto start }  \
  fi

inline read_clock() { stale[me] = 0 }

// W5, the commit. In the slot's own words: records_before + count is what was committed.
inline commit_record() {
  head_position = (position + size) % (SUBBUFS * WORDS);
  head_count = count + 1;
  assert(!final);
#ifndef TIMES_IGNORED
  assert(!stale[me] || time_floor == committed);  // times never go back
#endif
  committed_id[committed] = id;
  committed++;
#if defined(CLOCK_CLAMPED) && !defined(M_CLAMP_AFTER_COMMIT)
  last_time = committed;
#endif
  stale[0] = 1; stale[1] = 1; stale[2] = 1; stale[3] = 1;
  assert(records_before[SUB(head_position)] + head_count == committed)
}

#ifdef CLOCK_CLAMPED
#define CLAMP(action) STEP(action, w_start)
#else
#define CLAMP(action)
#endif

#ifdef CLOCK_COMPARED
#ifdef M_COMPARE_HEAD_ONLY
#define NOTHING_NEW(p, c, s) (head_position == p && head_count == c)
#else
#define NOTHING_NEW(p, c, s) (head_position == p && head_count == c && sequence[SUB(p)] == s)
#endif
#endif

proctype Writer(byte me; byte events) {
  byte id, size, position, count, next_sequence, before, next, time_floor, d;
#ifdef CLOCK_COMPARED
  byte old_position, old_count, old_sequence;
#endif

event:
  atomic {
    MAY_RUN && (me != HANDLER_ID || cur == 0 || writers == 1) ->
    if
    :: me == HANDLER_ID -> cur = HANDLER_ID; in_handler = 1
    :: else
    fi;
    id = me * 8 + events; size = 2; events--
  };
#ifdef TWO_SIZES
  if
  :: size = 3
  :: skip
  fi;
#endif

w_start:
#if defined(CLOCK_COMPARED)
  // Outside of the section: the sequence, then head, then the time; the section compares both.
  old_position = head_position;
  old_sequence = sequence[SUB(old_position)];
  atomic {
    MAY_RUN ->
    if
    :: SUB(head_position) != SUB(old_position) -> goto w_start
    :: else
    fi;
    old_position = head_position; old_count = head_count
  };
  atomic { MAY_RUN -> read_clock() };
#elif defined(CLOCK_CLAMPED) || defined(M_CLOCK_BEFORE_SECTION)
  atomic { MAY_RUN -> read_clock() };
w_section:
#endif
  atomic {                                                                                   // W1-W3
    MAY_RUN -> TAKE_CPU; position = head_position; count = head_count; time_floor = 255;
    if
    :: CLOSED -> goto done
    :: else
    fi;
#if defined(CLOCK_COMPARED)
    if
    :: NOTHING_NEW(old_position, old_count, old_sequence) -> skip
    :: else -> goto w_start
    fi;
#elif !defined(CLOCK_CLAMPED) && !defined(M_CLOCK_BEFORE_SECTION)
    read_clock();
#endif
    if
    :: FITS(position, size) -> skip
    :: else -> goto s_start
    fi
  };
#ifdef CLOCK_CLAMPED
  STEP(time_floor = last_time, w_section);
#ifndef M_CLAMP_AFTER_COMMIT
  STEP(last_time = committed, w_section);
#endif
#define W_START w_section
#elif defined(M_CLOCK_BEFORE_SECTION)
#define W_START w_section
#else
#define W_START w_start
#endif
#ifdef M_COMMIT_BEFORE_PAYLOAD
  STEP(words[position] = WORD(size, id), W_START);
  STEP(commit_record(), W_START);
  words[position + 1] = WORD(2, id);
  if
  :: size == 3 -> words[position + 2] = WORD(2, id)
  :: else
  fi;
  goto done;
#endif
  STEP(words[position] = WORD(size, id), W_START);                                           // W4
  STEP(words[position + 1] = WORD(2, id), W_START);
  if
  :: size == 3 -> STEP(words[position + 2] = WORD(2, id), W_START)
  :: else
  fi;
#ifdef M_HEAD_IN_HALVES
  STEP(head_position = position + size, W_START);
#endif
  STEP(commit_record(), W_START);                                                            // W5
#ifdef M_CLAMP_AFTER_COMMIT
  STEP(last_time = committed, done);
#endif
  goto done;

s_start:
  atomic {                                                                                   // S1
    MAY_RUN -> TAKE_CPU; position = head_position; count = head_count;
    if
    :: CLOSED_S -> goto done
    :: else
    fi;
    if
    :: FITS(position, size) -> goto w_start
    :: else
    fi;
    next_sequence = sequence[SUB(position)] + 1;
    before = records_before[SUB(position)] + count;
    next = (SUB(position) + 1) % SUBBUFS;
#if !defined(OVERWRITE) && !defined(M_TAIL_IGNORED)
    if
#ifdef M_TAIL_OFF_BY_ONE
    :: tail + WORDS < (next_sequence + 1 - SUBBUFS) * WORDS -> goto d_start
#else
    :: tail < (next_sequence + 1 - SUBBUFS) * WORDS -> goto d_start
#endif
    :: else
    fi
#endif
  };
#if defined(OVERWRITE) && !defined(M_FRONTIER_AFTER_STORE)
#ifdef M_FRONTIER_OFF_BY_ONE
  STEP(frontier = (next_sequence > SUBBUFS -> next_sequence - SUBBUFS : 0), s_start);
#else
  STEP(frontier = (next_sequence + 1 > SUBBUFS -> next_sequence + 1 - SUBBUFS : 0), s_start);// S2
#endif
#endif
#ifndef M_NO_PAD
  STEP(words[position] = 0, s_start);                                                        // S3
#endif
#ifdef M_HEADER_AFTER_HEAD
  STEP(head_position = next * WORDS; head_count = 0, s_start);
#endif
  STEP(sequence[next] = next_sequence, s_start);                                             // S4
#ifdef M_RECORDS_BEFORE_NOT_UPDATED
  STEP(records_before[next] = before - count, s_start);
#else
  STEP(records_before[next] = before, s_start);
#endif
#ifdef M_FRONTIER_AFTER_STORE
  STEP(frontier = (next_sequence + 1 > SUBBUFS -> next_sequence + 1 - SUBBUFS : 0), s_start);
#endif
  STEP(head_position = next * WORDS; head_count = 0; assert(!final);
       assert(records_before[next] == committed), s_start);                                  // S5
  goto w_start;

d_start:
  atomic {                                                                                   // D
    MAY_RUN -> TAKE_CPU;
    if
    :: CLOSED_D -> goto done
    :: else
    fi;
    d = discarded
  };
#ifdef M_DISCARD_WITHOUT_SECTION
  atomic { MAY_RUN -> discarded = d + 1; discards++; assert(!final) };
#else
  STEP(discarded = d + 1; discards++; assert(!final), d_start);
#endif

done:
  atomic {
    !killed -> id = 0; size = 0; position = 0; count = 0; next_sequence = 0; before = 0; next = 0;
    d = 0; time_floor = 0;
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
// After the barrier every thread that was in a section has left it or starts it again.
active proctype Closer() {
  closed = 1;
#ifndef M_BARRIER_DOES_NOT_ABORT
  cur = NO_WRITER;
#endif
  barrier_done = 1
}
#endif

// Situations that the bounds must allow (models/cases.py).
#if REACH == 1
#define REACHED (committed == 6)                       // every sub-buffer used three times
#elif REACH == 2
#define REACHED (discards == 2 && delivered == 3)
#elif REACH == 3
#define REACHED (overwritten == 3 && delivered == 2)   // all that can be overwritten
#elif REACH == 4
#define REACHED (overwritten == 1 && delivered == 4)
#elif REACH == 5                                       // killed in a switch, behind S2
#define REACHED (killed && frontier + SUBBUFS == sequence[SUB(head_position)] + 2)
#elif REACH == 6                                       // a handler recorded inside a record
#define REACHED (restarted_after_handler && committed == 2)
#elif REACH == 7                                       // a section ran again and saw closed
#define REACHED (restarted_after_close && committed == 0)
#endif

#define OVER (killed || writers == 0 || barrier_done)
#ifdef READ_AT_THE_END
#define NEWS 0
#else
#define NEWS (committed > accounted || SUB(head_position) != my_sequence % SUBBUFS)
#endif

active proctype Reader() {
  // The reader's position, and how many records lie before it: read or overwritten.
  byte my_sequence, my_offset, seen;
  bit entered;                                   // has seen the header of the sub-buffer
  byte saved_sequence, saved_offset, saved_seen; // the journal: written together with the records
  byte crashes = CRASHES;
  bit last;
  byte at, q, position, count, f, k, limit, id, size;
  byte copy[WORDS], copy_sequence, copy_before;

round:
  if
  :: atomic { NEWS || OVER ->
              if
              :: OVER -> last = 1; final = 1
              :: else
              fi }
#if CRASHES > 0
  :: atomic { crashes > 0 -> crashes--; goto crash }
#endif
  fi;

look:                                                                                        // R1
#ifdef LOOK_BY_INDEX
  // SlotReader::LookDiscard: the index of head's sub-buffer tells its sequence.
  atomic {
    position = head_position; count = head_count; at = SUB(position);
    q = my_sequence + (at + SUBBUFS - my_sequence % SUBBUFS) % SUBBUFS
  };
#elif defined(HEADER_ONCE_AFTER_HEAD)
  atomic { position = head_position; count = head_count; at = SUB(position) };
  q = sequence[at];
#else
  at = SUB(head_position);
  q = sequence[at];
  atomic { position = head_position; count = head_count };
#endif
  atomic {
#if !defined(LOOK_BY_INDEX) && !defined(HEADER_ONCE_AFTER_HEAD) && !defined(M_HEADER_ONCE_BEFORE_HEAD)
    if
    :: SUB(position) != at || sequence[at] != q -> goto look
    :: else
    fi;
#endif
    assert(my_sequence <= q);
    limit = (my_sequence < q -> WORDS : OFFSET(position));
    if
    :: my_sequence == q && my_offset == limit && entered ->
       assert(seen == committed || !last);
       goto rest
    :: else
    fi
  };

#ifdef M_FRONTIER_BEFORE_COPY
  f = frontier;
#endif
#ifdef M_TAIL_BEFORE_COPY
  tail = (my_sequence < q -> (my_sequence + 1) * WORDS : my_sequence * WORDS + limit);
#endif
  if                                                                                         // R2
  :: atomic { !entered -> copy_sequence = sequence[my_sequence % SUBBUFS]; k = my_offset };
     copy_before = records_before[my_sequence % SUBBUFS]
  :: atomic { entered -> k = my_offset }
  fi;
  do
  :: atomic { k < limit -> copy[k] = words[(my_sequence % SUBBUFS) * WORDS + k]; k++ }
  :: atomic { k >= limit -> break }
  od;

#ifdef M_FRONTIER_BEFORE_COPY
  skip;
#else
  f = frontier;                                                                              // R3
#endif
#ifdef M_TAIL_BEFORE_JOURNAL
  tail = (my_sequence < q -> (my_sequence + 1) * WORDS : my_sequence * WORDS + limit);
  if
  :: skip
  :: atomic { crashes > 0 -> crashes--; goto crash }
  fi;
#endif
  d_step {
    if
    :: my_sequence < f ->
       my_sequence = f; my_offset = 0; entered = 0
    :: else ->
       if                                                                                    // R4
       :: !entered ->
          assert(copy_sequence == my_sequence);
          assert(copy_before >= seen);
#ifdef OVERWRITE
          overwritten = overwritten + copy_before - seen;
#else
          assert(copy_before == seen);
#endif
          do
          :: seen < copy_before -> committed_id[seen] = 0; seen++
          :: else -> break
          od;
          if
          :: accounted < seen -> accounted = seen
          :: else
          fi;
          entered = 1
       :: else
       fi;
       k = my_offset;
       do
       :: k >= limit -> break
       :: k < limit && copy[k] == 0 -> assert(my_sequence < q); break
       :: k < limit && copy[k] != 0 ->
          id = ID_OF(copy[k]); size = SIZE_OF(copy[k]);
          assert(size >= 2 && k + size <= WORDS);
          assert(copy[k + 1] == WORD(2, id));
          assert(size == 2 || copy[k + (size - 1)] == WORD(2, id));     // nothing torn
          assert(committed_id[seen] == id);                             // nothing lost, in order
          assert(accounted == seen);                                    // nothing twice
          committed_id[seen] = 0;
          seen++; accounted++; delivered++;
          k = k + size
       od;
       if
       :: my_sequence < q -> my_sequence++; my_offset = 0; entered = 0
       :: else -> my_offset = limit
       fi;
       saved_sequence = my_sequence; saved_offset = my_offset; saved_seen = seen
    fi;
    k = 0;
    do
    :: k < WORDS -> copy[k] = 0; k++
    :: else -> break
    od;
    id = 0; size = 0; copy_sequence = 0; copy_before = 0; k = 0; f = 0; limit = 0; at = 0; position = 0;
    count = 0; q = 0
  };
#if !defined(OVERWRITE) && !defined(M_TAIL_BEFORE_COPY) && !defined(M_TAIL_BEFORE_JOURNAL)
#if CRASHES > 0
  if
  :: skip
  :: atomic { crashes > 0 -> crashes--; goto crash }
  fi;
#endif
  tail = saved_sequence * WORDS + saved_offset;                                              // R5
#endif

rest:
  atomic { at = 0; q = 0; position = 0; count = 0; limit = 0; f = 0 };
  if
  :: !last -> goto round
  :: last && !(my_sequence % SUBBUFS == SUB(head_position) && my_offset == OFFSET(head_position) &&
               entered) -> goto look
  :: else -> goto finish
  fi;

crash:
  atomic {
#ifdef M_RESTART_AT_TAIL
    my_sequence = tail / WORDS; my_offset = tail % WORDS;
#else
    my_sequence = saved_sequence; my_offset = saved_offset;
#endif
#ifdef M_SEEN_NOT_KEPT
    // Counts again from the header, as if nothing could have been overwritten meanwhile.
    seen = records_before[my_sequence % SUBBUFS] + my_offset / 2;
#else
    seen = saved_seen;
#endif
    entered = (my_offset > 0);
    at = 0; q = 0; position = 0; count = 0; limit = 0; f = 0; k = 0; copy_sequence = 0; copy_before = 0
  };
  goto round;

finish:
  // P3, drained: nothing is in flight. The slot's own words say the same as the ghosts.
  assert(committed == delivered + overwritten);
  assert(discarded == discards);
  assert(records_before[SUB(head_position)] + head_count == committed);
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
