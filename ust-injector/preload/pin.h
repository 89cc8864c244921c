// SPDX-License-Identifier: Apache-2.0
// Keeping a provider's object loaded. A tracepoint in one object may call the probe of another, and
// there is no moment at which such a call is known to be over: so a provider whose probe is called
// from elsewhere stays mapped once it is joined, whatever dlclose is asked for. An object that only
// calls its own probes comes and goes as it likes (its own callers keep it from being unloaded).
#ifndef WEFT_UST_INJECTOR_PRELOAD_PIN_H_
#define WEFT_UST_INJECTOR_PRELOAD_PIN_H_

// Without weft_lock; takes the dynamic linker's. `address` is in the object. Does nothing in the
// program itself, and where dlclose unmaps nothing anyway (musl).
void weft_pin_object(const void* address);

#endif  // WEFT_UST_INJECTOR_PRELOAD_PIN_H_
