/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The writer's sections for x86-64: restartable sequences as in Linux's rseq(2). Included only by
 * libweft.so, which is never unloaded (a stale rseq_cs in unloaded memory kills the thread).
 *
 * Every section has the same shape:
 *     rseq->rseq_cs = descriptor            the kernel now knows [start, post_commit)
 *   start:
 *     slot of this thread, or leave         ENTER below; nothing is stored before it
 *     ... stores that no reader looks at ...
 *     one store                             the commit
 *   post_commit:
 * Preemption, migration or a signal inside sends the thread to `abort`, which starts the section
 * again, at most WEFT_MAX_ABORTS times in a row (a debugger that single-steps would never end), or
 * leaves to one that does.
 *
 * TSO gives the order of stores (payload before commit) and of loads; no fence is needed. The loads
 * of `tail` and `closed` are ordinary loads of words that a reader stores with release order.
 */
#ifndef WEFT_LIB_RING_WRITER_X86_64_H_
#define WEFT_LIB_RING_WRITER_X86_64_H_

#include "writer.h"

#define WEFT_MAX_ABORTS 256

/* Offsets in struct rseq: cpu_id 4, rseq_cs 8. */

#define WEFT_RSEQ_DESCRIPTOR              \
  ".pushsection weft_rseq_cs, \"aw\"\n\t" \
  ".balign 32\n"                          \
  "9:\n\t"                                \
  ".long 0, 0\n\t"                        \
  ".quad 1f, (2f - 1f), 4f\n\t"           \
  ".popsection\n\t"

#define WEFT_RSEQ_ABORT_TO(instructions) \
  ".pushsection .text.weft_rseq_abort, \"ax\"\n\t"             \
  ".byte 0x0f, 0xb9, 0x3d\n\t" /* ud1 signature(%rip), %edi */ \
  ".long " WEFT_RSEQ_TEXT(WEFT_RSEQ_SIGNATURE) "\n"            \
  "4:\n\t" instructions ".popsection\n\t"

#define WEFT_RSEQ_ABORT    \
  WEFT_RSEQ_ABORT_TO(      \
      "decl %[aborts]\n\t" \
      "jnz 3b\n\t"         \
      "jmp 6b\n\t")

/* Start of a section; `rseq` is the area's rseq_cs. Clobbers rax. */
#define WEFT_RSEQ_START(rseq) \
  "3:\n\t"                    \
  "leaq 9b(%%rip), %%rax\n\t" \
  "movq %%rax, " rseq         \
  "\n"                        \
  "1:\n\t"

/* Takes ecx, a slot's number, and slot, the table of slots: rcx = where the slot stands there.
 * Leaves to 6 when the number is out of range, as all are while there is no ring set. */
#define WEFT_RSEQ_CHECK_SLOT  \
  "cmpl (%[slot]), %%ecx\n\t" \
  "jae 6f\n\t"                \
  "shll $4, %%ecx\n\t"

/* base = that slot's ring, then slot = the slot. */
#define WEFT_RSEQ_LOAD_BASE "movq 24(%[slot], %%rcx), %[base]\n\t"
#define WEFT_RSEQ_LOAD_SLOT "movq 16(%[slot], %%rcx), %[slot]\n\t"

/* Start of a section, and this thread's slot. Leaves to 6 when the process has no ring set, the
 * thread has no rseq, or its slot's number is out of range. */
#define WEFT_RSEQ_ENTER          \
  WEFT_RSEQ_START("8(%[rseq])")  \
  "movq (%[ring]), %[slot]\n\t"  \
  "testq %[slot], %[slot]\n\t"   \
  "jz 6f\n\t"                    \
  "cmpl $0, 4(%[rseq])\n\t"      \
  "jl 6f\n\t"                    \
  "movl %[id_offset], %%ecx\n\t" \
  "movl (%[rseq], %%rcx), %%ecx\n\t" WEFT_RSEQ_CHECK_SLOT WEFT_RSEQ_LOAD_BASE WEFT_RSEQ_LOAD_SLOT

