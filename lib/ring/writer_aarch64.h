/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The writer's sections for arm64; same shape, labels and answers as writer_x86_64.h. The
 * difference is the order of memory, which arm64 does not keep by itself:
 *   commit     stlr: header and payload before head (W5, S5); pairs with the reader's acquire of
 *              head
 *   tail       ldar: the reader's copy was done before it (S1); pairs with the reader's release of
 *              tail
 *   count      ldar: a slot's place is loaded after it; pairs with the store of a new ring set's
 *   frontier   str, then dmb ish: before any store into the old sub-buffer (S2); pairs with R3
 * `isb` before the counter is read keeps times in a slot from going back.
 */
#ifndef WEFT_LIB_RING_WRITER_AARCH64_H_
#define WEFT_LIB_RING_WRITER_AARCH64_H_

#include "writer.h"

#define WEFT_MAX_ABORTS 256

/* Offsets in struct rseq: cpu_id 4, rseq_cs 8. */

#define WEFT_RSEQ_DESCRIPTOR              \
  ".pushsection weft_rseq_cs, \"aw\"\n\t" \
  ".balign 32\n"                          \
  "9:\n\t"                                \
  ".word 0, 0\n\t"                        \
  ".quad 1f, (2f - 1f), 4f\n\t"           \
  ".popsection\n\t"

#define WEFT_RSEQ_ABORT \
  ".pushsection .text.weft_rseq_abort, \"ax\"\n\t"            \
  ".inst " WEFT_RSEQ_TEXT(WEFT_RSEQ_SIGNATURE) "\n" /* a brk */ \
  "4:\n\t"                                                    \
  "subs %w[aborts], %w[aborts], #1\n\t"                       \
  "b.ne 3b\n\t"                                               \
  "mov %w[result], #1\n\t"                                    \
  "b 5b\n\t"                                                  \
  ".popsection\n\t"

/* Sets slot = this thread's slot, base = its ring. Leaves to 6, as on x86-64. */
#define WEFT_RSEQ_ENTER                    \
  "3:\n\t"                                 \
  "adrp %[t], 9b\n\t"                      \
  "add %[t], %[t], :lo12:9b\n\t"           \
  "str %[t], [%[rseq], #8]\n"              \
  "1:\n\t"                                 \
  "ldr %[slot], [%[ring]]\n\t"             \
  "cbz %[slot], 6f\n\t"                    \
  "ldr %w[t], [%[rseq], #4]\n\t"           \
  "cmp %w[t], #0\n\t"                      \
  "b.lt 6f\n\t"                            \
  "ldr %w[t], [%[rseq], %[id_offset]]\n\t" \
  "ldar %w[base], [%[slot]]\n\t"           \
  "cmp %w[t], %w[base]\n\t"                \
  "b.hs 6f\n\t"                            \
  "add %[slot], %[slot], %[t], lsl #4\n\t" \
  "ldp %[slot], %[base], [%[slot], #16]\n\t"

/* Loads head; leaves to 7 when closed, to 8 when the record does not fit. Sets base = the place of
 * the record. */
#define WEFT_RSEQ_RESERVE               \
  "ldr %[head], [%[slot]]\n\t"          \
  "ldr %w[t], [%[slot], #8]\n\t"        \
  "cbnz %w[t], 7f\n\t"                  \
  "ldr %w[t], [%[ring], #12]\n\t"       \
  "and %w[u], %w[head], %w[t]\n\t"      \
  "add %w[u], %w[u], %w[increment]\n\t" \
  "cmp %w[u], %w[t]\n\t"                \
  "b.hi 8f\n\t"                         \
  "add %[base], %[base], %w[head], uxtw\n\t"

#define WEFT_RSEQ_TIME \
  "isb\n\t"            \
  "mrs %[t], cntvct_el0\n\t"

/* Stores the record's header, with the time in t. */
#define WEFT_RSEQ_HEADER                  \
  "ldr %w[u], [%[rseq], #4]\n\t"          \
  "orr %[u], %[word0], %[u], lsl #48\n\t" \
  "stp %[u], %[t], [%[base]], #16\n\t"

