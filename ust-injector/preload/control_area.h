// SPDX-License-Identifier: Apache-2.0
// The control area of this process (lib/abi/control.h): the agent's file, mapped read-only, or, if
// there is no file, the process's own memory (own_control.h). weft_process gets its values about
// ring sets.
#ifndef WEFT_UST_INJECTOR_PRELOAD_CONTROL_AREA_H_
#define WEFT_UST_INJECTOR_PRELOAD_CONTROL_AREA_H_

#include <stdbool.h>

// At start-up: maps the file at `path`, or makes an area if there is no file. Returns false if
// neither is possible, or the file is malformed. Makes only calls that ld.so makes too: a filter
// that was there at exec has let them pass.
bool weft_control_area_start(const char* path);

// Call it before the rules are used: learns slots and clock if an agent that came later decides
// them. Returns false if no agent came yet. The caller holds weft_lock.
bool weft_control_area_learn(void);

#endif  // WEFT_UST_INJECTOR_PRELOAD_CONTROL_AREA_H_