/* The reader's CPU has the ring's lines: those of later records are fetched for writing, so far
 * ahead that they are here when they are written. */
#define WEFT_RSEQ_FETCH "prefetchw 4096(%[base])\n\t"

/* Sets base = the new record, head = its next value. Leaves to 7 when closed, to 8 when the end
 * would lie in another sub-buffer than the begin: then more differs than offsets in one do.
 * Clobbers rcx. */
#define WEFT_RSEQ_RESERVE          \
  "movq (%[slot]), %[head]\n\t"    \
  "cmpl $0, 8(%[slot])\n\t"        \
  "jne 7f\n\t"                     \
  "movl %k[head], %%ecx\n\t"       \
  "addq %[increment], %[head]\n\t" \
  "addq %%rcx, %[base]\n\t"        \
  "xorl %k[head], %%ecx\n\t"       \
  "cmpl 12(%[ring]), %%ecx\n\t"    \
  "ja 8f\n\t" WEFT_RSEQ_FETCH

/* The exit of a section at `label`: returns this result, out of line. */
#define WEFT_RSEQ_EXIT(label, result)                   \
  ".pushsection .text.weft_rseq_exits, \"ax\"\n" #label \
  ":\n\t"                                               \
  "movl $" #result                                      \
  ", %%eax\n\t"                                         \
  "jmp 5b\n\t"                                          \
  ".popsection\n\t"

#define WEFT_RSEQ_EXITS WEFT_RSEQ_EXIT(6, 1) WEFT_RSEQ_EXIT(8, 2) WEFT_RSEQ_EXIT(7, 3)

#if defined(__SSE2__)
/* The words of a payload behind the header, if the code has their number, 1 to 4: loads them to
 * registers, and stores them to the record. The first two and the others are separate, so that
 * neither waits for the other. */
#define WEFT_WORDS_LOAD_FIRST       \
  ".if %c[words] >= 2\n\t"          \
  "movups (%[payload]), %%xmm0\n\t" \
  ".elseif %c[words]\n\t"           \
  "movq (%[payload]), %%xmm0\n\t"   \
  ".endif\n\t"
#define WEFT_WORDS_LOAD_OTHERS        \
  ".if %c[words] == 4\n\t"            \
  "movups 16(%[payload]), %%xmm1\n\t" \
  ".elseif %c[words] == 3\n\t"        \
  "movq 16(%[payload]), %%xmm1\n\t"   \
  ".endif\n\t"
#define WEFT_WORDS_STORE_FIRST     \
  ".if %c[words] >= 2\n\t"         \
  "movups %%xmm0, 16(%[base])\n\t" \
  ".elseif %c[words]\n\t"          \
  "movq %%xmm0, 16(%[base])\n\t"   \
  ".endif\n\t"
#define WEFT_WORDS_STORE_OTHERS    \
  ".if %c[words] == 4\n\t"         \
  "movups %%xmm1, 32(%[base])\n\t" \
  ".elseif %c[words] == 3\n\t"     \
  "movq %%xmm1, 32(%[base])\n\t"   \
  ".endif\n\t"
#define WEFT_WORDS_CLOBBERS "xmm0", "xmm1",
#else /* a file without vector registers: `words` is 0 */
#define WEFT_WORDS_LOAD_FIRST
#define WEFT_WORDS_LOAD_OTHERS
#define WEFT_WORDS_STORE_FIRST
#define WEFT_WORDS_STORE_OTHERS
#define WEFT_WORDS_CLOBBERS
#endif

/* Copies as many words as the record has, if the code has no number. Clobbers base. */
#define WEFT_WORDS_COPY                    \
  ".ifeq %c[words]\n\t"                    \
  "movl %[increment], %%ecx\n\t"           \
  "leaq -16(%[payload], %%rcx), %%rdx\n\t" \
  "addq %%rcx, %[base]\n\t"                \
  "negq %%rcx\n\t"                         \
  "addq $16, %%rcx\n\t"                    \
  "jz 11f\n"                               \
  "10:\n\t"                                \
  "movq (%%rdx, %%rcx), %%rax\n\t"         \
  "movq %%rax, (%[base], %%rcx)\n\t"       \
  "addq $8, %%rcx\n\t"                     \
  "jnz 10b\n"                              \
  "11:\n\t"                                \
  ".endif\n\t"

