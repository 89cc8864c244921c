// SPDX-License-Identifier: Apache-2.0
// The parts of hooks that C cannot express. All of them keep every register that a caller could
// rely on: gcc's -fipa-ra lets a caller keep values in registers that it knows its callee leaves
// alone. The library uses no upper halves of vector registers.
//
// The tables of unwinding (.cfi_...) let backtrace(), exceptions and debuggers pass:
//   in a function that a stub called, the return address leads into the stub. There
//   weft_hook_stub_data has the caller: the page of stubs begins with the distance to it.
//   in the two or three instructions of a stub where the stack has neither address, a stack that
//   a signal handler asks for ends there.
#include "ust-injector/preload/hooks_asm.h"

#if defined(__x86_64__)

// struct weft_hook_registers, 136 bytes, below what lies in the stack. `cfa`: the distance to the
// caller's frame is that much afterwards. Of the floating registers, only xmm0 is stored here.
#define SAVE(cfa)            \
  "subq $136, %rsp\n\t"      \
  ".cfi_def_cfa_offset " cfa \
  "\n\t"                     \
  "movq %rdi, 64(%rsp)\n\t"  \
  "movq %rsi, 72(%rsp)\n\t"  \
  "movq %rdx, 80(%rsp)\n\t"  \
  "movq %rcx, 88(%rsp)\n\t"  \
  "movq %r8, 96(%rsp)\n\t"   \
  "movq %r9, 104(%rsp)\n\t"  \
  "movq %rax, 112(%rsp)\n\t" \
  "movq %r10, 120(%rsp)\n\t" \
  "movq %r11, 128(%rsp)\n\t" \
  "movq %xmm0, 0(%rsp)\n\t"

#define RESTORE              \
  "movq 64(%rsp), %rdi\n\t"  \
  "movq 72(%rsp), %rsi\n\t"  \
  "movq 80(%rsp), %rdx\n\t"  \
  "movq 88(%rsp), %rcx\n\t"  \
  "movq 96(%rsp), %r8\n\t"   \
  "movq 104(%rsp), %r9\n\t"  \
  "movq 112(%rsp), %rax\n\t" \
  "movq 120(%rsp), %r10\n\t" \
  "movq 128(%rsp), %r11\n\t"

// From a thunk: the hook lies on the stack, below the return address. Leaves as a jump to the
// displaced instructions, with the stack of the call; or to a stub, without the return address.
// Both addresses are read below the stack pointer, where signal handlers do not write (the red
// zone of 128 bytes).
__asm__(
    ".text\n"
    ".globl weft_hook_entry\n"
    ".hidden weft_hook_entry\n"
    ".type weft_hook_entry, @function\n"
    ".balign 64\n"
    "weft_hook_entry:\n\t"
    ".cfi_startproc\n\t"
    ".cfi_def_cfa_offset 16\n\t"  //
    SAVE("152")
    "movq 136(%rsp), %rsi\n\t"
    "cmpl $1, 80(%rsi)\n\t"  // hook->floating_count
    "ja 2f\n"
    "1:\n\t"
    "movq %rsp, %rdi\n\t"
    "call weft_hook_enter\n\t"
    "testq %rax, %rax\n\t"
    "jz 3f\n\t"
    "movq %rax, 136(%rsp)\n\t"  //
    RESTORE
    ".cfi_remember_state\n\t"
    "addq $152, %rsp\n\t"
    ".cfi_def_cfa_offset 0\n\t"
    "jmp *-16(%rsp)\n"
    ".cfi_restore_state\n"
    "2:\n\t"
    "movq %xmm1, 8(%rsp)\n\t"
    "movq %xmm2, 16(%rsp)\n\t"
    "movq %xmm3, 24(%rsp)\n\t"
    "movq %xmm4, 32(%rsp)\n\t"
    "movq %xmm5, 40(%rsp)\n\t"
    "movq %xmm6, 48(%rsp)\n\t"
    "movq %xmm7, 56(%rsp)\n\t"
    "jmp 1b\n"
    "3:\n\t"
    "movq 136(%rsp), %rax\n\t"
    "movq 8(%rax), %rax\n\t"  // hook->resume
    "movq %rax, 136(%rsp)\n\t"  //
    RESTORE
    "addq $144, %rsp\n\t"
    ".cfi_def_cfa_offset 8\n\t"
    "jmp *-8(%rsp)\n\t"
    ".cfi_endproc\n"
    ".size weft_hook_entry, . - weft_hook_entry\n");

// From a stub: its number lies on the stack, where the return address was, until the call is over
// (hook_calls.h).
__asm__(
    ".text\n"
    ".type weft_hook_exit, @function\n"
    ".balign 64\n"
    "weft_hook_exit:\n\t"
    ".cfi_startproc\n\t"
    ".cfi_undefined %rip\n\t"  //
    SAVE("144")
    "movq 136(%rsp), %rsi\n\t"
    "movq %rsp, %rdi\n\t"
    "call weft_hook_leave\n\t"
    "movq %rax, 136(%rsp)\n\t"
    ".cfi_offset %rip, -8\n\t"  //
    RESTORE
    "addq $136, %rsp\n\t"
    ".cfi_def_cfa_offset 8\n\t"
    "ret\n\t"
    ".cfi_endproc\n"
    ".size weft_hook_exit, . - weft_hook_exit\n");

// uint64_t weft_hook_call_slowly(function, first, second, third, fourth)
#define EACH_VECTOR(does)                                                                        \
  does("0", "0") does("1", "16") does("2", "32") does("3", "48") does("4", "64") does("5", "80") \
      does("6", "96") does("7", "112") does("8", "128") does("9", "144") does("10", "160")       \
          does("11", "176") does("12", "192") does("13", "208") does("14", "224")                \
              does("15", "240")
