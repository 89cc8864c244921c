// SPDX-License-Identifier: Apache-2.0
//
// The ring of weft.ko (kmod/ring.h, docs/adr/0017): writers of one CPU that interrupt each other like
// function calls, and one reader on another CPU. Run by models/run; the bounds, what is shown and what
// is not: README.md.
//
// A writer has a level: 0 a task, 1 an interrupt, 2 an NMI. It makes a step only while no writer of
// a higher level is at work, and a writer of a higher level may start between any two of its steps.
// A load, store or local cmpxchg is a step of its own if its word is used by two writers, or by a
// writer and the reader.
//
// Abstractions, as in ring.pml: a sub-buffer has WORDS words behind its header, a record is a header
// word and one payload word. Positions are sequence * WORDS + offset and do not wrap: the wraps of the
// reservation word are the self-test's (kmod/selftest.c).

#ifndef SUBBUFS
#define SUBBUFS 2
#endif
#ifndef WORDS
#define WORDS 3
#endif
#ifndef EVENTS0
#define EVENTS0 2   // events that each level tries to record
#endif
#ifndef EVENTS1
#define EVENTS1 1
#endif
#ifndef EVENTS2
#define EVENTS2 0
#endif

#define LEVELS 3
#define SIZE 2
#define EVENTS (EVENTS0 + EVENTS1 + EVENTS2)
#define SUB(position) ((position) / WORDS)
#define OFFSET(position) ((position) % WORDS)
#define INDEX(sequence) ((sequence) % SUBBUFS)

// The CPU's own words (struct weft_ring_cpu). The reservation word is moved in one step.
byte reserved_position, reserved_count;
byte base_position, base_before;
byte nesting;
byte own_before[SUBBUFS];
byte own_frontier, own_discarded;

// The shared memory.
byte head_position, head_count;   // one u64
byte sequence[SUBBUFS], records_before[SUBBUFS];
byte words[SUBBUFS * WORDS];
byte frontier, tail;              // frontier as a sequence, tail as a position
byte discarded;

// The machine.
bit started;
bit at_work[LEVELS];
byte events[LEVELS];

// Ghosts: a record of what happened, for the assertions only.
byte reserved_id[EVENTS + 1];     // by order of reservation; 0 again when the reader has accounted for it
bit filled[EVENTS + 1];           // the record's words are stored
bit stale[LEVELS];                // a reservation came after this writer read the clock
byte discards, delivered, overwritten, accounted, published;
bit reader_done, final;
#ifdef REACH
bit nested_switch, published_for_another, looked_again;
#endif

#define HIGHER_AT_WORK(me) (((me) < 1 && at_work[1]) || ((me) < 2 && at_work[2]))
#define WRITERS_LEFT                                                       \
  (!started || events[0] + events[1] + events[2] > 0 || at_work[0] || at_work[1] || at_work[2])

#define STEP(action) atomic { !HIGHER_AT_WORK(me) -> action }

// A word of the CPU's own that only grows, shown to the reader. The reader never sees it fall: what a
// writer that interrupts has shown is not replaced by less.
#if defined(M_SHOWN_BY_STORES)
#define SHOW(own, shown, again)            \
  again:                                   \
  STEP(seen = own);                        \
  STEP(SHOWN_GROWS(shown); shown = seen);  \
  if                                       \
  :: own != seen -> goto again             \
  :: else                                  \
  fi
#else
#ifdef M_OWN_READ_FIRST
#define READ_BOTH(own, shown) STEP(seen = own); STEP(old = shown)
#else
#define READ_BOTH(own, shown) STEP(old = shown); STEP(seen = own)
#endif
#define SHOW(own, shown, again)                                      \
  again:                                                             \
  READ_BOTH(own, shown);                                             \
  atomic {                                                           \
    !HIGHER_AT_WORK(me) ->                                           \
    if                                                               \
    :: old == seen -> skip                                           \
    :: old != seen && shown == old -> SHOWN_GROWS(shown); shown = seen \
    :: else -> goto again                                            \
    fi                                                               \
  }
#endif
#define SHOWN_GROWS(shown) assert(seen >= shown)

// P: one store. All records below the word are whole, and head never goes back.
inline store_head() {
  head_position = position % (SUBBUFS * WORDS);
  head_count = count - before;
  assert(!final);
  assert(count >= published);
  published = count;
  assert(before == records_before[INDEX(SUB(position))]);
  assert(sequence[INDEX(SUB(position))] == SUB(position));
  i = 0;
  do
  :: i < count -> assert(filled[i]); i++
  :: else -> i = 0; break
  od
}