/*
 * W for a record whose bytes lie in one buffer: payload is 8-byte aligned, readable up to a
 * multiple of 8 bytes, and increment's low half is sizeof(struct weft_record) + that multiple.
 * `words`, a constant, is that multiple's number of words, at most 4; 0: it is not known. `rseq`:
 * from the thread pointer; `id_offset`, a constant, is the slot's number's in it. Returns false if
 * nothing was written; weft_write_pieces finds out why, and begins again after an abort.
 *
 * This is the shortest way: it uses no register beyond those that a call may clobber, and has no
 * result but the way it leaves. Tests are combined: the sub-buffer's end and `closed` in ecx, and
 * cpu_id's sign (set if the thread has no rseq) where it goes into the header. The table's count
 * tells that there is a ring set.
 *
 * The order was found by measuring. Before a CPU reads its counter, it waits for all running
 * instructions and begins no others. All the rest costs only its issue, and about 15 cycles of
 * dependent instructions before the counter are free. The counter is therefore read as soon as the
 * slot's ring is being loaded; a commit to the slot in between makes this section begin again. The
 * payload, which the probe stored a moment ago in other pieces, is loaded in two parts that lie
 * apart. Its address stays in the register that it comes in; head has one that the caller is done
 * with.
 */
static inline __attribute__((always_inline)) bool weft_write_words(
    intptr_t rseq, uint32_t id_offset, const struct weft_record_class* record,
    const uint64_t* payload, uint32_t words) {
  uint64_t head, slot, base;
  __asm__ volatile goto(
      WEFT_RSEQ_DESCRIPTOR
      "movq %[slots], %[slot]\n\t"
      WEFT_RSEQ_START("%%fs:8(%[rseq])")
      "movl %%fs:%c[id_offset](%[rseq]), %%ecx\n\t"
      WEFT_RSEQ_CHECK_SLOT
      WEFT_RSEQ_LOAD_BASE
      "rdtsc\n\t"
      WEFT_RSEQ_LOAD_SLOT
      WEFT_WORDS_LOAD_OTHERS
      "movq (%[slot]), %[head]\n\t"
      "movl %k[head], %%ecx\n\t"
      "addq %[increment], %[head]\n\t"
      "addq %%rcx, %[base]\n\t"
      "xorl %k[head], %%ecx\n\t"
      "orl 8(%[slot]), %%ecx\n\t"
      "testl %%ecx, %[boundary]\n\t"
      "jnz 6f\n\t"
      WEFT_WORDS_LOAD_FIRST
      WEFT_WORDS_STORE_OTHERS
      "movl %%fs:4(%[rseq]), %%ecx\n\t"
      "movl %%edx, 12(%[base])\n\t"
      "shlq $48, %%rcx\n\t"
      "js 6f\n\t"
      "orq %[word0], %%rcx\n\t"
      WEFT_WORDS_STORE_FIRST
      WEFT_RSEQ_FETCH
      "movl %%eax, 8(%[base])\n\t"
      "movq %%rcx, (%[base])\n\t"
      WEFT_WORDS_COPY
      "movq %[head], (%[slot])\n"
      "2:\n\t"
      ".pushsection .text.weft_rseq_exits, \"ax\"\n"
      "6:\n\t"
      "jmp %l[failed]\n\t"
      ".popsection\n\t"
      WEFT_RSEQ_ABORT_TO("jmp %l[failed]\n\t")
      : [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&D"(head)
      : [rseq] "r"(rseq), [slots] "m"(record->slots), [id_offset] "i"(id_offset),
        [word0] "m"(record->word0), [increment] "m"(record->increment),
        [boundary] "m"(record->boundary), [payload] "S"(payload), [words] "i"(words)
      : "rax", "rcx", "rdx", WEFT_WORDS_CLOBBERS "memory", "cc"
      : failed);
  return true;
failed:
  return false;
}

/* Writes the record of `parts` with the time in rax, and commits. */
#define WEFT_PIECES_WRITE        \
  "movl 4(%[rseq]), %%edx\n\t"   \
  "shlq $48, %%rdx\n\t"          \
  "orq (%[parts]), %%rdx\n\t"    \
  "movq %%rdx, (%[base])\n\t"    \
  "movq %%rax, 8(%[base])\n\t"   \
  "leaq 16(%[base]), %%rdi\n\t"  \
  "movq 16(%[parts]), %%rax\n\t" \
  "movq 24(%[parts]), %%rdx\n\t" \
  "shlq $4, %%rdx\n\t"           \
  "addq %%rax, %%rdx\n"          \
  "10:\n\t"                      \
  "cmpq %%rdx, %%rax\n\t"        \
  "jae 11f\n\t"                  \
  "movq (%%rax), %%rsi\n\t"      \
  "movq 8(%%rax), %%rcx\n\t"     \
  "addq $16, %%rax\n\t"          \
  "cmpq $64, %%rcx\n\t"          \
  "ja 14f\n"                     \
  "13:\n\t"                      \
  "subq $8, %%rcx\n\t"           \
  "jb 15f\n\t"                   \
  "movq (%%rsi), %[base]\n\t"    \
  "movq %[base], (%%rdi)\n\t"    \
  "addq $8, %%rsi\n\t"           \
  "addq $8, %%rdi\n\t"           \
  "jmp 13b\n"                    \
  "15:\n\t"                      \
  "addq $8, %%rcx\n\t"           \
  "jz 10b\n"                     \
  "testb $4, %%cl\n\t"           \
  "jz 16f\n\t"                   \
  "movl (%%rsi), %k[base]\n\t"   \
  "movl %k[base], (%%rdi)\n\t"   \
  "addq $4, %%rsi\n\t"           \
  "addq $4, %%rdi\n"             \
  "16:\n\t"                      \
  "testb $2, %%cl\n\t"           \
  "jz 18f\n\t"                   \
  "movw (%%rsi), %w[base]\n\t"   \
  "movw %w[base], (%%rdi)\n\t"   \
  "addq $2, %%rsi\n\t"           \
  "addq $2, %%rdi\n"             \
  "18:\n\t"                      \
  "testb $1, %%cl\n\t"           \
  "jz 10b\n\t"                   \
  "movb (%%rsi), %b[base]\n\t"   \
  "movb %b[base], (%%rdi)\n\t"   \
  "incq %%rdi\n\t"               \
  "jmp 10b\n"                    \
  "14:\n\t"                      \
  "rep movsb\n\t"                \
  "jmp 10b\n"                    \
  "11:\n\t"                      \
  "movq %[head], (%[slot])\n"    \
  "2:\n\t"                       \
  "xorl %%eax, %%eax\n"          \
  "5:\n\t"

/* W for a record in pieces of any size and alignment. A piece that faults kills the program as the
 * same access outside would; nothing was committed. */
static inline enum weft_write_result weft_write_pieces(void* rseq, uint32_t id_offset,
                                                       const struct weft_writer_ring* ring,
                                                       const struct weft_record_parts* parts) {
  uint64_t head, slot, base;
  uint32_t result, aborts = WEFT_MAX_ABORTS;
  __asm__ volatile(WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER WEFT_RSEQ_RESERVE
                   "rdtsc\n\t"
                   "shlq $32, %%rdx\n\t"
                   "orq %%rdx, %%rax\n\t" WEFT_PIECES_WRITE WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
                   : "=&a"(result), [slot] "=&r"(slot), [base] "=&q"(base), [head] "=&r"(head),
                     [aborts] "+m"(aborts)
                   : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "rm"(id_offset),
                     [parts] "r"(parts), [increment] "m"(parts->increment)
                   : "rcx", "rdx", "rsi", "rdi", "memory", "cc");
  return (enum weft_write_result)result;
}

/* Loads the sequence of head's sub-buffer into rax. */
#define WEFT_RSEQ_SEQUENCE      \
  "movl 12(%[ring]), %%eax\n\t" \
  "notl %%eax\n\t"              \
  "andl %k[head], %%eax\n\t"    \
  "movq (%[base], %%rax), %%rax\n\t"

/* Finds the place of this thread's next record; the time is missing. Stores nothing to the ring. */
static inline enum weft_write_result weft_look(void* rseq, uint32_t id_offset,
                                               const struct weft_writer_ring* ring,
                                               struct weft_place* place) {
  uint64_t head, slot, base;
  uint32_t result, aborts = WEFT_MAX_ABORTS;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER "movq (%[slot]), %[head]\n\t" WEFT_RSEQ_SEQUENCE
                                           "movq %[slot], (%[place])\n\t"
                                           "movq %[head], 8(%[place])\n\t"
                                           "movq %%rax, 16(%[place])\n"
                                           "2:\n\t"
                                           "xorl %%eax, %%eax\n"
                                           "5:\n\t" WEFT_RSEQ_EXIT(6, 1) WEFT_RSEQ_ABORT
      : "=&a"(result), [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&r"(head),
        [aborts] "+m"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "rm"(id_offset), [place] "r"(place)
      : "rcx", "memory", "cc");
  return (enum weft_write_result)result;
}

/* Like weft_write_pieces with place->time, if the record comes where weft_look saw; else MOVED. */
static inline enum weft_write_result weft_write_pieces_at(void* rseq, uint32_t id_offset,
                                                          const struct weft_writer_ring* ring,
                                                          const struct weft_record_parts* parts,
                                                          const struct weft_place* place) {
  uint64_t head, slot, base;
  uint32_t result, aborts = WEFT_MAX_ABORTS;
  __asm__ volatile(WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER
                   "movq (%[slot]), %[head]\n\t" WEFT_RSEQ_SEQUENCE
                   "cmpq %[slot], (%[place])\n\t"
                   "jne 17f\n\t"
                   "cmpq %[head], 8(%[place])\n\t"
                   "jne 17f\n\t"
                   "cmpq %%rax, 16(%[place])\n\t"
                   "jne 17f\n\t" WEFT_RSEQ_RESERVE
                   "movq 24(%[place]), %%rax\n\t" WEFT_PIECES_WRITE WEFT_RSEQ_EXIT(17, 4)
                       WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
                   : "=&a"(result), [slot] "=&r"(slot), [base] "=&q"(base), [head] "=&r"(head),
                     [aborts] "+m"(aborts)
                   : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "rm"(id_offset),
                     [parts] "r"(parts), [increment] "m"(parts->increment), [place] "r"(place)
                   : "rcx", "rdx", "rsi", "rdi", "memory", "cc");
  return (enum weft_write_result)result;
}

/*
 * S: makes the next sub-buffer current, unless a record of `increment` fits into this one by now.
 * COMMITTED: try the write again. FULL: discard mode and no free sub-buffer.
 */
static inline enum weft_write_result weft_switch_subbuf(void* rseq, uint32_t id_offset,
                                                        const struct weft_writer_ring* ring,
                                                        uint64_t increment) {
  uint64_t head, slot, base, limit;
  uint32_t result, aborts = WEFT_MAX_ABORTS;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER
      "movq (%[slot]), %[head]\n\t"
      "cmpl $0, 8(%[slot])\n\t"
      "jne 7f\n\t"
      "movl %k[head], %%edx\n\t" /* edx: offset in the slot's ring */
      "movl 12(%[ring]), %%eax\n\t"
      "movl %%edx, %%ecx\n\t"
      "andl %%eax, %%ecx\n\t"
      "addl %k[increment], %%ecx\n\t"
      "cmpl %%eax, %%ecx\n\t"
      "jbe 2f\n\t" /* it fits: another writer switched; nothing to commit */
      "movl %%eax, %%ecx\n\t"
      "notl %%ecx\n\t"
      "andl %%edx, %%ecx\n\t"
      "movq (%[base], %%rcx), %%rdi\n\t"  /* rdi: sequence of the current sub-buffer */
      "movq 8(%[base], %%rcx), %%rsi\n\t" /* rsi: records before it */
      "leaq 1(%%rcx, %%rax), %%rax\n\t"
      "andl 20(%[ring]), %%eax\n\t" /* eax: offset of the next sub-buffer */
      /* S1, S2: limit = (sequence + 2 - sub-buffers) << shift, if that is positive */
      "movl 24(%[ring]), %k[limit]\n\t"
      "negq %[limit]\n\t"
      "leaq 2(%%rdi, %[limit]), %[limit]\n\t"
      "testq %[limit], %[limit]\n\t"
      "jle 10f\n\t"
      "movl 16(%[ring]), %%ecx\n\t"
      "shlq %%cl, %[limit]\n\t"
      "cmpl $0, 28(%[ring])\n\t"
      "jne 11f\n\t"
      "cmpq %[limit], 64(%[slot])\n\t"
      "jb 8f\n\t"
      "jmp 10f\n"
      "11:\n\t"
      "movq %[limit], 56(%[slot])\n" /* the frontier never falls: sequences only grow */
      "10:\n\t"
      "movq $0, (%[base], %%rdx)\n\t" /* S3 */
      "incq %%rdi\n\t"
      "shrq $32, %[head]\n\t"
      "addq %[head], %%rsi\n\t"
      "movq %%rdi, (%[base], %%rax)\n\t" /* S4 */
      "movq %%rsi, 8(%[base], %%rax)\n\t"
      "movq $0, 16(%[base], %%rax)\n\t"
      "movq $0, 24(%[base], %%rax)\n\t"
      "addq $32, %%rax\n\t"
      "movq %%rax, (%[slot])\n" /* S5 */
      "2:\n\t"
      "xorl %%eax, %%eax\n"
      "5:\n\t" WEFT_RSEQ_EXITS WEFT_RSEQ_ABORT
      : "=&a"(result), [slot] "=&r"(slot), [base] "=&r"(base), [head] "=&r"(head),
        [limit] "=&r"(limit), [aborts] "+m"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "rm"(id_offset), [increment] "r"(increment)
      : "rcx", "rdx", "rsi", "rdi", "memory", "cc");
  return (enum weft_write_result)result;
}

