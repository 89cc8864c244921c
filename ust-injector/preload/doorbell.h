// SPDX-License-Identifier: Apache-2.0
// Announces a new ring set to the agent (lib/abi/control.h: weft_doorbell): one message with the
// descriptor, without waiting. If no process listens, the agent finds the memory itself. Ring sets
// that could not be announced because too many processes called at once are counted, and the next
// message carries the count.
#ifndef WEFT_UST_INJECTOR_PRELOAD_DOORBELL_H_
#define WEFT_UST_INJECTOR_PRELOAD_DOORBELL_H_

#include "lib/abi/ring.h"

// At start-up, on the only thread: makes room for the counts, which all forks share. Without it
// nothing is counted.
void weft_doorbell_start(void);

// Announces the ring set with this header, whose memory is `fd`. Any thread, under weft_lock.
void weft_doorbell_ring(int fd, const struct weft_ring_header* header);

#endif  // WEFT_UST_INJECTOR_PRELOAD_DOORBELL_H_