proctype Writer(byte me) {
  byte id, position, count, place, next, base, needed, seen, old, before, i;

event:
  atomic {
    !HIGHER_AT_WORK(me) ->
    events[me]--;
    at_work[me] = 1;
    id = me * 8 + events[me] + 1
  };
  STEP(nesting++);                                                                           // N1

reserve:
#ifdef M_CLOCK_BEFORE_LOAD
  STEP(stale[me] = 0);
#endif
  STEP(position = reserved_position; count = reserved_count);
  if
  :: OFFSET(position) + SIZE < WORDS -> skip
  :: else -> goto slow
  fi;
#ifndef M_CLOCK_BEFORE_LOAD
  STEP(stale[me] = 0);
#endif
  atomic {                                                                                   // W3
    !HIGHER_AT_WORK(me) ->
    if
#ifdef M_RESERVE_BY_STORE
    :: true ->
#else
    :: reserved_position == position && reserved_count == count ->
#endif
       assert(!stale[me]);                                // times in a slot never go back
       reserved_position = position + SIZE; reserved_count = count + 1;
       reserved_id[count] = id;
       stale[0] = 1; stale[1] = 1; stale[2] = 1;
       place = position
    :: else -> goto reserve
    fi
  };
  goto fill;

slow:
  STEP(base = base_position);
  next = (SUB(position) + 1) * WORDS;
#ifndef M_BASE_NOT_CHECKED
  if                                                      // invariant 1
  :: SUB(position) + 1 - SUB(base) >= SUBBUFS -> goto discard
  :: else
  fi;
#endif
  if
  :: SUB(position) + 2 <= SUBBUFS -> goto enter
  :: else -> needed = SUB(position) + 2 - SUBBUFS
  fi;
#ifdef OVERWRITE
  // S2: raise_frontier. The CPU's own word only grows; the shared one is stored until both agree.
raise:
  STEP(seen = own_frontier);
  if
#ifdef M_RAISED_IS_SHOWN
  :: seen >= needed -> goto enter
#else
  :: seen >= needed -> goto show_frontier   // a writer that is interrupted raised it, and may not have shown it
#endif
  :: else
  fi;
  atomic {
    !HIGHER_AT_WORK(me) ->
    if
    :: own_frontier == seen -> own_frontier = needed
    :: else -> goto raise
    fi
  };
  SHOW(own_frontier, frontier, show_frontier);
#else
  STEP(seen = tail);                                                                         // T
  if
#ifndef M_TAIL_IGNORED
  :: seen < needed * WORDS -> goto discard
#endif
  :: else
  fi;
#endif
enter:
  STEP(stale[me] = 0);
  atomic {
    !HIGHER_AT_WORK(me) ->
    if
    :: reserved_position == position && reserved_count == count ->
       assert(!stale[me]);
       reserved_position = next + SIZE; reserved_count = count + 1;
       reserved_id[count] = id;
       stale[0] = 1; stale[1] = 1; stale[2] = 1;
       place = next
    :: else -> goto reserve
    fi
  };
#ifdef REACH
  nested_switch = nested_switch || nesting > 1;
#endif
  STEP(words[position % (SUBBUFS * WORDS)] = 0);                                             // S3
  STEP(sequence[INDEX(SUB(next))] = SUB(next));                                              // S4
#ifdef M_COUNT_OF_PUBLISHED
  STEP(records_before[INDEX(SUB(next))] = published);
#else
  STEP(records_before[INDEX(SUB(next))] = count);
#endif
  STEP(own_before[INDEX(SUB(next))] = count);

fill:                                                                                        // W4
  STEP(words[place % (SUBBUFS * WORDS)] = id);
  STEP(words[place % (SUBBUFS * WORDS) + 1] = id; filled[count] = 1);
  goto commit;

discard:                                                                                     // D
  STEP(own_discarded++; discards++);
  SHOW(own_discarded, discarded, show_discarded);

commit:                                                                                      // W5
#ifdef M_EVERY_WRITER_PUBLISHES
  skip;
#else
  atomic {                                                                                   // N2
    !HIGHER_AT_WORK(me) ->
    if
    :: nesting > 1 -> nesting--; goto done
    :: else
    fi
  };
#endif
publish:
  STEP(position = reserved_position; count = reserved_count);
  if
  :: SUB(position) != SUB(base_position) ->               // weft_ring_publish_slow
     STEP(before = own_before[INDEX(SUB(position))]);
#ifdef M_BASE_BEFORE_HEAD
     STEP(base_before = before);
     STEP(base_position = position);
#endif
     STEP(store_head());
     STEP(base_before = before);
     STEP(base_position = position)
  :: else ->
     STEP(before = base_before);
     STEP(store_head())
  fi;
#ifdef M_EVERY_WRITER_PUBLISHES
  STEP(nesting--);
  goto done;
#endif
  STEP(nesting = 0);                                                                         // N3
#ifndef M_NO_SECOND_LOOK
  atomic {
    !HIGHER_AT_WORK(me) ->
    if
    :: reserved_position != position || reserved_count != count ->
#ifdef REACH
       looked_again = 1;
#endif
       nesting = 1; goto publish
    :: else
    fi
  };
#endif

done:
  atomic {
    !HIGHER_AT_WORK(me) ->
    id = 0; position = 0; count = 0; place = 0; next = 0; base = 0; needed = 0; seen = 0; old = 0; before = 0;
    at_work[me] = 0;
    if
    :: events[me] > 0 -> goto event
    :: else
    fi
  }
}

