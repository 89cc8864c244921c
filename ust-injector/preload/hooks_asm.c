// SPDX-License-Identifier: Apache-2.0
// The parts of hooks.c that C cannot express. All of them keep every register that a caller could
// rely on: gcc's -fipa-ra lets a caller keep values in registers that it knows its callee leaves
// alone. The library uses no upper halves of vector registers.
//
// The tables of unwinding (.cfi_...) let backtrace(), exceptions and debuggers pass:
//   in a function that a stub called, the return address leads into the stub. There
//   weft_hook_stub_data has the caller: the page of stubs begins with the distance to it.
//   in the two or three instructions of a stub where the stack has neither address, a stack that
//   a signal handler asks for ends there.
#include "ust-injector/preload/hooks.h"

#if defined(__x86_64__)

#define SAVE                     \
  "movq %rdi, 0(%rsp)\n\t"       \
  "movq %rsi, 8(%rsp)\n\t"       \
  "movq %rdx, 16(%rsp)\n\t"      \
  "movq %rcx, 24(%rsp)\n\t"      \
  "movq %r8, 32(%rsp)\n\t"       \
  "movq %r9, 40(%rsp)\n\t"       \
  "movq %rax, 48(%rsp)\n\t"      \
  "movq %r10, 56(%rsp)\n\t"      \
  "movq %r11, 64(%rsp)\n\t"      \
  "movups %xmm0, 80(%rsp)\n\t"   \
  "movups %xmm1, 96(%rsp)\n\t"   \
  "movups %xmm2, 112(%rsp)\n\t"  \
  "movups %xmm3, 128(%rsp)\n\t"  \
  "movups %xmm4, 144(%rsp)\n\t"  \
  "movups %xmm5, 160(%rsp)\n\t"  \
  "movups %xmm6, 176(%rsp)\n\t"  \
  "movups %xmm7, 192(%rsp)\n\t"  \
  "movups %xmm8, 208(%rsp)\n\t"  \
  "movups %xmm9, 224(%rsp)\n\t"  \
  "movups %xmm10, 240(%rsp)\n\t" \
  "movups %xmm11, 256(%rsp)\n\t" \
  "movups %xmm12, 272(%rsp)\n\t" \
  "movups %xmm13, 288(%rsp)\n\t" \
  "movups %xmm14, 304(%rsp)\n\t" \
  "movups %xmm15, 320(%rsp)\n\t"

#define RESTORE                  \
  "movups 80(%rsp), %xmm0\n\t"   \
  "movups 96(%rsp), %xmm1\n\t"   \
  "movups 112(%rsp), %xmm2\n\t"  \
  "movups 128(%rsp), %xmm3\n\t"  \
  "movups 144(%rsp), %xmm4\n\t"  \
  "movups 160(%rsp), %xmm5\n\t"  \
  "movups 176(%rsp), %xmm6\n\t"  \
  "movups 192(%rsp), %xmm7\n\t"  \
  "movups 208(%rsp), %xmm8\n\t"  \
  "movups 224(%rsp), %xmm9\n\t"  \
  "movups 240(%rsp), %xmm10\n\t" \
  "movups 256(%rsp), %xmm11\n\t" \
  "movups 272(%rsp), %xmm12\n\t" \
  "movups 288(%rsp), %xmm13\n\t" \
  "movups 304(%rsp), %xmm14\n\t" \
  "movups 320(%rsp), %xmm15\n\t" \
  "movq 0(%rsp), %rdi\n\t"       \
  "movq 8(%rsp), %rsi\n\t"       \
  "movq 16(%rsp), %rdx\n\t"      \
  "movq 24(%rsp), %rcx\n\t"      \
  "movq 32(%rsp), %r8\n\t"       \
  "movq 40(%rsp), %r9\n\t"       \
  "movq 48(%rsp), %rax\n\t"      \
  "movq 56(%rsp), %r10\n\t"      \
  "movq 64(%rsp), %r11\n\t"

