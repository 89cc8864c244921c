// SPDX-License-Identifier: Apache-2.0
// Announces a new ring set to the agent (lib/abi/control.h: weft_doorbell): one message with the
// descriptor, without waiting. Where no process listens, the agent finds the memory itself. If a
// crowd at the doorbell keeps a ring set from being announced, its name is written into a FIFO: at
// once, or, where no descriptor is free or the FIFO is full, with a later announcement or at the
// end of a process.
#ifndef WEFT_UST_INJECTOR_PRELOAD_DOORBELL_H_
#define WEFT_UST_INJECTOR_PRELOAD_DOORBELL_H_

#include <stdbool.h>
#include <stdint.h>

#include "lib/abi/ring.h"

// At start-up, on the only thread: makes room for names that could not be written. All forks share
// it. Without it, no names are kept.
void weft_doorbell_start(void);

// Returns a socket for weft_doorbell_ring; negative: the error of the system call.
long weft_doorbell_open(void);

// Announces the ring set with this header, whose memory is `fd`, on the result of
// weft_doorbell_open, which it closes. May run in any thread that holds weft_lock.
void weft_doorbell_ring(long socket, int fd, const struct weft_ring_header* header);

// Keeps the name of a ring set that was not announced, or that there is no memory for. May run in
// any thread that holds weft_lock.
void weft_doorbell_keep_name(uint64_t instance, uint64_t channel_id);

// Forgets it again, unless it was reported meanwhile. May run in any thread that holds weft_lock.
void weft_doorbell_take_name_back(uint64_t instance);

// Returns false if no name was ever kept. May run in any thread.
bool weft_doorbell_has_missing(void);

// Writes at most `most` names that were kept. Negative: the error of the system call (-EAGAIN: the
// FIFO is full, -EMFILE: no descriptor is free); to be tried again. May run in any thread that
// holds weft_lock.
long weft_doorbell_report(uint32_t most);

#endif  // WEFT_UST_INJECTOR_PRELOAD_DOORBELL_H_
