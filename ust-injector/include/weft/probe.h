/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own probes: functions that are called at tracepoints of the same process, whether or
 * not they are recorded. All functions may be called from any thread; all answer -ENOSYS in a
 * process without libweft.so.
 *
 * A probe takes (void *data, the tracepoint's arguments ...). It runs in the thread that reaches
 * the tracepoint, maybe in several at once and in signal handlers; it must not throw.
 */
#pragma GCC system_header
#ifndef WEFT_PROBE_H_
#define WEFT_PROBE_H_

#include "detail/abi.h"
#include "detail/probes.h"

/*
 * Attaches `fn` to a tracepoint that this file's headers declare; the compiler checks its type.
 *
 *     static void on_order(void *data, int id, double amount);
 *     weft_tracepoint_attach(shop, order_placed, on_order, NULL);
 *
 * Returns 0; -ENOENT: no loaded object has that tracepoint; -EINVAL: it has other arguments than
 * this file was compiled with; -ENOMEM. You may attach the same pair of fn and data more than once.
 * Each attach and detach takes some memory (16 bytes for each probe of the tracepoint) and never
 * frees it.
 */
#define weft_tracepoint_attach(provider, event, fn, data) \
  weft_attach_##provider##___##event(fn, data)

/*
 * Takes it away again and waits for all calls of it that run: afterwards `fn` and `data` may go.
 * 0, or -ENOENT; -EDEADLK: it is taken away, but calls of the tracepoint's probes still ran after
 * two seconds (from inside such a probe, or where threads call another one of its probes without a
 * pause), so `fn` and `data` must stay; so it is in a fork child whose parent had such calls in
 * other threads.
 */
#define weft_tracepoint_detach(provider, event, fn, data) \
  weft_detach_##provider##___##event(fn, data)

/* Attaches and detaches by name ("shop:order_placed"), for tracepoints of which no header is at
 * hand: that `fn` takes the right arguments is then the caller's promise. */
#define weft_probe_attach(name, fn, data) \
  weft_probe_attach_checked(name, NULL, (void (*)(void))(fn), data)
#define weft_probe_detach(name, fn, data) \
  weft_probe_detach_checked(name, (void (*)(void))(fn), data)

/*
 * Calls `fn` once for every tracepoint that is loaded and so can be attached to, until it returns
 * something else than 0, and returns that. `desc` (weft/abi/event.h) is NULL where no provider is
 * loaded. `fn` must not attach, detach, load or unload.
 */
static inline __attribute__((unused)) int weft_probe_list(
    int (*fn)(void* data, const char* name, const struct weft_event_desc* desc), void* data) {
  const struct weft_library* library = WEFT_LIBRARY;
  return library ? library->tracepoint_iterate(fn, data) : -ENOSYS;
}

#endif /* WEFT_PROBE_H_ */
