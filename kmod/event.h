/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event: one producer of records in a channel. Its source (event_source.h) attaches a probe,
 * which gathers arguments and calls weft_event_run (event_run.h); that decides, fetches and
 * records.
 *
 * Life, under the lock of control:
 *   made       event_input.c checks and copies what user space gave
 *   started    attached with `on` false; its description is published; then `on` as its session
 *   ended      by its descriptor's end or its session's: `on` false, probe detached
 *   freed      by the reaper, when no probe can run any more and its descriptor is closed
 * Probes read the first part only, which does not change while `on` may be true.
 */
#ifndef WEFT_KMOD_EVENT_H
#define WEFT_KMOD_EVENT_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/tracepoint.h>

#include "channel.h"
#include "event_source.h"
#include "fetch.h"
#include "session.h"

/* The tasks by which a hit is judged to be in scope. */
enum weft_event_scope {
	WEFT_SCOPE_ALL,	    /* none: the session records everything */
	WEFT_SCOPE_CURRENT, /* only the task that runs */
	WEFT_SCOPE_SUBJECTS,
};

/* The code that makes a record, from the simplest and fastest to the general one. */
enum weft_event_way {
	WEFT_WAY_PLAIN,	 /* from arguments only, in the ring's memory itself */
	WEFT_WAY_DIRECT, /* of fixed size, in the ring's memory itself */
	WEFT_WAY_IMAGE,	 /* beside the ring, filtered, then copied */
};

struct weft_event {
	/* What probes read. */
	bool on;
	u8 scope_mode; /* enum weft_event_scope */
	u8 way;	       /* enum weft_event_way */
	bool early;    /* the filter reads no field */
	u8 view;       /* enum weft_context_view, the part that does not change */
	u32 size;      /* bytes of a record without segments */
	u32 rounded;   /* what that takes in the ring */
	u64 word0;     /* size | id << 32 */
	struct weft_channel *channel;
	const struct weft_scope *scope;	 /* the session's */
	const struct weft_scope *within; /* as scope; NULL: nothing is hidden from the session */
	const struct weft_fetch_step *steps;
	const struct weft_linked_filter *filter;
	u32 subjects;
	u16 fixed_size; /* recorded */
	u16 segments;	/* recorded */

	/* Control. */
	u8 own_scope_mode; /* without trackers */
	u32 kind;	   /* enum weft_kernel_event_kind */
	u32 arguments;	   /* bit n: the program or a subject needs argument n */
	u16 id;
	bool stays;	       /* WEFT_KERNEL_EVENT_STAYS */
	bool attached;	       /* once: a probe may run until a grace period after its end */
	bool ended;	       /* or not begun */
	struct kref refs;      /* its descriptor's, and its session's until it is ended */
	struct list_head node; /* in its session, until it is ended */
	struct llist_node dead;
	union { /* each source's own */
		struct {
			struct tracepoint *point;
			struct module *owner; /* held; NULL: the kernel itself */
			void *probe;
		} tracepoint_source;
		struct {
			struct weft_event __rcu *next;	 /* with this number */
			struct weft_event __rcu **place; /* where the chain begins */
			u8 *known;    /* numbers that it does not mean; NULL: it means one */
			bool watches; /* the entries of rt_sigreturn as well */
		} syscall;
		struct weft_kprobe *kprobe; /* NULL: was never attached */
		u32 state;		    /* enum weft_kernel_state */
		struct weft_uprobe *uprobe; /* NULL: was never attached */
	};
	u32 most;   /* bytes that a record can take in the ring */
	u64 missed; /* the source's count, as last taken over */
	const struct weft_event_source *source;
};

/* A new event of a channel, of which it holds a reference; it is the caller's. Not started. NULL:
 * no memory. */
struct weft_event *weft_event_new(struct weft_channel *channel,
				  const struct weft_event_source *source);

void weft_event_get(struct weft_event *event);
void weft_event_put(struct weft_event *event);

/* The caller has the lock of control. */

/* Attaches a made event, publishes its description, and switches it on if its session is on. */
int weft_event_start(struct weft_event *event, const struct weft_event_input *input);
/* Detaches a started event; one that is ended, or was not started, stays as it is. */
void weft_event_end(struct weft_event *event);
/* Takes over what its source counts as missed. `counts`: the hits came while the session was on. A
 * session that records everything counts them as discarded in the ring. A session with a scope adds
 * them to `missed_anywhere`, which no reader of the ring sees: the kernel does not tell whether
 * they were in scope. */
void weft_event_take_missed(struct weft_event *event, bool counts);

/* All events of a session: */
/* Sets `on` and `scope_mode` as the session is now. */
void weft_events_update(struct weft_session *session);
/* Adapts the probes of all the session's events to its scope and `on`. Goes on after an error and
 * returns the first one. */
int weft_events_apply(struct weft_session *session);
void weft_events_take_missed(struct weft_session *session, bool counts);
void weft_events_end(struct weft_session *session);

/* Returns when every probe that was running has ended, except those of sources that have their own
 * way to wait. May sleep. */
void weft_event_synchronize(void);
/* Frees all that waits to be freed. No descriptor may be open. */
void weft_event_flush(void);

#endif /* WEFT_KMOD_EVENT_H */