// From a thunk: the hook lies on the stack, below the return address. Leaves as a jump to the
// displaced instructions, with the stack of the call; or to a stub, without the return address.
// Both addresses are read below the stack pointer, where signal handlers do not write (the red
// zone of 128 bytes).
__asm__(
    ".text\n"
    ".globl weft_hook_entry\n"
    ".hidden weft_hook_entry\n"
    ".type weft_hook_entry, @function\n"
    "weft_hook_entry:\n\t"
    ".cfi_startproc\n\t"
    ".cfi_def_cfa_offset 16\n\t"
    "pushq %rbp\n\t"
    ".cfi_def_cfa_offset 24\n\t"
    ".cfi_offset %rbp, -24\n\t"
    "movq %rsp, %rbp\n\t"
    ".cfi_def_cfa_register %rbp\n\t"
    "subq $344, %rsp\n\t"
    "andq $-16, %rsp\n\t"  //
    SAVE
    "movq %rsp, %rdi\n\t"
    "movq 8(%rbp), %rsi\n\t"
    "leaq 16(%rbp), %rdx\n\t"
    "call weft_hook_enter\n\t"
    "testq %rax, %rax\n\t"
    "jnz 1f\n\t"
    "movq 8(%rbp), %rax\n\t"
    "movq 8(%rax), %rax\n\t"  // hook->resume
    "movq %rax, 8(%rbp)\n\t"  //
    RESTORE
    "leave\n\t"
    ".cfi_remember_state\n\t"
    ".cfi_def_cfa %rsp, 16\n\t"
    ".cfi_restore %rbp\n\t"
    "leaq 8(%rsp), %rsp\n\t"
    ".cfi_def_cfa_offset 8\n\t"
    "jmp *-8(%rsp)\n"
    "1:\n\t"
    ".cfi_restore_state\n\t"
    "movq %rax, 8(%rbp)\n\t"  //
    RESTORE
    "leave\n\t"
    ".cfi_def_cfa %rsp, 16\n\t"
    ".cfi_restore %rbp\n\t"
    "leaq 16(%rsp), %rsp\n\t"
    ".cfi_def_cfa_offset 0\n\t"
    "jmp *-16(%rsp)\n\t"
    ".cfi_endproc\n"
    ".size weft_hook_entry, . - weft_hook_entry\n");

// From a stub: its number lies on the stack, where the return address was, until the call is over
// (is_lost in hooks.c).
__asm__(
    ".text\n"
    ".type weft_hook_exit, @function\n"
    "weft_hook_exit:\n\t"
    ".cfi_startproc\n\t"
    ".cfi_undefined %rip\n\t"
    "pushq %rbp\n\t"
    ".cfi_def_cfa_offset 16\n\t"
    ".cfi_offset %rbp, -16\n\t"
    "movq %rsp, %rbp\n\t"
    ".cfi_def_cfa_register %rbp\n\t"
    "subq $344, %rsp\n\t"
    "andq $-16, %rsp\n\t"  //
    SAVE
    "movq 8(%rbp), %rsi\n\t"
    "movq %rsp, %rdi\n\t"
    "call weft_hook_leave\n\t"
    "movq %rax, 8(%rbp)\n\t"
    ".cfi_offset %rip, -8\n\t"  //
    RESTORE
    "leave\n\t"
    ".cfi_def_cfa %rsp, 8\n\t"
    ".cfi_restore %rbp\n\t"
    "ret\n\t"
    ".cfi_endproc\n"
    ".size weft_hook_exit, . - weft_hook_exit\n");

// Pages of stubs. The first 8 bytes of a page are the distance from it to its part of
// weft_hook_stub_data, in which each stub's data has the stub's own offset. Stub number n:
//     call *weft_hook_stub_data[n].calls(%rip)
//     push n
//     jmp weft_hook_exit
//
// In the caller's frame (a return address is looked up by the byte before it, inside the call):
//   stack pointer: where it is, since the function's return took the address from the stack
//   CFA: 8 more, for each frame must have its own
//   return address: at weft_hook_stub_data, by the stub's address S, which is still below the stack
//   pointer. With P = S & -4096, the page, it is at P + *P + (S & 0xff0):
//     S: DW_OP_breg7 -8, deref;  P: S, const2s -4096, and
//     P, P, deref, plus, S, const2u 0xff0, and, plus
//   (Valgrind's reader has no DW_OP_dup and warns of it.)
#define STUBS_CFI                                                                              \
  ".cfi_def_cfa %rsp, 8\n\t"                                                                   \
  ".cfi_escape 0x16, 0x07, 0x02, 0x77, 0x00\n\t"                                               \
  ".cfi_escape 0x10, 0x10, 0x18, 0x77, 0x78, 0x06, 0x0b, 0x00, 0xf0, 0x1a, 0x77, 0x78, 0x06, " \
  "0x0b, 0x00, 0xf0, 0x1a, 0x06, 0x22, 0x77, 0x78, 0x06, 0x0a, 0xf0, 0x0f, 0x1a, 0x22\n\t"

__asm__(
    ".text\n"
    ".globl weft_hook_stubs\n"
    ".hidden weft_hook_stubs\n"
    ".type weft_hook_stubs, @object\n"
    ".balign 4096\n"
    "weft_hook_stubs:\n\t"
    ".set weft_hook_number, 0\n\t"
    ".rept 16\n\t"
    ".cfi_startproc\n\t"  //
    STUBS_CFI
    ".cfi_remember_state\n\t"
    ".cfi_undefined %rip\n\t"
    ".quad weft_hook_stub_data + 16 * weft_hook_number - .\n\t"
    ".quad 0xcccccccccccccccc\n\t"
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

_Static_assert(WEFT_HOOK_PAGES == 16 && WEFT_HOOK_STUBS_PER_PAGE == 256, "as repeated above");
_Static_assert(sizeof(struct weft_hook_registers) == 80 + 256, "as saved above");
_Static_assert(__builtin_offsetof(struct weft_hook, resume) == 8, "as read above");

#endif