/* D: counts one discarded event in this thread's slot. */
static inline enum weft_write_result weft_count_discard(void* rseq, uint32_t id_offset,
                                                        const struct weft_writer_ring* ring,
                                                        enum weft_discard_reason reason) {
  uint64_t slot, base;
  uint32_t result, aborts = WEFT_MAX_ABORTS;
  const uint64_t index = (uint64_t)reason;
  __asm__ volatile(
      WEFT_RSEQ_DESCRIPTOR WEFT_RSEQ_ENTER
      "cmpl $0, 8(%[slot])\n\t"
      "jne 7f\n\t"
      "movq 16(%[slot], %[index], 8), %%rax\n\t"
      "incq %%rax\n\t"
      "movq %%rax, 16(%[slot], %[index], 8)\n"
      "2:\n\t"
      "xorl %%eax, %%eax\n"
      "5:\n\t" WEFT_RSEQ_EXIT(6, 1) WEFT_RSEQ_EXIT(7, 3) WEFT_RSEQ_ABORT
      : "=&a"(result), [slot] "=&r"(slot), [base] "=&r"(base), [aborts] "+m"(aborts)
      : [rseq] "r"(rseq), [ring] "r"(ring), [id_offset] "rm"(id_offset), [index] "r"(index)
      : "rcx", "memory", "cc");
  return (enum weft_write_result)result;
}

#endif /* WEFT_LIB_RING_WRITER_X86_64_H_ */
