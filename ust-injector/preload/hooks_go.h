// SPDX-License-Identifier: Apache-2.0
// Entries of hooked functions of Go programs (docs/adr/0066). Their thunks come here behind the
// function's check of its stack, with the hook's address in r12: there r12, r13 and the flags are
// free, and every other register belongs to the caller or to the function.
//
// A goroutine's stack has no room for a hook, so it is left as it is: a call runs on one of
// WEFT_GO_STACKS stacks, which it takes by one bit. A signal handler, which Go runs on stacks of
// its own, may take another one meanwhile. The runtime sees an address that is none of Go's code
// until the call is over, and neither interrupts the goroutine nor looks at its stack.
//
// A Go thread without a libc has no thread pointer where the library looks for it, at %fs:0: the
// word is one of runtime.m.tls that the runtime never uses. The thread's first hook writes it. The
// thread's id, runtime.m.procid, lies below it.
//
// Any thread that runs Go code.
#ifndef WEFT_UST_INJECTOR_PRELOAD_HOOKS_GO_H_
#define WEFT_UST_INJECTOR_PRELOAD_HOOKS_GO_H_

#include <stdint.h>

// Makes the stacks. Returns the address where thunks go; 0: there is no memory, or the program may
// not read the base of %fs (before Linux 5.9, and on old processors). Call it at start.
uint64_t weft_hooks_go_start(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_HOOKS_GO_H_
