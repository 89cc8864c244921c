// SPDX-License-Identifier: Apache-2.0
// Reads the kernel's report about this process's time namespace
// (docs/adr/0029-time-namespaces.md). It has only the offset of the namespace into which the next
// child is born; this is the process's own offset until it calls unshare(CLONE_NEWTIME). clock.h
// uses it.
//
// It makes only calls that ld.so makes, too: a filter that was there at exec lets them pass. Any
// thread.
#ifndef WEFT_UST_INJECTOR_PRELOAD_TIME_NAMESPACE_H_
#define WEFT_UST_INJECTOR_PRELOAD_TIME_NAMESPACE_H_

#include <stdbool.h>
#include <stdint.h>

// Returns a descriptor of the process's folder in /proc, or a negative errno.
long weft_time_namespace_open(void);

// Stores in *offset by how many ns CLOCK_MONOTONIC is ahead of the host's. Returns false if that is
// not known.
bool weft_time_namespace_offset(long folder, int64_t* offset);

#endif  // WEFT_UST_INJECTOR_PRELOAD_TIME_NAMESPACE_H_
