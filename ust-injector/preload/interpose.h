// SPDX-License-Identifier: Apache-2.0
// The functions of libc that libweft.so stands in front of (interpose.c), and those behind them.
#ifndef WEFT_UST_INJECTOR_PRELOAD_INTERPOSE_H_
#define WEFT_UST_INJECTOR_PRELOAD_INTERPOSE_H_

// Those that come next in the program's order of libraries; in a program into which an agent loaded
// libweft.so, its originals (replaced.c). NULL: there is none, so libweft.so makes the system call,
// or cannot set errno.
struct weft_next {
  int (*clone)(int (*fn)(void*), void* stack, int flags, void* arg, ...);
  int (*prctl)(int option, ...);
  int (*unshare)(int flags);
  void* syscall;  // interpose_asm.c reads it
  int* (*errno_location)(void);
};
extern struct weft_next weft_next __attribute__((visibility("hidden")));

#define WEFT_NEXT_SYSCALL_OFFSET "24"
_Static_assert(__builtin_offsetof(struct weft_next, syscall) == 24, "interpose_asm.c");

__attribute__((visibility("default"))) int clone(int (*fn)(void*), void* stack, int flags,
                                                 void* arg, ...);
__attribute__((visibility("default"))) int prctl(int option, ...);
__attribute__((visibility("default"))) int unshare(int flags);
__attribute__((visibility("default"))) int setns(int fd, int type);
__attribute__((visibility("default"))) long syscall(long number, ...);
__attribute__((visibility("default"))) int vfork(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_INTERPOSE_H_
