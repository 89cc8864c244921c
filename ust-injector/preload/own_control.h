// SPDX-License-Identifier: Apache-2.0
// The control area of a process that found no file: memory of its own, in which an agent that
// comes later turns events on (lib/abi/control.h). It is made once, at start-up, on the only
// thread, and inherited by fork. It costs a page until an agent writes into it, and the pages of
// the enable words that are read.
#ifndef WEFT_UST_INJECTOR_PRELOAD_OWN_CONTROL_H_
#define WEFT_UST_INJECTOR_PRELOAD_OWN_CONTROL_H_

#include <stdbool.h>
#include <stdint.h>

// WEFT_CONTROL_TOTAL_BYTES, mapped read-only, nothing enabled; no descriptor is left. NULL: not
// possible. `as_ld_so`: only with calls that ld.so has made already, since a filter may kill for
// others.
const uint8_t* weft_own_control_make(bool as_ld_so);

#endif  // WEFT_UST_INJECTOR_PRELOAD_OWN_CONTROL_H_
