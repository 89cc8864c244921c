// SPDX-License-Identifier: Apache-2.0
// The parts of interpose.c that C cannot express: vfork, which returns twice on one stack; clone,
// whose child begins on another one; syscall, which passes everything on.
#include "ust-injector/preload/interpose.h"

// The child returns from vfork and goes on below our return address: so that is kept in a register,
// which the kernel preserves for each of them, as is what the parent needs afterwards.
#if defined(__x86_64__)
__asm__(
    ".text\n"
    ".globl vfork\n"
    ".type vfork, @function\n"
    "vfork:\n\t"
    "subq $8, %rsp\n\t"
    "call weft_before_vfork\n\t"
    "addq $8, %rsp\n\t"
    "popq %rdi\n\t"
    "movq %rax, %rsi\n\t"
    "movl $58, %eax\n\t"
    "syscall\n\t"
    "pushq %rdi\n\t"
    "testq %rax, %rax\n\t"
    "jz 1f\n\t"
    "movq %rax, %rdi\n\t"
    "leaq 8(%rsp), %rdx\n\t"
    "subq $8, %rsp\n\t"
    "call weft_vfork_result\n\t"
    "addq $8, %rsp\n"
    "1:\n\t"
    "ret\n"
    ".size vfork, . - vfork\n");

__asm__(
    ".text\n"
    ".globl weft_raw_clone\n"
    ".hidden weft_raw_clone\n"
    ".type weft_raw_clone, @function\n"
    "weft_raw_clone:\n\t"
    "andq $-16, %rsi\n\t"
    "subq $16, %rsi\n\t"
    "movq %rcx, 8(%rsi)\n\t"
    "movq %rdi, (%rsi)\n\t"
    "movq %rdx, %rdi\n\t"
    "movq %r8, %rdx\n\t"
    "movq %r9, %r8\n\t"
    "movq 8(%rsp), %r10\n\t"
    "movl $56, %eax\n\t"
    "syscall\n\t"
    "testq %rax, %rax\n\t"
    "jnz 1f\n\t"
    "xorl %ebp, %ebp\n\t"
    "popq %rax\n\t"
    "popq %rdi\n\t"
    "call *%rax\n\t"
    "movl %eax, %edi\n\t"
    "movl $60, %eax\n\t"
    "syscall\n\t"
    "hlt\n"
    "1:\n\t"
    "ret\n"
    ".size weft_raw_clone, . - weft_raw_clone\n");

__asm__(
    ".text\n"
    ".globl syscall\n"
    ".type syscall, @function\n"
    "syscall:\n\t"        /* the kernel takes the lower half of the number */
    "cmpl $317, %edi\n\t" /* seccomp */
    "je weft_syscall_filter\n\t"
    "cmpl $157, %edi\n\t" /* prctl */
    "je weft_syscall_filter\n\t"
    "cmpl $334, %edi\n\t" /* rseq */
    "je weft_syscall_rseq\n\t"
    "cmpl $272, %edi\n\t" /* unshare */
    "je weft_syscall_namespace\n\t"
    "cmpl $308, %edi\n\t" /* setns */
    "je weft_syscall_namespace\n\t"
    "cmpl $56, %edi\n\t" /* clone */
    "je 3f\n\t"
    "cmpl $58, %edi\n\t" /* vfork */
    "je 3f\n\t"
    "cmpl $435, %edi\n\t" /* clone3 */
    "je 3f\n"
    "1:\n\t"
    "movq weft_next+" WEFT_NEXT_SYSCALL_OFFSET
    "(%rip), %rax\n\t"
    "testq %rax, %rax\n\t"
    "jz 2f\n\t"
    "jmp *%rax\n"
    "2:\n\t"
    "movq %rdi, %rax\n\t"
    "movq %rsi, %rdi\n\t"
    "movq %rdx, %rsi\n\t"
    "movq %rcx, %rdx\n\t"
    "movq %r8, %r10\n\t"
    "movq %r9, %r8\n\t"
    "movq 8(%rsp), %r9\n\t"
    "syscall\n\t"
    "cmpq $-4095, %rax\n\t"
    "jae 4f\n\t"
    "ret\n"
    "4:\n\t"
    "movq %rax, %rdi\n\t"
    "jmp weft_libc_result\n"
    "3:\n\t"
    "pushq %rdi\n\t"
    "pushq %rsi\n\t"
    "pushq %rdx\n\t"
    "pushq %rcx\n\t"
    "pushq %r8\n\t"
    "pushq %r9\n\t"
    "subq $8, %rsp\n\t"
    "call weft_syscall_clone\n\t"
    "addq $8, %rsp\n\t"
    "popq %r9\n\t"
    "popq %r8\n\t"
    "popq %rcx\n\t"
    "popq %rdx\n\t"
    "popq %rsi\n\t"
    "popq %rdi\n\t"
    "jmp 1b\n"
    ".size syscall, . - syscall\n");

