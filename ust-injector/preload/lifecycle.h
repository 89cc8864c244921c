// SPDX-License-Identifier: Apache-2.0
// The life of libweft.so in a process: the top floor, which knows all others and is called by the
// entry points alone (library.h, program.c, interpose.c, seccomp_install.h).
//
//   start      By the first entry point that is called: a provider's constructor may come before
//              ours, and musl gives constructors garbage arguments. No thread, no signal, no timer,
//              no descriptor is kept; no system call is made after start-up until the first event
//              that is enabled.
//   trial      Under a seccomp filter that was there at exec, before the first call that ld.so does
//              not make (seccomp.h). Made early where it can be: while the program has one thread.
//   turning    For good, where the program forbids the time stamp counter, or where a filter that
//   off        it installs kills (seccomp_install.h). Children of fork inherit it.
//   fork       Needs no handler: a child finds weft_process as it was and weft_anchor wiped, and
//              makes ring sets of its own. Children that share the memory: children.h.
//   end        By exit: reports the names of ring sets that could not be announced (doorbell.h).
#ifndef WEFT_UST_INJECTOR_PRELOAD_LIFECYCLE_H_
#define WEFT_UST_INJECTOR_PRELOAD_LIFECYCLE_H_

#include <stdbool.h>

// Starts, if that was not done yet. Returns true if events can be recorded in this process. After
// the first call it is cheap. If it returns false, the registry and application probes still work,
// since weft_anchor exists.
bool weft_process_ready(void);

// Makes the trial while the program has one thread, if an event is on. Later, a thread that waits
// for all kinds of children could be given one that the program does not know. It is called after
// each object with tracepoints that is loaded.
void weft_process_try_early(void);

// Returns true if there may be an event that is on and not decided on yet. Takes the lock.
bool weft_process_is_any_event_on(void);

// Makes everything that events in force need later, while the kernel may still be called. Takes the
// lock.
void weft_process_make_everything(void);

// Reads of the time stamp counter are answered by SIGSEGV from now on (PR_SET_TSC, seccomp's strict
// mode): nothing is recorded in this process any more, nor in its children. The program's call for
// it stands between weft_process_pause and weft_process_turn_off; where the kernel refuses it,
// weft_process_resume takes the place of the latter. Any thread.
void weft_process_pause(void);
void weft_process_resume(void);
void weft_process_turn_off(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_LIFECYCLE_H_
