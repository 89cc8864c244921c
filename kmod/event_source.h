/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A source of events: a mechanism of the kernel that calls probes, as a table of operations. The
 * life of an event (event.c) uses these operations and knows no kind of event. They are the slow
 * path: a source's probe calls weft_event_run (event_run.h) directly.
 *
 * To add a source, add a file with its probe and its table, and a row in source_table.c.
 */
#ifndef WEFT_KMOD_EVENT_SOURCE_H
#define WEFT_KMOD_EVENT_SOURCE_H

#include "lib/abi/kernel.h"

struct weft_event;

/* User space's description of a new event, copied and not yet checked. */
struct weft_event_input {
	struct weft_kernel_event arg;
	char *name;
	void *description;
	struct weft_fetch_op *ops;
	void *filter;
	u8 *known;
};

/* The caller has the lock of control, except for `synchronize`, `free`
 * and `exit`. An operation that is
 * NULL has nothing to do. All may sleep. */
struct weft_event_source {
	u32 features; /* enum weft_kernel_feature that this source provides in this kernel */
	/* The source counts missed hits as discarded in the ring itself, because it knows which
	 * tasks they concern. */
	bool discards_missed;

	/* Makes the kernel call the event's probe. The event is off. NULL: -EOPNOTSUPP. */
	int (*attach)(struct weft_event *event, const struct weft_event_input *input);
	/* Does what is left to do after the event was first switched on or left off. */
	int (*begin)(struct weft_event *event);
	/* Adapts the probe to a session whose scope or `on` changed. The caller calls `synchronize`
  * afterwards. */
	int (*apply)(struct weft_event *event);
	/* Ends what attach began. Probes may still be running afterwards. */
	void (*detach)(struct weft_event *event);
	/* Returns when no probe of a detached event runs, as far as a grace period
	 * (weft_event_synchronize) does not see to that. */
	void (*synchronize)(void);
	/* Frees what the source keeps of an event, which perhaps was never attached. No probe
	 * runs. */
	void (*free)(struct weft_event *event);
	/* Returns the number of hits since attach for which the kernel did not call the probe. */
	u64 (*missed)(struct weft_event *event);
	/* The module is unloaded: no event is left. Called once for each kind of the source's
	 * events, without the lock of control. */
	void (*exit)(void);
};

#endif /* WEFT_KMOD_EVENT_SOURCE_H */
