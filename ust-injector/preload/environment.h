// SPDX-License-Identifier: Apache-2.0
// Finds environment and auxiliary vector, which the kernel gave the program at exec, without a
// system call. Any thread.
#ifndef WEFT_UST_INJECTOR_PRELOAD_ENVIRONMENT_H_
#define WEFT_UST_INJECTOR_PRELOAD_ENVIRONMENT_H_

// Returns one value of the environment that the process was started with, or NULL. Call it at
// start-up only: a program may change its environment later, while another thread reads it.
const char* weft_environment(const char* name);

// Returns an entry of the auxiliary vector, or 0.
unsigned long weft_auxiliary(unsigned long type);

#endif  // WEFT_UST_INJECTOR_PRELOAD_ENVIRONMENT_H_
