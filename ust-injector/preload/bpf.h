// SPDX-License-Identifier: Apache-2.0
// Computes the answer of a seccomp filter to a system call: classic BPF over struct seccomp_data,
// as in Linux's seccomp_filter documentation. A pure function. The program is the application's
// own, and the kernel has not checked it yet; a program that the kernel would refuse gets
// WEFT_BPF_UNKNOWN.
#ifndef WEFT_UST_INJECTOR_PRELOAD_BPF_H_
#define WEFT_UST_INJECTOR_PRELOAD_BPF_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>

#define WEFT_BPF_UNKNOWN 0xffffffffu

// Returns a SECCOMP_RET value with its data, or WEFT_BPF_UNKNOWN. `code` is `length` struct
// sock_filter, at any address: the kernel takes a program that is not aligned.
uint32_t weft_bpf_run(const void* code, uint32_t length, const struct seccomp_data* data);

#endif  // WEFT_UST_INJECTOR_PRELOAD_BPF_H_
