// SPDX-License-Identifier: Apache-2.0
// Named places where a test can kill a daemon. In the product they compile to nothing; a program
// built with WEFT_KILL_POINTS obeys the environment:
//   WEFT_KILL_AT=NAME:COUNT[,NAME:COUNT...]  SIGKILL to itself when NAME is reached for the
//                                            COUNT-th time
//   WEFT_KILL_LIVES=FILE                     each process appends a byte to FILE at its start, and
//                                            the n-th one obeys the n-th pair only; without it,
//                                            each the first
// (In the consumer's sandbox, seccomp ends the process at this system call, with another signal.)
// Used by one thread, or by several that do not race for one name.
#ifndef WEFT_LIB_BASE_KILL_POINT_H_
#define WEFT_LIB_BASE_KILL_POINT_H_

namespace weft {

#ifdef WEFT_KILL_POINTS
void KillPoint(const char* name);
#else
inline void KillPoint(const char* name) { (void)name; }
#endif

}  // namespace weft

#endif  // WEFT_LIB_BASE_KILL_POINT_H_
