// SPDX-License-Identifier: Apache-2.0
// See hooks_go.h. Compiled without vector registers (-mgeneral-regs-only): what needs them is
// called by weft_hook_call_slowly.
#include "ust-injector/preload/hooks_go.h"

#include "ust-injector/preload/hook_slow.h"
#include "ust-injector/preload/hooks_asm.h"

#if defined(__x86_64__)

#include <linux/mman.h>

#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/process.h"

#define WEFT_GO_STACKS 256u /* more than threads that are in a hook at one moment */
#define WEFT_GO_STACK_BYTES 16384u

#ifndef AT_HWCAP2
#define AT_HWCAP2 26
#endif
#define WEFT_HWCAP2_FSGSBASE 2

// The first one; each begins with its bit and the stack pointer of the goroutine that uses it.
uint64_t weft_go_stacks __attribute__((visibility("hidden")));
uint64_t weft_go_stacks_end __attribute__((visibility("hidden")));

void weft_hook_entry_go(void) __attribute__((visibility("hidden")));
void weft_hook_enter_go(const struct weft_hook_registers* registers, struct weft_hook* hook)
    __attribute__((visibility("hidden")));

// From a thunk, by a jump. Keeps everything but r12, r13 and the flags. The number of the CPU, from
// which a free stack is searched, is in the limit of a segment, as in weft_cpu.
__asm__(
    ".text\n"
    ".globl weft_hook_entry_go\n"
    ".hidden weft_hook_entry_go\n"
    ".type weft_hook_entry_go, @function\n"
    ".balign 64\n"
    "weft_hook_entry_go:\n\t"
    "movl $0x7b, %r13d\n\t"
    "lsl %r13d, %r13d\n\t"
    "andl $255, %r13d\n\t"
    "shll $14, %r13d\n\t"
    "addq weft_go_stacks(%rip), %r13\n"
    "1:\n\t"
    "lock btsq $0, (%r13)\n\t"
    "jc 2f\n\t"
    "movq %rsp, 8(%r13)\n\t"
    "leaq 16208(%r13), %rsp\n\t"
    "movq %rax, 64(%rsp)\n\t"
    "movq %rbx, 72(%rsp)\n\t"
    "movq %rcx, 80(%rsp)\n\t"
    "movq %rdi, 88(%rsp)\n\t"
    "movq %rsi, 96(%rsp)\n\t"
    "movq %r8, 104(%rsp)\n\t"
    "movq %r9, 112(%rsp)\n\t"
    "movq %r10, 120(%rsp)\n\t"
    "movq %r11, 128(%rsp)\n\t"
    "movq %rdx, 136(%rsp)\n\t"
    "movq %xmm0, 0(%rsp)\n\t"
    "movq %xmm1, 8(%rsp)\n\t"
    "movq %xmm2, 16(%rsp)\n\t"
    "movq %xmm3, 24(%rsp)\n\t"
    "movq %xmm4, 32(%rsp)\n\t"
    "movq %xmm5, 40(%rsp)\n\t"
    "movq %xmm6, 48(%rsp)\n\t"
    "movq %xmm7, 56(%rsp)\n\t"
    "movq %rsp, %rdi\n\t"
    "movq %r12, %rsi\n\t"
    "call weft_hook_enter_go\n\t"
    "movq 64(%rsp), %rax\n\t"
    "movq 80(%rsp), %rcx\n\t"
    "movq 88(%rsp), %rdi\n\t"
    "movq 96(%rsp), %rsi\n\t"
    "movq 104(%rsp), %r8\n\t"
    "movq 112(%rsp), %r9\n\t"
    "movq 120(%rsp), %r10\n\t"
    "movq 128(%rsp), %r11\n\t"
    "movq 136(%rsp), %rdx\n\t"
    "movq 8(%r13), %rsp\n\t"
    "movq $0, (%r13)\n\t"  // a release: x86-64 keeps the order of what came before
    "jmp *8(%r12)\n"       // hook->resume
    "2:\n\t"
    "pause\n\t"
    "addq $16384, %r13\n\t"
    "cmpq %r13, weft_go_stacks_end(%rip)\n\t"
    "jne 1b\n\t"
    "movq weft_go_stacks(%rip), %r13\n\t"
    "jmp 1b\n\t"
    ".size weft_hook_entry_go, . - weft_hook_entry_go\n");

_Static_assert(WEFT_GO_STACKS == 256 && WEFT_GO_STACK_BYTES == 1 << 14, "as repeated above");
_Static_assert(sizeof(struct weft_hook_registers) == 136, "as saved above");
_Static_assert(__builtin_offsetof(struct weft_hook_registers, general) == 64, "as saved above");
_Static_assert(__builtin_offsetof(struct weft_hook, resume) == 8, "as read above");

static void set_thread_pointer(void) {
  uint64_t base;
  __asm__ volatile(
      "rdfsbase %0\n\t"
      "movq %0, %%fs:0"
      : "=r"(base)
      :
      : "memory");
}

void weft_hook_enter_go(const struct weft_hook_registers* registers, struct weft_hook* hook) {
  const struct weft_event* event = (const struct weft_event*)(uintptr_t)hook->entry;
  // acquire: pairs with the release of `emit`, which is stored last. relaxed: emit decides exactly
  if (__atomic_load_n(&event->emit, __ATOMIC_ACQUIRE) != NULL &&
      __atomic_load_n(event->enabled, __ATOMIC_RELAXED) == 0)
    return;
  if (__builtin_expect(weft_thread_pointer() == 0, 0)) set_thread_pointer();
  weft_hook_call_slowly((weft_hook_slow_fn*)weft_hook_enter_only, registers, hook, NULL, NULL);
}

uint64_t weft_hooks_go_start(void) {
  if ((weft_auxiliary(AT_HWCAP2) & WEFT_HWCAP2_FSGSBASE) == 0) return 0;
  const long map = weft_syscall(__NR_mmap, 0, WEFT_GO_STACKS * WEFT_GO_STACK_BYTES, 3,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (weft_failed(map)) return 0;
  weft_go_stacks = (uint64_t)map;
  weft_go_stacks_end = weft_go_stacks + (uint64_t)WEFT_GO_STACKS * WEFT_GO_STACK_BYTES;
  weft_process.is_go = 1;
  return (uint64_t)(uintptr_t)&weft_hook_entry_go;
}

#endif
