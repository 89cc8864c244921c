/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that make processes by raw system calls tell LTTng so; weft notices by itself. */
#pragma GCC system_header
#ifndef WEFT_LTTNG_UST_FORK_H_
#define WEFT_LTTNG_UST_FORK_H_

#include <signal.h>

static inline void lttng_ust_before_fork(sigset_t* save_sigset) { (void)save_sigset; }
static inline void lttng_ust_after_fork_parent(sigset_t* restore_sigset) { (void)restore_sigset; }
static inline void lttng_ust_after_fork_child(sigset_t* restore_sigset) { (void)restore_sigset; }
static inline void lttng_ust_after_setns(void) {}
static inline void lttng_ust_after_unshare(void) {}
static inline void lttng_ust_after_setuid(void) {}
static inline void lttng_ust_after_setgid(void) {}
static inline void lttng_ust_after_seteuid(void) {}
static inline void lttng_ust_after_setegid(void) {}
static inline void lttng_ust_after_setreuid(void) {}
static inline void lttng_ust_after_setregid(void) {}
static inline void lttng_ust_after_setresuid(void) {}
static inline void lttng_ust_after_setresgid(void) {}

#endif /* WEFT_LTTNG_UST_FORK_H_ */
