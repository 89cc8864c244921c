// SPDX-License-Identifier: Apache-2.0
// Keeps a provider's object loaded. A tracepoint in one object may call the probe of another, and
// there is no moment at which such a call is known to be over. A provider whose probe is called
// from another object therefore stays mapped once it is joined, even if the program calls dlclose.
// An object that calls only its own probes can be loaded and unloaded freely (its own callers keep
// it from being unloaded).
#ifndef WEFT_UST_INJECTOR_PRELOAD_PIN_H_
#define WEFT_UST_INJECTOR_PRELOAD_PIN_H_

// The caller does not hold weft_lock; this takes the dynamic linker's lock. `address` is in the
// object. Does nothing for the program itself, and if dlclose unmaps nothing anyway (musl).
void weft_pin_object(const void* address);

#endif  // WEFT_UST_INJECTOR_PRELOAD_PIN_H_
