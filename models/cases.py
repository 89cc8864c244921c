# SPDX-License-Identifier: Apache-2.0
"""The cases that models/run checks: a model, its #defines, and the expected result."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Case:
    """One search. `expect`: holds, mistake or reached, as models/run explains."""
    name: str
    model: str
    expect: str
    defines: tuple
    long: bool = False


def ring(name, expect, words, long=False):
    return Case(f"ring: {name}", "ring.pml", expect, tuple(words.split()), long)


def atomic(name, expect, words, long=False):
    return Case(f"atomic: {name}", "atomic.pml", expect, tuple(words.split()), long)


def control(name, expect, words="", long=False):
    return Case(f"control: {name}", "control.pml", expect, tuple(words.split()), long)


def kring(name, expect, words, long=False):
    return Case(f"kring: {name}", "kring.pml", expect, tuple(words.split()), long)


def order(name, expect, words):
    return Case(f"order: {name}", "order.pml", expect, tuple(words.split()))


# EVENTS0.. are the threads' events; WORDS=3 makes a sub-buffer of one record, so that few events go
# round the ring; WORDS=5 one of two small records, or a large one and a rest.
RING_HOLDS = [
    ring("discard, two threads", "holds", "EVENTS0=3 EVENTS1=2"),
    ring("discard, two threads, SIGKILL", "holds", "KILL EVENTS0=3 EVENTS1=2"),
    ring("discard, three threads", "holds", "EVENTS0=1 EVENTS1=1 EVENTS2=1"),
    ring("discard, two sizes", "holds", "WORDS=5 TWO_SIZES EVENTS0=3 EVENTS1=1"),
    ring("discard, three sub-buffers", "holds", "SUBBUFS=3 EVENTS0=3 EVENTS1=2"),
    ring("discard, signal handler", "holds", "EVENTS0=3 EVENTS1=0 HANDLER=2"),
    ring("discard, signal handler, thread", "holds", "EVENTS0=1 EVENTS1=1 HANDLER=1 KILL"),
    ring("discard, closed", "holds", "CLOSE EVENTS0=2 EVENTS1=2"),
    ring("discard, closed, SIGKILL", "holds", "CLOSE KILL EVENTS0=2 EVENTS1=1"),
    ring("discard, reader dies twice", "holds", "CRASHES=2 EVENTS0=3 EVENTS1=2"),
    ring("discard, reader dies, SIGKILL", "holds", "CRASHES=1 KILL EVENTS0=2 EVENTS1=2"),
    ring("overwrite, one thread", "holds", "OVERWRITE EVENTS0=7 EVENTS1=0"),
    ring("overwrite, two threads", "holds", "OVERWRITE EVENTS0=3 EVENTS1=1"),
    ring("overwrite, two threads, SIGKILL", "holds", "OVERWRITE KILL EVENTS0=2 EVENTS1=2"),
    ring("overwrite, two sizes", "holds", "OVERWRITE WORDS=5 TWO_SIZES EVENTS0=6 EVENTS1=0"),
    ring("overwrite, three sub-buffers", "holds", "OVERWRITE SUBBUFS=3 EVENTS0=4 EVENTS1=1"),
    ring("overwrite, signal handler", "holds", "OVERWRITE EVENTS0=4 EVENTS1=0 HANDLER=1"),
    ring("overwrite, closed", "holds", "OVERWRITE CLOSE EVENTS0=2 EVENTS1=1"),
    ring("overwrite, reader dies twice", "holds", "OVERWRITE CRASHES=2 EVENTS0=6 EVENTS1=0"),
    ring("clock clamped to last_time", "holds", "CLOCK_CLAMPED EVENTS0=2 EVENTS1=2"),
    ring("clock compared with head and sequence", "holds",
         "OVERWRITE CLOCK_COMPARED READ_AT_THE_END EVENTS0=1 EVENTS1=3"),
    ring("header read once, but after head", "holds",
         "OVERWRITE HEADER_ONCE_AFTER_HEAD EVENTS0=3 EVENTS1=1"),
    ring("header read once, but after head, more", "holds",
         "OVERWRITE HEADER_ONCE_AFTER_HEAD KILL EVENTS0=4 EVENTS1=1", long=True),
    ring("discard, three threads, more", "holds", "EVENTS0=2 EVENTS1=1 EVENTS2=1 KILL", long=True),
    ring("discard, two sizes, three sub-buffers", "holds",
         "SUBBUFS=3 WORDS=5 TWO_SIZES EVENTS0=3 EVENTS1=2", long=True),
    ring("overwrite, two threads, more", "holds", "OVERWRITE EVENTS0=3 EVENTS1=2 KILL", long=True),
    ring("overwrite, three threads", "holds", "OVERWRITE EVENTS0=2 EVENTS1=1 EVENTS2=1", long=True),
    ring("everything, discard", "holds", "CLOSE KILL CRASHES=1 EVENTS0=1 EVENTS1=1 HANDLER=1",
         long=True),
    ring("everything, overwrite", "holds",
         "OVERWRITE CLOSE KILL CRASHES=1 EVENTS0=3 EVENTS1=0 HANDLER=1", long=True),
]

# The reader of discard mode, with the steps of lib/ring/slot_reader.cc.
RING_HOLDS += [
    ring("discard by index, two threads, SIGKILL", "holds", "LOOK_BY_INDEX KILL EVENTS0=3 EVENTS1=2"),
    ring("discard by index, three sub-buffers", "holds", "LOOK_BY_INDEX SUBBUFS=3 EVENTS0=3 EVENTS1=2"),
    ring("discard by index, reader dies twice", "holds",
         "LOOK_BY_INDEX CRASHES=2 EVENTS0=3 EVENTS1=2"),
]

RING_MISTAKES = [
    ring("discard by index, tail not looked at (S1)", "mistake",
         "LOOK_BY_INDEX M_TAIL_IGNORED EVENTS0=4 EVENTS1=0"),
    ring("commit before payload", "mistake", "M_COMMIT_BEFORE_PAYLOAD EVENTS0=1 EVENTS1=0"),
    ring("head stored in two halves", "mistake", "M_HEAD_IN_HALVES WORDS=5 EVENTS0=2 EVENTS1=0"),
    ring("sequence read once, before head (R1)", "mistake",
         "OVERWRITE M_HEADER_ONCE_BEFORE_HEAD WORDS=5 TWO_SIZES EVENTS0=4 EVENTS1=0"),
    ring("frontier after the first store (S2)", "mistake",
         "OVERWRITE M_FRONTIER_AFTER_STORE EVENTS0=4 EVENTS1=0"),
    ring("frontier one sub-buffer low (S2)", "mistake",
         "OVERWRITE M_FRONTIER_OFF_BY_ONE EVENTS0=4 EVENTS1=0"),
    ring("frontier read before the copy (R3)", "mistake",
         "OVERWRITE M_FRONTIER_BEFORE_COPY EVENTS0=4 EVENTS1=0"),
    ring("tail not looked at (S1)", "mistake", "M_TAIL_IGNORED EVENTS0=4 EVENTS1=0"),
    ring("tail one sub-buffer low (S1)", "mistake", "M_TAIL_OFF_BY_ONE EVENTS0=4 EVENTS1=0"),
    ring("no pad word (S3)", "mistake", "M_NO_PAD WORDS=5 TWO_SIZES EVENTS0=5 EVENTS1=0"),
    ring("no room for the pad word (W2)", "mistake", "M_SPACE_FOR_PAD WORDS=4 EVENTS0=4 EVENTS1=0"),
    ring("header after head (S4)", "mistake", "M_HEADER_AFTER_HEAD EVENTS0=3 EVENTS1=0"),
    ring("records_before not updated (S4)", "mistake",
         "M_RECORDS_BEFORE_NOT_UPDATED EVENTS0=3 EVENTS1=0"),
    ring("discard counted without a section (D)", "mistake",
         "M_DISCARD_WITHOUT_SECTION EVENTS0=3 EVENTS1=2"),
    ring("child in shared memory without rseq", "mistake",
         "M_CHILD_WITHOUT_RSEQ TIMES_IGNORED EVENTS0=1 EVENTS1=1"),
    ring("child without rseq, times", "mistake", "M_CHILD_WITHOUT_RSEQ EVENTS0=1 EVENTS1=1"),
    ring("signal does not abort", "mistake",
         "M_SIGNAL_DOES_NOT_ABORT TIMES_IGNORED EVENTS0=1 EVENTS1=0 HANDLER=1"),
    ring("tail before the copy (R5)", "mistake", "M_TAIL_BEFORE_COPY EVENTS0=4 EVENTS1=0"),
    ring("tail before the journal", "mistake", "M_TAIL_BEFORE_JOURNAL CRASHES=1 EVENTS0=4 EVENTS1=0"),
    ring("reader starts again at tail", "mistake", "M_RESTART_AT_TAIL CRASHES=1 EVENTS0=2 EVENTS1=0"),
    ring("reader keeps no count", "mistake",
         "OVERWRITE M_SEEN_NOT_KEPT CRASHES=1 EVENTS0=5 EVENTS1=0"),
    ring("closed not checked", "mistake", "CLOSE M_CLOSED_NOT_CHECKED EVENTS0=1 EVENTS1=0"),
    ring("switch after close", "mistake",
         "OVERWRITE CLOSE M_SWITCH_AFTER_CLOSE EVENTS0=2 EVENTS1=0"),
    ring("discard counted after close", "mistake",
         "CLOSE M_DISCARD_AFTER_CLOSE EVENTS0=4 EVENTS1=0"),
    ring("close: barrier that does not abort", "mistake",
         "CLOSE M_BARRIER_DOES_NOT_ABORT EVENTS0=1 EVENTS1=0"),
    ring("clock before the section, no check", "mistake",
         "M_CLOCK_BEFORE_SECTION WORDS=5 EVENTS0=1 EVENTS1=1"),
    ring("clock compared with head only", "mistake",
         "OVERWRITE CLOCK_COMPARED M_COMPARE_HEAD_ONLY READ_AT_THE_END EVENTS0=1 EVENTS1=3"),
    ring("last_time after the commit", "mistake",
         "CLOCK_CLAMPED M_CLAMP_AFTER_COMMIT WORDS=5 EVENTS0=1 EVENTS1=1"),
]

RING_REACHED = [
    ring("every sub-buffer used three times", "reached", "REACH=1 EVENTS0=6 EVENTS1=0"),
    ring("discards and records", "reached", "REACH=2 EVENTS0=4 EVENTS1=1"),
    ring("all overwritten that can be", "reached", "REACH=3 OVERWRITE EVENTS0=5 EVENTS1=0"),
    ring("one overwritten, the rest read", "reached", "REACH=4 OVERWRITE EVENTS0=5 EVENTS1=0"),
    ring("killed behind S2 of a switch", "reached", "REACH=5 OVERWRITE KILL EVENTS0=4 EVENTS1=0"),
    ring("a handler records inside a record", "reached", "REACH=6 EVENTS0=1 EVENTS1=0 HANDLER=1"),
    ring("a section restarts and sees closed", "reached", "REACH=7 CLOSE EVENTS0=1 EVENTS1=0"),
]

ATOMIC = [
    atomic("two threads and a handler", "holds", "EVENTS0=2 EVENTS1=2 HANDLER=1"),
    atomic("three threads", "holds", "EVENTS0=1 EVENTS1=1 EVENTS2=1 HANDLER=0"),
    atomic("SIGKILL", "holds", "KILL EVENTS0=2 EVENTS1=1 HANDLER=1"),
    atomic("closed, read at the end", "holds", "CLOSE KILL EVENTS0=2 EVENTS1=1 HANDLER=1"),
    atomic("closed for good, barrier, then the lock", "holds",
           "CLOSE CLOSE_IS_FINAL EVENTS0=2 EVENTS1=1 HANDLER=1"),
    atomic("child on its parent's thread pointer", "holds",
           "SAME_POINTER EVENTS0=2 EVENTS1=2 HANDLER=1"),
    atomic("owner leaves by siglongjmp", "holds", "LONGJMP EVENTS0=2 EVENTS1=2 HANDLER=1"),
    atomic("three threads and a handler", "holds",
           "KILL CLOSE EVENTS0=1 EVENTS1=1 EVENTS2=1 HANDLER=1", long=True),
    atomic("lock taken by load and store", "mistake", "M_LOCK_NOT_ATOMIC HANDLER=0"),
    atomic("lock released before head", "mistake", "M_UNLOCK_BEFORE_HEAD HANDLER=0"),
    atomic("commit before payload", "mistake", "M_COMMIT_BEFORE_PAYLOAD HANDLER=0"),
    atomic("owner enters again", "mistake", "M_OWNER_ENTERS_AGAIN EVENTS1=0"),
    atomic("owner not named, waits for itself", "hangs", "M_OWNER_NOT_NAMED EVENTS1=0"),
    atomic("discards counted by load and store", "mistake",
           "M_DISCARD_NOT_ATOMIC EVENTS1=2 EVENTS2=1"),
    atomic("time not clamped", "mistake", "M_TIME_NOT_CLAMPED HANDLER=0"),
    atomic("closed checked before the lock", "mistake",
           "CLOSE CLOSE_IS_FINAL M_CLOSED_BEFORE_LOCK HANDLER=0"),
    atomic("close does not wait for the lock", "mistake",
           "CLOSE CLOSE_IS_FINAL M_CLOSE_DOES_NOT_WAIT EVENTS0=1 EVENTS1=0 HANDLER=0"),
    atomic("close is final, discards do not look at closed", "mistake",
           "CLOSE CLOSE_IS_FINAL M_DISCARD_AFTER_CLOSE EVENTS0=1 EVENTS1=1"),
    atomic("close is final, no barrier for who counts", "mistake",
           "CLOSE CLOSE_IS_FINAL M_NO_BARRIER EVENTS0=1 EVENTS1=1"),
    atomic("nested and contended and recorded", "reached", "REACH=1 EVENTS0=1 EVENTS1=2 EVENTS2=0"),
    atomic("killed in the lock, another contended", "reached", "REACH=2 KILL EVENTS0=1 EVENTS1=1"),
    atomic("full", "reached", "REACH=3 ROOM=1 EVENTS0=1 EVENTS1=1 HANDLER=0"),
]

KRING = [
    kring("discard, interrupt", "holds", "EVENTS0=2 EVENTS1=2"),
    kring("discard, interrupt, NMI", "holds", "EVENTS0=2 EVENTS1=1 EVENTS2=1"),
    kring("discard, two records in a sub-buffer", "holds", "WORDS=5 EVENTS0=2 EVENTS1=2 EVENTS2=1"),
    kring("overwrite, interrupt", "holds", "OVERWRITE EVENTS0=3 EVENTS1=2"),
    kring("overwrite, interrupt, NMI", "holds", "OVERWRITE EVENTS0=2 EVENTS1=1 EVENTS2=1"),
    kring("discard, three sub-buffers", "holds", "SUBBUFS=3 EVENTS0=2 EVENTS1=2 EVENTS2=1", long=True),
    kring("overwrite, three sub-buffers", "holds",
          "OVERWRITE SUBBUFS=3 EVENTS0=2 EVENTS1=2 EVENTS2=1", long=True),
    kring("reserved by a plain store", "mistake", "M_RESERVE_BY_STORE"),
    kring("clock before the load of reserve", "mistake", "M_CLOCK_BEFORE_LOAD WORDS=5"),
    kring("base not looked at (invariant 1)", "mistake", "OVERWRITE M_BASE_NOT_CHECKED EVENTS0=1 EVENTS1=3"),
    kring("tail not looked at", "mistake", "M_TAIL_IGNORED EVENTS0=4"),
    kring("records_before of what is published", "mistake", "M_COUNT_OF_PUBLISHED EVENTS0=1 EVENTS1=3"),
    kring("every writer publishes", "mistake", "M_EVERY_WRITER_PUBLISHES"),
    kring("no second look", "mistake", "M_NO_SECOND_LOOK"),
    kring("base before head (H)", "mistake", "OVERWRITE M_BASE_BEFORE_HEAD"),
    kring("frontier raised, taken as shown", "mistake", "OVERWRITE M_RAISED_IS_SHOWN EVENTS1=2"),
    kring("counts shown by plain stores", "mistake", "OVERWRITE M_SHOWN_BY_STORES EVENTS1=2"),
    kring("own count looked at first", "mistake", "OVERWRITE M_OWN_READ_FIRST EVENTS1=2"),
    kring("a switch inside another record", "reached", "REACH=1 SUBBUFS=3"),
    kring("discards and records", "reached", "REACH=2 EVENTS0=4"),
    kring("overwritten and read", "reached", "REACH=3 OVERWRITE EVENTS0=3"),
    kring("a writer between the last look and the end", "reached", "REACH=4"),
]

CONTROL = [
    control("publish and decide", "holds"),
    control("agent dies, starts again", "holds", "GENERATIONS=2 CRASHES=1"),
    control("agent dies, starts again, arena reused twice", "holds", "CRASHES=1", long=True),
    control("agent dies twice", "holds", "GENERATIONS=2 CRASHES=2", long=True),
    control("more generations", "holds", "GENERATIONS=6", long=True),
    control("words before rules (A2, A3)", "mistake", "M_WORDS_FIRST"),
    control("rules before their bytes (A1, A2)", "mistake", "M_RULES_BEFORE_BYTES"),
    control("generation used twice", "mistake", "M_GENERATION_NOT_NEW"),
    control("checksum not looked at (P3)", "mistake", "M_CHECKSUM_IGNORED"),
    control("words of the old rules forgotten (A3)", "mistake", "M_OLD_RULES_FORGOTTEN"),
    control("new agent knows no old rules", "mistake",
            "M_RESTART_KNOWS_NOTHING M_RESTART_TRUSTS_WORDS CRASHES=1"),
    control("new agent trusts half-written words", "mistake", "M_RESTART_TRUSTS_WORDS CRASHES=1"),
    control("kept copy known by generation only", "mistake",
            "M_COPY_KNOWN_BY_GENERATION CRASHES=1"),
    control("rule set changed in place", "mistake", "M_CHANGED_IN_PLACE"),
    control("on, then off", "reached", "REACH=1"),
]

ORDER = [
    order("payload, head", "holds", "T_COMMIT"),
    order("frontier, old sub-buffer", "holds", "T_FRONTIER"),
    order("copy, tail", "holds", "T_TAIL"),
    order("lock, closed: fence in the writer", "holds", "T_CLOSE WRITER_FENCE"),
    order("lock, closed: membarrier in the closer", "holds", "T_CLOSE CLOSER_MEMBARRIER"),
    order("rules, word", "holds", "T_PUBLISH"),
    order("head stored without release (W5)", "mistake", "T_COMMIT M_HEAD_STORE_PLAIN"),
    order("head loaded without acquire (R1)", "mistake", "T_COMMIT M_HEAD_LOAD_PLAIN"),
    order("frontier by a release store only (S2)", "mistake", "T_FRONTIER M_FRONTIER_RELEASE_STORE"),
    order("no fence before frontier's load (R3)", "mistake", "T_FRONTIER M_FRONTIER_LOAD_PLAIN"),
    order("tail stored without release (R5)", "mistake", "T_TAIL M_TAIL_STORE_PLAIN"),
    order("lock, closed: neither", "mistake", "T_CLOSE"),
    order("agent without fences (A2, A3)", "mistake", "T_PUBLISH M_AGENT_WITHOUT_FENCES"),
    order("word loaded without acquire (P1)", "mistake", "T_PUBLISH M_WORD_LOAD_PLAIN"),
]

CASES = ORDER + CONTROL + ATOMIC + KRING + RING_HOLDS + RING_MISTAKES + RING_REACHED