#define WEFT_RSEQ_COMMIT                   \
  "add %[head], %[head], %[increment]\n\t" \
  "stlr %[head], [%[slot]]\n"              \
  "2:\n\t"                                 \
  "mov %w[result], #0\n"                   \
  "5:\n\t"

/* The exit of a section at `label`: returns this result, out of line. */
#define WEFT_RSEQ_EXIT(label, result)                   \
  ".pushsection .text.weft_rseq_exits, \"ax\"\n" #label \
  ":\n\t"                                               \
  "mov %w[result], #" #result                           \
  "\n\t"                                                \
  "b 5b\n\t"                                            \
  ".popsection\n\t"

#define WEFT_RSEQ_EXITS WEFT_RSEQ_EXIT(6, 1) WEFT_RSEQ_EXIT(8, 2) WEFT_RSEQ_EXIT(7, 3)

/* W for a record whose bytes lie in one 8-byte aligned buffer, readable up to a multiple of 8.
 * `rseq`: from the thread pointer. `words` is used on other machines only. Returns false if nothing
 * was written; weft_write_pieces finds out why. */
static inline __attribute__((always_inline)) bool weft_write_words(
    intptr_t rseq, uint32_t id_offset, const struct weft_record_class* record,
    const uint64_t* payload, uint32_t words) {
  (void)words;
  uint64_t head, slot, base, t, u, result;
  uint64_t aborts = WEFT_MAX_ABORTS;
  const uint64_t* from;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER WEFT_RSEQ_RESERVE WEFT_RSEQ_TIME WEFT_RSEQ_HEADER
      "mov %[from], %[payload]\n\t"
      "sub %w[u], %w[increment], #16\n\t"
      "cbz %w[u], 11f\n"
      "10:\n\t"
      "ldr %[t], [%[from]], #8\n\t"
      "str %[t], [%[base]], #8\n\t"
      "subs %w[u], %w[u], #8\n\t"
      "b.ne 10b\n"
      "11:\n\t" WEFT_RSEQ_COMMIT WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
      : [result] "=&r"(result), [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&r"(head),
        [t] "=&r"(t), [u] "=&r"(u), [from] "=&r"(from), [aborts] "+&r"(aborts)
      : [rseq] "r"((char*)__builtin_thread_pointer() + rseq), [ring] "r"(record->ring),
        [id_offset] "r"((uint64_t)id_offset), [word0] "r"(record->word0),
        [increment] "r"(record->increment), [payload] "r"(payload)
      : "memory", "cc");
  return result == WEFT_WRITE_COMMITTED;
}

/* Stores the pieces behind the header, and commits. */
#define WEFT_RSEQ_PIECES                 \
  "mov %[piece], %[pieces]\n\t"          \
  "mov %[left], %[count]\n"              \
  "10:\n\t"                              \
  "cbz %[left], 11f\n\t"                 \
  "sub %[left], %[left], #1\n\t"         \
  "ldp %[from], %[u], [%[piece]], #16\n" \
  "13:\n\t"                              \
  "subs %[u], %[u], #8\n\t"              \
  "b.lo 15f\n\t"                         \
  "ldr %[t], [%[from]], #8\n\t"          \
  "str %[t], [%[base]], #8\n\t"          \
  "b 13b\n"                              \
  "15:\n\t"                              \
  "adds %[u], %[u], #8\n\t"              \
  "b.eq 10b\n"                           \
  "16:\n\t"                              \
  "ldrb %w[t], [%[from]], #1\n\t"        \
  "strb %w[t], [%[base]], #1\n\t"        \
  "subs %[u], %[u], #1\n\t"              \
  "b.ne 16b\n\t"                         \
  "b 10b\n"                              \
  "11:\n\t" WEFT_RSEQ_COMMIT

