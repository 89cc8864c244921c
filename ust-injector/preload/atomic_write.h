// SPDX-License-Identifier: Apache-2.0
// Records an event in the atomic slot (lib/ring/atomic_slot.h): for threads without an rseq area
// that weft may use, and for events whose sections were aborted too often.
//
// A thread that finds the slot's lock taken gives its CPU away until the lock is free: its owner is
// most often one that lost the CPU between the lock and the commit. As long as the owners make
// progress, no event is discarded. A wait ends after about a second, then the event is discarded as
// CONTENDED.
#ifndef WEFT_UST_INJECTOR_PRELOAD_ATOMIC_WRITE_H_
#define WEFT_UST_INJECTOR_PRELOAD_ATOMIC_WRITE_H_

#include "lib/ring/writer.h"

// `ring` has a ring set. May run in any thread, in signal handlers and in vfork children. Records
// the event or counts it.
void weft_write_atomically(struct weft_writer_ring* ring, const struct weft_record_parts* parts);

#endif  // WEFT_UST_INJECTOR_PRELOAD_ATOMIC_WRITE_H_