// Situations that the bounds must allow (models/cases.py).
#if REACH == 1
#define REACHED (nested_switch && delivered == EVENTS)   // a writer entered a sub-buffer inside another
#elif REACH == 2
#define REACHED (discards > 0 && delivered > 2)
#elif REACH == 3
#define REACHED (overwritten > 0 && delivered > 0)
#elif REACH == 4
#define REACHED (looked_again)                           // a writer came between the last look and the end
#endif

#define NEWS (head_position % WORDS != my_offset || SUB(head_position) != INDEX(my_sequence))

active proctype Reader() {
  byte my_sequence, my_offset, seen;
  bit entered, last;
  byte q, position, count, f, k, limit, at;
  byte copy[WORDS], copy_sequence, copy_before;

round:
  atomic {
    NEWS || !WRITERS_LEFT ->
    if
    :: !WRITERS_LEFT -> last = 1; final = 1
    :: else
    fi
  };

look:                                                                                        // R1
#ifdef OVERWRITE
  at = SUB(head_position);
  q = sequence[at];
  atomic {
    position = head_position; count = head_count;
    if
    :: SUB(position) != at || sequence[at] != q -> goto look
    :: else
    fi
  };
#else
  // SlotReader::LookDiscard: the index of head's sub-buffer tells its sequence.
  atomic {
    position = head_position; count = head_count;
    q = my_sequence + (SUB(position) + SUBBUFS - INDEX(my_sequence)) % SUBBUFS
  };
#endif
  atomic {
    assert(my_sequence <= q);
    limit = (my_sequence < q -> WORDS : OFFSET(position));
    if
    :: my_sequence == q && my_offset == limit -> goto rest
    :: else
    fi
  };
  if                                                                                         // R2
  :: atomic { !entered -> copy_sequence = sequence[INDEX(my_sequence)]; k = my_offset };
     copy_before = records_before[INDEX(my_sequence)]
  :: atomic { entered -> k = my_offset }
  fi;
  do
  :: atomic { k < limit -> copy[k] = words[INDEX(my_sequence) * WORDS + k]; k++ }
  :: atomic { k >= limit -> break }
  od;
  f = frontier;                                                                              // R3
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
          do
          :: seen < copy_before -> reserved_id[seen] = 0; seen++
          :: else -> break
          od;
#else
          assert(copy_before == seen);
#endif
          entered = 1
       :: else
       fi;
       k = my_offset;
       do
       :: k >= limit -> break
       :: k < limit && copy[k] == 0 -> assert(my_sequence < q); break
       :: k < limit && copy[k] != 0 ->
          assert(k + SIZE <= WORDS);
          assert(copy[k + 1] == copy[k]);                        // nothing torn
          assert(reserved_id[seen] == copy[k]);                  // nothing lost, twice, or out of order
          reserved_id[seen] = 0;
          seen++; delivered++;
          k = k + SIZE
       od;
       if
       :: my_sequence < q -> my_sequence++; my_offset = 0; entered = 0
       :: else -> my_offset = limit
       fi
    fi;
    k = 0;
    do
    :: k < WORDS -> copy[k] = 0; k++
    :: else -> break
    od;
    copy_sequence = 0; copy_before = 0; k = 0; f = 0; at = 0; position = 0; count = 0; q = 0; limit = 0
  };
#ifndef OVERWRITE
  tail = my_sequence * WORDS + my_offset;                                                    // R5
#endif

rest:
  atomic { at = 0; q = 0; position = 0; count = 0; limit = 0; f = 0 };
  if
  :: !last -> goto round
  :: last && NEWS -> goto look
  :: else
  fi;

  // P3, drained: nothing is in flight.
  assert(nesting == 0);
  assert(reserved_count == delivered + overwritten);
  assert(reserved_count + discards == EVENTS);
  assert(discarded == discards);
  assert(records_before[SUB(head_position)] + head_count == reserved_count);
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
    events[0] = EVENTS0; events[1] = EVENTS1; events[2] = EVENTS2; started = 1;
    run Writer(0);
    if
    :: EVENTS1 > 0 -> run Writer(1)
    :: else
    fi;
    if
    :: EVENTS2 > 0 -> run Writer(2)
    :: else
    fi
  }
}