/* W for a record in pieces of any size and alignment. */
static inline enum weft_write_result weft_write_pieces(void* rseq, uint64_t id_offset,
                                                       const struct weft_writer_ring* ring,
                                                       const struct weft_record_parts* parts) {
  uint64_t head, slot, base, t, u, result, piece, left, from;
  uint64_t aborts = WEFT_MAX_ABORTS;
  const uint64_t word0 = parts->word0;
  const uint64_t increment = parts->increment;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER WEFT_RSEQ_RESERVE WEFT_RSEQ_TIME WEFT_RSEQ_HEADER
          WEFT_RSEQ_PIECES WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
      : [result] "=&r"(result), [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&r"(head),
        [t] "=&r"(t), [u] "=&r"(u), [piece] "=&r"(piece), [left] "=&r"(left), [from] "=&r"(from),
        [aborts] "+&r"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "r"(id_offset), [word0] "r"(word0),
        [increment] "r"(increment), [pieces] "r"(parts->pieces), [count] "r"(parts->piece_count)
      : "memory", "cc");
  return (enum weft_write_result)result;
}

/* Loads head, and its sub-buffer's sequence into u. */
#define WEFT_RSEQ_SEQUENCE         \
  "ldr %[head], [%[slot]]\n\t"     \
  "ldr %w[t], [%[ring], #12]\n\t"  \
  "bic %w[u], %w[head], %w[t]\n\t" \
  "ldr %[u], [%[base], %[u]]\n\t"

/* As on x86-64. */
static inline enum weft_write_result weft_look(void* rseq, uint64_t id_offset,
                                               const struct weft_writer_ring* ring,
                                               struct weft_place* place) {
  uint64_t head, slot, base, t, u, result;
  uint64_t aborts = WEFT_MAX_ABORTS;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER WEFT_RSEQ_SEQUENCE
      "stp %[slot], %[head], [%[place]]\n\t"
      "str %[u], [%[place], #16]\n"
      "2:\n\t"
      "mov %w[result], #0\n"
      "5:\n\t" WEFT_RSEQ_EXIT(6, 1) WEFT_RSEQ_ABORT
      : [result] "=&r"(result), [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&r"(head),
        [t] "=&r"(t), [u] "=&r"(u), [aborts] "+&r"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "r"(id_offset), [place] "r"(place)
      : "memory", "cc");
  return (enum weft_write_result)result;
}

/* As on x86-64. */
static inline enum weft_write_result weft_write_pieces_at(void* rseq, uint64_t id_offset,
                                                          const struct weft_writer_ring* ring,
                                                          const struct weft_record_parts* parts,
                                                          const struct weft_place* place) {
  uint64_t head, slot, base, t, u, result, piece, left, from;
  uint64_t aborts = WEFT_MAX_ABORTS;
  const uint64_t word0 = parts->word0;
  const uint64_t increment = parts->increment;
  __asm__ volatile(WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER WEFT_RSEQ_SEQUENCE
                   "ldp %[piece], %[left], [%[place]]\n\t"
                   "cmp %[piece], %[slot]\n\t"
                   "b.ne 17f\n\t"
                   "cmp %[left], %[head]\n\t"
                   "b.ne 17f\n\t"
                   "ldr %[t], [%[place], #16]\n\t"
                   "cmp %[t], %[u]\n\t"
                   "b.ne 17f\n\t" WEFT_RSEQ_RESERVE
                   "ldr %[t], [%[place], #24]\n\t" WEFT_RSEQ_HEADER WEFT_RSEQ_PIECES WEFT_RSEQ_EXIT(
                       17, 4) WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
                   : [result] "=&r"(result), [slot] "=&r"(slot), [base] "=&r"(base),
                     [head] "=&r"(head), [t] "=&r"(t), [u] "=&r"(u), [piece] "=&r"(piece),
                     [left] "=&r"(left), [from] "=&r"(from), [aborts] "+&r"(aborts)
                   : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "r"(id_offset),
                     [word0] "r"(word0), [increment] "r"(increment), [pieces] "r"(parts->pieces),
                     [count] "r"(parts->piece_count), [place] "r"(place)
                   : "memory", "cc");
  return (enum weft_write_result)result;
}

