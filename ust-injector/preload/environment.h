// SPDX-License-Identifier: Apache-2.0
// Finds environment and auxiliary vector, which the kernel gave the program at exec, without a
// system call. Any thread.
#ifndef WEFT_UST_INJECTOR_PRELOAD_ENVIRONMENT_H_
#define WEFT_UST_INJECTOR_PRELOAD_ENVIRONMENT_H_

#include <elf.h>
#include <stdint.h>

// Returns one value of the environment that the process was started with, or NULL. Call it at
// start-up only: a program may change its environment later, while another thread reads it.
const char* weft_environment(const char* name);

// Returns an entry of the auxiliary vector, or 0.
unsigned long weft_auxiliary(unsigned long type);

// Returns what is to be added to addresses of the program's file. `headers`: its own (AT_PHDR).
uintptr_t weft_program_bias(const Elf64_Phdr* headers, unsigned long count);

#endif  // WEFT_UST_INJECTOR_PRELOAD_ENVIRONMENT_H_
