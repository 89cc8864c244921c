/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is called as its prototype says, whatever the compiler knows of its callers. */
#ifndef WEFT_TESTS_LOCAL_HOOKED_H_
#define WEFT_TESTS_LOCAL_HOOKED_H_

#if defined(__clang__)
#define HOOKED __attribute__((noinline, optnone, used, visibility("default")))
#else
#define HOOKED __attribute__((noinline, noipa, used, visibility("default")))
#endif

#endif /* WEFT_TESTS_LOCAL_HOOKED_H_ */