#define SAVE_VECTOR(n, at) "movups %xmm" n ", " at "(%rsp)\n\t"
#define RESTORE_VECTOR(n, at) "movups " at "(%rsp), %xmm" n "\n\t"
__asm__(
    ".text\n"
    ".globl weft_hook_call_slowly\n"
    ".hidden weft_hook_call_slowly\n"
    ".type weft_hook_call_slowly, @function\n"
    "weft_hook_call_slowly:\n\t"
    ".cfi_startproc\n\t"
    "pushq %rbp\n\t"
    ".cfi_def_cfa_offset 16\n\t"
    ".cfi_offset %rbp, -16\n\t"
    "movq %rsp, %rbp\n\t"
    ".cfi_def_cfa_register %rbp\n\t"
    "subq $256, %rsp\n\t"
    "andq $-16, %rsp\n\t"  //
    EACH_VECTOR(SAVE_VECTOR)
    "movq %rdi, %rax\n\t"
    "movq %rsi, %rdi\n\t"
    "movq %rdx, %rsi\n\t"
    "movq %rcx, %rdx\n\t"
    "movq %r8, %rcx\n\t"
    "call *%rax\n\t"  //
    EACH_VECTOR(RESTORE_VECTOR)
    "leave\n\t"
    ".cfi_def_cfa %rsp, 8\n\t"
    ".cfi_restore %rbp\n\t"
    "ret\n\t"
    ".cfi_endproc\n"
    ".size weft_hook_call_slowly, . - weft_hook_call_slowly\n");

// Pages of stubs. The first 8 bytes of a page are the distance from it to its part of
// weft_hook_stub_data, in which each stub's data has the stub's own offset; the next 8 are
// WEFT_HOOK_PAGE_MARK. Stub number n:
//     call *weft_hook_stub_data[n].calls(%rip)
//     push n
//     jmp weft_hook_exit
//
// In the caller's frame (a return address is looked up by the byte before it, inside the call):
//   stack pointer: where it is, since the function's return took the address from the stack
//   CFA: 8 more, for each frame must have its own
//   return address: at weft_hook_stub_data, by the stub's address S, which is still in the slot A
//   below the stack pointer. With P = S & -4096, the page, it is at P + *P + (S & 0xff0). After
//   weft_hook_personality has put the caller's address into the slot, where the unwinder still is
//   in the stub's frame, it is at A itself: P is no page of stubs then, and lacks the mark.
//     A: DW_OP_breg7 -8;  S: A, deref;  P: S, const2s -4096, and
//     P, P, deref, plus, S, const2u 0xff0, and, plus, A, minus
//     P, plus_uconst 8, deref, const4s MARK, eq, mul, A, plus
//   (Valgrind's reader has no DW_OP_dup and warns of it.)
#define SLOT "0x77, 0x78, "
#define STUB SLOT "0x06, "
#define PAGE STUB "0x0b, 0x00, 0xf0, 0x1a, "
#define STUBS_CFI                                                \
  ".cfi_def_cfa %rsp, 8\n\t"                                     \
  ".cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00\n\t"                 \
  ".cfi_escape 0x10, 0x10, 0x2f, " PAGE PAGE "0x06, 0x22, " STUB \
  "0x0a, 0xf0, 0x0f, 0x1a, 0x22, " SLOT "0x1c, " PAGE            \
  "0x23, 0x08, 0x06, 0x0d, 0x4e, 0xd9, 0xb5, 0x63, 0x29, 0x1e, " SLOT "0x22\n\t"

__asm__(
    ".text\n"
    ".globl weft_hook_stubs\n"
    ".hidden weft_hook_stubs\n"
    ".type weft_hook_stubs, @object\n"
    ".balign 4096\n"
    "weft_hook_stubs:\n\t"
    ".set weft_hook_number, 0\n\t"
    ".rept 16\n\t"
    ".cfi_startproc\n\t"
    ".cfi_personality 0x1b, weft_hook_personality\n\t"  //
    STUBS_CFI
    ".cfi_remember_state\n\t"
    ".cfi_undefined %rip\n\t"
    ".quad weft_hook_stub_data + 16 * weft_hook_number - .\n\t"
    ".quad 0x63b5d94e\n\t"
    ".set weft_hook_number, weft_hook_number + 1\n\t"
    ".rept 255\n\t"
    ".byte 0xff\n\t"
    ".cfi_restore_state\n\t"
    ".cfi_remember_state\n\t"
    ".byte 0x15\n\t"
    ".long weft_hook_stub_data + 16 * weft_hook_number + 8 - (. + 4)\n\t"
    ".cfi_undefined %rip\n\t"
    ".byte 0x68\n\t"
    ".long weft_hook_number\n\t"
    ".byte 0xe9\n\t"
    ".long weft_hook_exit - (. + 4)\n\t"
    ".set weft_hook_number, weft_hook_number + 1\n\t"
    ".endr\n\t"
    ".cfi_endproc\n\t"
    ".endr\n"
    ".size weft_hook_stubs, . - weft_hook_stubs\n");

_Static_assert(WEFT_HOOK_PAGE_MARK == 0x63b5d94e, "as written above");
_Static_assert(WEFT_HOOK_PAGES == 16 && WEFT_HOOK_STUBS_PER_PAGE == 256, "as repeated above");
_Static_assert(sizeof(struct weft_hook_registers) == 136, "as saved above");
_Static_assert(__builtin_offsetof(struct weft_hook_registers, general) == 64, "as saved above");
_Static_assert(__builtin_offsetof(struct weft_hook, resume) == 8, "as read above");
_Static_assert(__builtin_offsetof(struct weft_hook, floating_count) == 80, "as read above");

#endif
