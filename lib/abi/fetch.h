/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Fetch programs tell weft.ko how to make an event's image (lib/abi/event.h) from the arguments of
 * a probe. The agent compiles them from the kernel's BTF and the catalogue (node-agent/kernel); the
 * module validates them (lib/event/fetch_validate.h) and runs them at each event.
 * docs/formats/kernel.md has a worked example.
 *
 * A program is an array of struct weft_fetch_op, run once from first to last: no jumps. It has a
 * value A, 64 bits, zero at first, a count N, and two marks, FAULT and OTHER. Operations before
 * OUTPUT change these; each one from WEFT_FETCH_STORE on makes one field, in the order of the
 * description's fields, one operation a field, nowrite fields in their places as well.
 *
 * Arguments, by kind of event:
 *   TRACEPOINT       the tracepoint's, from 0, without the probe's data pointer
 *   SYSCALL_ENTRY    0 to 5 the system call's arguments, 6 its number
 *   SYSCALL_EXIT     the same, 7 what it returns
 *   KPROBE           0 to 5 the registers of integer arguments, 6 the instruction's address
 *   KRETPROBE        0 to 5 the same at entry, 6 the function's address, 7 what it returns, 8 ns it
 *                    took
 *   STATE            0 to 5: enum weft_kernel_state of kernel.h; 0 where there is none. USER is not
 *                    allowed: the current task is the one that asked for the dump
 *   UPROBE           as KPROBE, of a function of the process (64 bits)
 *   URETPROBE        as KRETPROBE; and both have the process's registers: REG
 * Upper bits of an argument narrower than 64 bits are undefined: ARG cuts.
 *
 * A fault (an address that cannot be read) sets FAULT until the next ARG or REG: A is 0, and fields
 * made meanwhile are 0 or empty, texts "(fault)" as far as they have room. That also goes for TASK,
 * TRUSTED reads, and all reads but USER's, where A is no address of the kernel's half that can be
 * one (NULL, an error number as a pointer): arguments may be NULL. OTHER: A came from a task that
 * the session's scope does not have; fields made meanwhile are 0, or the text "other", until the
 * next ARG without KEEP_OTHER.
 *
 * Extension rules are those of filters: unknown values are refused; reserved is zero and checked.
 * (*): where enum weft_kernel_feature has WEFT_KERNEL_PARTS; (**): WEFT_KERNEL_USER_ADDRESSES;
 * (***): WEFT_KERNEL_SOCKET_ADDRESSES.
 */
#ifndef WEFT_LIB_ABI_FETCH_H_
#define WEFT_LIB_ABI_FETCH_H_

#include "event.h"

#define WEFT_FETCH_MAX_OPS 256u
#define WEFT_FETCH_MAX_ARGS 12u
#define WEFT_FETCH_MAX_FIXED 256u /* bytes of the fixed part: it is made on the stack */
#define WEFT_FETCH_MAX_SEGMENTS 16u
#define WEFT_FETCH_MAX_STRING 4096u /* bytes of one string, or of one sequence: `limit` */
#define WEFT_FETCH_MAX_BYTES 8192u  /* the limits of all segments of a program, added */
#define WEFT_FETCH_MAX_PARTS 16u    /* elements of GATHER, and of SEQUENCE with `arg` */
#define WEFT_FETCH_NO_ARG 255u      /* GATHER: no argument says how many bytes there are */

/* Registers of REG: DWARF's numbers are below this. The last one is the instruction's address. */
#if defined(__x86_64__)
#define WEFT_FETCH_REGISTERS 17u /* x86-64 psABI 0.99, figure 3.36 */
#elif defined(__aarch64__)
#define WEFT_FETCH_REGISTERS 33u /* DWARF for the Arm 64-bit Architecture, 4.1 */
#else
#define WEFT_FETCH_REGISTERS 0u
#endif
#define WEFT_FETCH_REG_ZERO 255u /* no register: where an operand is a constant */