#elif defined(__aarch64__)
__asm__(
    ".text\n"
    ".globl vfork\n"
    ".type vfork, %function\n"
    "vfork:\n\t"
    "stp x29, x30, [sp, -16]!\n\t"
    "bl weft_before_vfork\n\t"
    "ldp x29, x30, [sp], 16\n\t"
    "mov x10, x0\n\t"
    "mov x0, 0x4111\n\t" /* CLONE_VM, CLONE_VFORK, SIGCHLD */
    "mov x1, 0\n\t"
    "mov x2, 0\n\t"
    "mov x3, 0\n\t"
    "mov x4, 0\n\t"
    "mov x8, 220\n\t"
    "svc 0\n\t"
    "cbz x0, 1f\n\t"
    "mov x1, x10\n\t"
    "mov x2, sp\n\t"
    "stp x29, x30, [sp, -16]!\n\t"
    "bl weft_vfork_result\n\t"
    "ldp x29, x30, [sp], 16\n"
    "1:\n\t"
    "ret\n"
    ".size vfork, . - vfork\n");

__asm__(
    ".text\n"
    ".globl weft_raw_clone\n"
    ".hidden weft_raw_clone\n"
    ".type weft_raw_clone, %function\n"
    "weft_raw_clone:\n\t"
    "and x1, x1, -16\n\t"
    "stp x0, x3, [x1, -16]!\n\t"
    "mov x0, x2\n\t"
    "mov x2, x4\n\t"
    "mov x3, x5\n\t"
    "mov x4, x6\n\t"
    "mov x8, 220\n\t"
    "svc 0\n\t"
    "cbz x0, 1f\n\t"
    "ret\n"
    "1:\n\t"
    "mov x29, 0\n\t"
    "ldp x9, x0, [sp], 16\n\t"
    "blr x9\n\t"
    "mov x8, 93\n\t"
    "svc 0\n\t"
    "brk 1\n"
    ".size weft_raw_clone, . - weft_raw_clone\n");

__asm__(
    ".text\n"
    ".globl syscall\n"
    ".type syscall, %function\n"
    "syscall:\n\t"    /* the kernel takes the lower half of the number */
    "cmp w0, 277\n\t" /* seccomp */
    "b.eq weft_syscall_filter\n\t"
    "cmp w0, 167\n\t" /* prctl */
    "b.eq weft_syscall_filter\n\t"
    "cmp w0, 293\n\t" /* rseq */
    "b.eq weft_syscall_rseq\n\t"
    "cmp w0, 97\n\t" /* unshare */
    "b.eq weft_syscall_namespace\n\t"
    "cmp w0, 268\n\t" /* setns */
    "b.eq weft_syscall_namespace\n\t"
    "cmp w0, 220\n\t" /* clone */
    "b.eq 3f\n\t"
    "cmp w0, 435\n\t" /* clone3 */
    "b.eq 3f\n"
    "1:\n\t"
    "adrp x9, weft_next+" WEFT_NEXT_SYSCALL_OFFSET
    "\n\t"
    "ldr x9, [x9, :lo12:weft_next+" WEFT_NEXT_SYSCALL_OFFSET
    "]\n\t"
    "cbz x9, 2f\n\t"
    "br x9\n"
    "2:\n\t"
    "mov x8, x0\n\t"
    "mov x0, x1\n\t"
    "mov x1, x2\n\t"
    "mov x2, x3\n\t"
    "mov x3, x4\n\t"
    "mov x4, x5\n\t"
    "mov x5, x6\n\t"
    "svc 0\n\t"
    "cmn x0, 4095\n\t"
    "b.hs weft_libc_result\n\t"
    "ret\n"
    "3:\n\t"
    "stp x29, x30, [sp, -80]!\n\t"
    "stp x0, x1, [sp, 16]\n\t"
    "stp x2, x3, [sp, 32]\n\t"
    "stp x4, x5, [sp, 48]\n\t"
    "str x6, [sp, 64]\n\t"
    "bl weft_syscall_clone\n\t"
    "ldp x0, x1, [sp, 16]\n\t"
    "ldp x2, x3, [sp, 32]\n\t"
    "ldp x4, x5, [sp, 48]\n\t"
    "ldr x6, [sp, 64]\n\t"
    "ldp x29, x30, [sp], 80\n\t"
    "b 1b\n"
    ".size syscall, . - syscall\n");
#endif
