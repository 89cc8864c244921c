// SPDX-License-Identifier: Apache-2.0
//
// The control area of lib/abi/control.h: an agent that publishes generations (A1-A3), may die at any
// step and is started again; a process that decides per event (P1-P3) and remembers. The arena holds
// two rule sets, so every second publication reuses bytes that a slow process may be copying.
//
// A rule set is one cell per event: generation * 2 + (1 if the event is recorded). Its checksum is
// right if all its cells are of one generation. Stores and copies are one cell at a time.

#ifndef GENERATIONS
#define GENERATIONS 3
#endif
#ifndef CRASHES
#define CRASHES 0      // deaths of the agent
#endif
#define PUBLICATIONS (GENERATIONS + CRASHES)
#define WORDS 2        // events, one enable word each
#define CELL(generation, on) ((generation) * 2 + (on))

// The control area.
byte word[WORDS];
byte rules;            // place of the rule set in force, from 1; 0 none
byte arena[2 * WORDS];

// Ghosts.
bit wanted[WORDS];     // what the last publication says of each event
bit idle;              // nothing is being published, nothing more will be
byte begun, streak[WORDS];  // publications begun; the last so many of them want the event
bit process_done;

active proctype Agent() {
  byte generation, place, e, crashes = CRASHES, published;
  bit old[WORDS], restarted;

publish:
  if
  :: published == PUBLICATIONS - crashes -> goto finish
  :: else -> published++
  fi;
  // A new agent knows the rule set in force. The generation is above all that was used.
  atomic {
    e = 0;
    do
    :: e < WORDS ->
#ifdef M_RESTART_KNOWS_NOTHING
       old[e] = (rules > 0 && !restarted -> arena[(rules - 1) * WORDS + e] % 2 : 0);
#else
       old[e] = (rules > 0 -> arena[(rules - 1) * WORDS + e] % 2 : 0);
#endif
       if
       :: wanted[e] = 0; streak[e] = 0
       :: wanted[e] = 1; streak[e]++
       fi;
       e++
    :: else -> e = 0; break
    od;
    begun++;
#ifdef M_GENERATION_NOT_NEW
    generation = (generation == 0 -> 1 : generation);
#else
    generation++;
#endif
#ifdef M_CHANGED_IN_PLACE
    place = 0
#else
    place = (rules == 1 -> 1 : 0)
#endif
  };
#ifdef M_RULES_BEFORE_BYTES
  rules = place + 1;
#endif
#ifdef M_WORDS_FIRST
  goto words;
bytes:
#endif
  do                                                                                         // A1
  :: e < WORDS -> arena[place * WORDS + e] = CELL(generation, wanted[e]); e++
  :: e < WORDS && crashes > 0 -> goto crash
  :: e == WORDS -> break
  od;
  if
  :: rules = place + 1                                                                       // A2
  :: crashes > 0 -> goto crash
  fi;
#ifdef M_WORDS_FIRST
  goto publish;
words:
#endif
  e = 0;
  do                                                                                         // A3
  :: e < WORDS ->
     if
#ifdef M_OLD_RULES_FORGOTTEN
     :: wanted[e] -> word[e] = generation
#else
     :: wanted[e] -> word[e] = generation
     :: !wanted[e] && old[e] -> word[e] = 0
#endif
#ifndef M_RESTART_TRUSTS_WORDS
     :: !wanted[e] && !old[e] && restarted && word[e] != 0 -> word[e] = 0
#endif
     :: else
     fi;
     e++
  :: e < WORDS && crashes > 0 -> goto crash
  :: e == WORDS -> break
  od;
  e = 0; restarted = 0;
#ifdef M_WORDS_FIRST
  goto bytes;
#endif
  goto publish;

crash:
  // A new agent finds the highest generation in the words and in the rule set in force.
  atomic {
    crashes--; restarted = 1; published--;
    generation = (rules > 0 -> arena[(rules - 1) * WORDS] / 2 : 0);
    e = 0;
    do
    :: e < WORDS ->
       generation = (word[e] > generation -> word[e] : generation);
       streak[e] = 0; e++
    :: else -> e = 0; break
    od
  };
  goto publish;

finish:
  idle = 1
}

active proctype Process() {
  byte known_word[WORDS];
  bit known[WORDS];
  byte e, w, r, begun_before, first, second, i;
  bit last, decision, valid;
#ifdef M_COPY_KNOWN_BY_GENERATION
  byte copied_from, copied[WORDS];  // the last good copy, used again for the same place, generation
#endif

round:
  atomic { last = idle; e = 0 };
  do
  :: e == WORDS -> break
  :: e < WORDS ->
     atomic { w = word[e]; begun_before = begun };                                           // P1
     if
     :: w == 0 -> decision = 0
     :: w != 0 && w == known_word[e] -> decision = known[e]
     :: w != 0 && w != known_word[e] ->
        r = rules;                                                                           // P2
        if
        :: r == 0 -> decision = 0
        :: r != 0 ->
           first = arena[(r - 1) * WORDS];                                                   // P3
#ifdef M_COPY_KNOWN_BY_GENERATION
           if
           :: copied_from == r && copied[0] / 2 == first / 2 ->
              atomic { first = copied[0]; second = copied[1]; goto decide }
           :: else
           fi;
#endif
           second = arena[(r - 1) * WORDS + 1];
decide:
           atomic {
#ifdef M_CHECKSUM_IGNORED
             valid = 1;
#else
             valid = (first / 2 == second / 2 && first / 2 > 0);
#endif
             assert(!valid || first / 2 == second / 2);    // only whole rule sets are used
             decision = (!valid -> 0 : (e == 0 -> first % 2 : second % 2));
             if
             :: valid ->
                known_word[e] = w; known[e] = decision;
#ifdef M_COPY_KNOWN_BY_GENERATION
                copied_from = r; copied[0] = first; copied[1] = second
#endif
             :: else
             fi
           }
        fi
     fi;
     // As soon as nothing is being published, the decision follows what was published last.
     assert(!last || decision == wanted[e]);
     // An event that both the old and the new rules want is recorded while the new are published.
     // (A process that is so slow that the arena is reused meanwhile decides "off" once.)
     assert(!(w != 0 && begun == begun_before && streak[e] >= 2) || decision);
     atomic { begun_before = 0; w = 0; r = 0; first = 0; second = 0; valid = 0; decision = 0; e++ }
  od;
  if
  :: last -> process_done = 1
  :: !last -> goto round
  fi
#ifdef REACH
  ; assert(!(known_word[0] == PUBLICATIONS && known[0] && known_word[1] > 0 &&
             known_word[1] < known_word[0] && known[1] && word[1] == 0))
#endif
}

active proctype NothingHangs() {
  bit reader_done;
  timeout -> reader_done = process_done; assert(reader_done)
}