enum weft_fetch_code {
  WEFT_FETCH_ARG =
      1, /* A = argument `arg`, its low `size` bytes; FAULT, OTHER off, but see KEEP_OTHER */
  WEFT_FETCH_LOAD = 2,  /* A = the `size` bytes at A + offset */
  WEFT_FETCH_ADD = 3,   /* A += offset */
  WEFT_FETCH_BITS = 4,  /* A = `size` bits of A from bit `offset` on: a bit-field */
  WEFT_FETCH_COUNT = 5, /* N = A, at most UINT32_MAX; 0 where A is negative */
  WEFT_FETCH_TASK = 6, /* A, a whole argument, is a struct task_struct *: OTHER, unless it is in the
                          session's scope. Tracepoints and STATE only */
  WEFT_FETCH_REG = 7,  /* A = register `arg` by DWARF's number, its low `size` bytes, as ARG does;
                         WEFT_FETCH_REG_ZERO: 0. UPROBE, URETPROBE (there: at the return) only */
  WEFT_FETCH_WITHIN = 8, /* FAULT, unless N is at least `offset`: what is at A has N bytes, and
                            the field ends at `offset` (***) */
  /* OUTPUT: each makes one field. */
  WEFT_FETCH_STORE = 16,  /* INTEGER, ENUM: the low `size` bytes of A */
  WEFT_FETCH_BYTES = 17,  /* ARRAY, INLINE: `size` bytes at A + offset; TEXT: behind a NUL zeros */
  WEFT_FETCH_STRING = 18, /* STRING: text at A + offset, up to a NUL, at most `limit` bytes */
  WEFT_FETCH_SEQUENCE =
      19, /* SEQUENCE: N elements of `size` bytes at A + offset, cut to `limit` bytes; `arg`: bytes
             from the beginning of one to that of the next, 0: they touch. With `arg` at most
             WEFT_FETCH_MAX_PARTS, and it ends before one that cannot be read (*) */
  WEFT_FETCH_GATHER =
      20, /* SEQUENCE of bytes: what the N buffers hold, one behind the other, that the array at A +
             offset names, each by an address and a length of `size` bytes (4 or 8), as struct iovec
             does. At most as many bytes as argument `arg` says, none where that is negative, cut to
             `limit` bytes; of the first WEFT_FETCH_MAX_PARTS buffers; it ends before one that
             cannot be read. USER only (*) */
  WEFT_FETCH_UNIX_PATH =
      21, /* STRING: the path, from `offset` on, of the socket address of N bytes at A: text up to
             a NUL, N, or `limit` bytes. An abstract name, which begins with a NUL, ends at N or
             `limit` alone, and each of its NULs is '@', as in /proc/net/unix. Empty where the
             family, the 2 bytes at A, is not AF_UNIX, or N ends before the path. Nothing behind
             N is read. USER only (***) */
};

enum weft_fetch_flag {
  WEFT_FETCH_SIGNED = 1 << 0, /* ARG, REG, LOAD, BITS: sign-extended */
  /* LOAD, BYTES: reads the memory that the probe's own argument points to, without fault handling.
     Only for tracepoints and STATE, and only if A is an argument, perhaps with offsets added */
  WEFT_FETCH_TRUSTED = 1 << 1,
  /* LOAD, BYTES, STRING, SEQUENCE: the current task's user memory, without sleeping: what is not
     resident is a fault. STORE: A where it can be an address of user memory, else 0: a pointer
     whose type does not say which it is, for readers that may not see the kernel's (**) */
  WEFT_FETCH_USER = 1 << 2,
  /* ARG: OTHER stays set, because the argument describes the task before it */
  WEFT_FETCH_KEEP_OTHER = 1 << 3,
};

struct weft_fetch_op {
  uint8_t code;
  uint8_t arg;
  uint8_t size;  /* bytes: 1, 2, 4 or 8; BYTES: 1 to WEFT_INLINE_ARRAY_MAX; BITS: 1 to 64 */
  uint8_t flags; /* enum weft_fetch_flag */
  int32_t offset;
  uint32_t limit; /* bytes: 1 to WEFT_FETCH_MAX_STRING; SEQUENCE: a multiple of size */
  uint32_t reserved;
};
WEFT_ABI_ASSERT(sizeof(struct weft_fetch_op) == 16, "fetch operation is 16 bytes");

#endif /* WEFT_LIB_ABI_FETCH_H_ */