/* S, as on x86-64. */
static inline enum weft_write_result weft_switch_subbuf(void* rseq, uint64_t id_offset,
                                                        const struct weft_writer_ring* ring,
                                                        uint64_t increment) {
  uint64_t head, slot, base, t, u, result, limit, sequence, before, next;
  uint64_t aborts = WEFT_MAX_ABORTS;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER
      "ldr %[head], [%[slot]]\n\t"
      "ldr %w[t], [%[slot], #8]\n\t"
      "cbnz %w[t], 7f\n\t"
      "ldr %w[t], [%[ring], #12]\n\t"
      "and %w[u], %w[head], %w[t]\n\t"
      "add %w[u], %w[u], %w[increment]\n\t"
      "cmp %w[u], %w[t]\n\t"
      "b.ls 2f\n\t"
      "bic %w[u], %w[head], %w[t]\n\t" /* u: offset of the current sub-buffer */
      "add %[next], %[base], %[u]\n\t"
      "ldp %[sequence], %[before], [%[next]]\n\t"
      "add %w[u], %w[u], %w[t]\n\t"
      "add %w[u], %w[u], #1\n\t"
      "ldr %w[t], [%[ring], #20]\n\t"
      "and %w[u], %w[u], %w[t]\n\t" /* u: offset of the next one */
      "ldr %w[t], [%[ring], #24]\n\t"
      "add %[limit], %[sequence], #2\n\t"
      "sub %[limit], %[limit], %[t]\n\t"
      "cmp %[limit], #0\n\t"
      "b.le 10f\n\t"
      "ldr %w[t], [%[ring], #16]\n\t"
      "lsl %[limit], %[limit], %[t]\n\t"
      "ldr %w[t], [%[ring], #28]\n\t"
      "cbnz %w[t], 12f\n\t"
      "add %[t], %[slot], #64\n\t"
      "ldar %[t], [%[t]]\n\t" /* S1 */
      "cmp %[t], %[limit]\n\t"
      "b.lo 8f\n\t"
      "b 10f\n"
      "12:\n\t"
      "str %[limit], [%[slot], #56]\n\t" /* S2 */
      "dmb ish\n"
      "10:\n\t"
      "add %[t], %[base], %w[head], uxtw\n\t"
      "str xzr, [%[t]]\n\t" /* S3 */
      "add %[sequence], %[sequence], #1\n\t"
      "add %[before], %[before], %[head], lsr #32\n\t"
      "add %[t], %[base], %[u]\n\t"
      "stp %[sequence], %[before], [%[t]]\n\t" /* S4 */
      "stp xzr, xzr, [%[t], #16]\n\t"
      "add %[u], %[u], #32\n\t"
      "stlr %[u], [%[slot]]\n" /* S5 */
      "2:\n\t"
      "mov %w[result], #0\n"
      "5:\n\t" WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
      : [result] "=&r"(result), [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&r"(head),
        [t] "=&r"(t), [u] "=&r"(u), [limit] "=&r"(limit), [sequence] "=&r"(sequence),
        [before] "=&r"(before), [next] "=&r"(next), [aborts] "+&r"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "r"(id_offset), [increment] "r"(increment)
      : "memory", "cc");
  return (enum weft_write_result)result;
}

/* D: counts one discarded event in this thread's slot. */
static inline enum weft_write_result weft_count_discard(void* rseq, uint64_t id_offset,
                                                        const struct weft_writer_ring* ring,
                                                        enum weft_discard_reason reason) {
  uint64_t slot, base, t, result;
  uint64_t aborts = WEFT_MAX_ABORTS;
  const uint64_t index = (uint64_t)reason;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER
      "ldr %w[t], [%[slot], #8]\n\t"
      "cbnz %w[t], 7f\n\t"
      "add %[base], %[slot], %[index], lsl #3\n\t"
      "ldr %[t], [%[base], #16]\n\t"
      "add %[t], %[t], #1\n\t"
      "str %[t], [%[base], #16]\n"
      "2:\n\t"
      "mov %w[result], #0\n"
      "5:\n\t" WEFT_RSEQ_EXIT(6, 1) WEFT_RSEQ_EXIT(7, 3) WEFT_RSEQ_ABORT
      : [result] "=&r"(result), [slot] "=&r"(slot), [base] "=&r"(base), [t] "=&r"(t),
        [aborts] "+&r"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "r"(id_offset), [index] "r"(index)
      : "memory", "cc");
  return (enum weft_write_result)result;
}

#endif /* WEFT_LIB_RING_WRITER_AARCH64_H_ */
