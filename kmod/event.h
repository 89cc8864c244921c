/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An event: one source of records in a channel. Its probe (tracepoint.c, ...) gathers arguments and
 * calls weft_event_run (event_run.h), which decides, fetches and records.
 *
 * Life, all under the lock of control:
 *   made       event_input.c checks and copies what user space gave; attached with `on` false; its
 *              description is published; then `on` as its session
 *   ended      by its descriptor's end or its session's: `on` false, probe unregistered
 *   freed      by the reaper, when no probe can run any more and its descriptor is closed
 * Probes read the first part only, which does not change while `on` may be true.
 */
#ifndef WEFT_KMOD_EVENT_H
#define WEFT_KMOD_EVENT_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/tracepoint.h>

#include "channel.h"
#include "fetch.h"
#include "session.h"

/* How it is found out whom an event concerns. */
enum weft_event_scope {
	WEFT_SCOPE_ALL,	    /* the session records everything */
	WEFT_SCOPE_CURRENT, /* the task that runs, and nobody else */
	WEFT_SCOPE_SUBJECTS,
};

/* How a record is made. */
enum weft_event_way {
	WEFT_WAY_PLAIN,	 /* of arguments only, in the ring's memory itself */
	WEFT_WAY_DIRECT, /* of fixed size, in the ring's memory itself */
	WEFT_WAY_IMAGE,	 /* beside the ring, filtered, then copied */
};

struct weft_event {
	/* What probes read. */
	bool on;
	u8 scope_mode; /* enum weft_event_scope */
	u8 way;	       /* enum weft_event_way */
	bool early;    /* the filter reads no field */
	u8 view;       /* enum weft_context_view, of what does not change */
	u32 size;      /* bytes of a record without segments */
	u32 rounded;   /* what that takes in the ring */
	u64 word0;     /* size | id << 32 */
	struct weft_channel *channel;
	const struct weft_scope *scope;	 /* the session's */
	const struct weft_scope *within; /* the same; NULL: nothing is hidden from the session */
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
	struct kref refs;      /* its descriptor's, its session's until it is ended */
	struct list_head node; /* in its session, until it is ended */
	struct llist_node dead;
	union {
		struct {
			struct tracepoint *point;
			struct module *owner; /* held; NULL: the kernel itself */
			void *probe;
		} tracepoint_source;
		struct {
			struct weft_event __rcu *next;	 /* of the same number */
			struct weft_event __rcu **place; /* where the chain begins */
			u8 *known;    /* numbers that it does not mean; NULL: it means one */
			bool watches; /* the entries of rt_sigreturn as well */
		} syscall;
		struct weft_kprobe *kprobe; /* NULL: was never attached */
		u32 state;		    /* enum weft_kernel_state */
		struct weft_uprobe *uprobe; /* NULL: was never attached */
	};
	u32 most;	 /* bytes that a record can take in the ring */
	u32 missed_seen; /* kprobes: of the kernel's count, which wraps around */
	u64 missed;	 /* the same, whole */
};

/* What user space gave, copied and not yet checked. */
struct weft_event_input {
	struct weft_kernel_event arg;
	char *name;
	void *description;
	struct weft_fetch_op *ops;
	void *filter;
	u8 *known;
};

/* On a ring: a descriptor, 0 for an event that stays, or negative. */
int weft_event_ioctl_create(struct weft_channel *channel, void __user *user);

void weft_event_get(struct weft_event *event);
void weft_event_put(struct weft_event *event);

/* The caller has the lock of control. */
/* `on` and `scope_mode`, as its session is. */
void weft_event_update(struct weft_event *event);
void weft_event_end(struct weft_event *event);
/* Takes over what the kernel counted since the last time as hits that it did not deliver.
 * `counts`: they came while the session was on. One of everybody has them as discarded in its
 * ring. Of others nobody knows whether they were in scope: they are in a number of the
 * session's, which a reader of the ring does not see. */
void weft_event_take_missed(struct weft_event *event, bool counts);

/* Returns when every probe that was running has ended. May sleep. */
void weft_event_synchronize(void);
/* Frees all that waits to be freed. No descriptor may be open. */
void weft_event_flush(void);

/* event_input.c. copy: 0, or an error with nothing to free. make: fills `event` but for its source.
 */
int weft_event_input_copy(struct weft_event_input *input, const struct weft_kernel_event *arg);
void weft_event_input_free(struct weft_event_input *input);
int weft_event_make(struct weft_event *event, const struct weft_event_input *input);
void weft_event_unmake(struct weft_event *event);

/* tracepoint.c. */
int weft_tracepoint_attach(struct weft_event *event, const char *name);
void weft_tracepoint_detach(struct weft_event *event);

/* syscall.c. */
static inline bool weft_event_is_syscall(const struct weft_event *event)
{
	return event->kind == WEFT_KERNEL_SYSCALL_ENTRY || event->kind == WEFT_KERNEL_SYSCALL_EXIT;
}

int weft_syscall_attach(struct weft_event *event, const struct weft_event_input *input);
void weft_syscall_detach(struct weft_event *event);
void weft_syscall_free(struct weft_event *event);
/* The module goes: no event is left, and no probe runs. */
void weft_syscall_exit(void);

/* kprobe.c, kretprobes as well. After a detach: free. */
static inline bool weft_event_is_kprobe(const struct weft_event *event)
{
	return event->kind == WEFT_KERNEL_KPROBE || event->kind == WEFT_KERNEL_KRETPROBE;
}

int weft_kprobe_attach(struct weft_event *event, const char *name, u64 offset);
void weft_kprobe_detach(struct weft_event *event);
void weft_kprobe_free(struct weft_event *event);
/* The kernel's count of hits that it did not deliver, modulo 2^32. CPUs that count at the same
 * moment may overwrite each other's, so that it is a few too small, or even goes back. */
u32 weft_kprobe_missed(const struct weft_event *event);

/* uprobe.c, uretprobes as well. After a detach: synchronize, then free. */
static inline bool weft_event_is_uprobe(const struct weft_event *event)
{
	return event->kind == WEFT_KERNEL_UPROBE || event->kind == WEFT_KERNEL_URETPROBE;
}

int weft_uprobe_attach(struct weft_event *event, const struct weft_kernel_event *arg);
/* As weft_uprobe_apply, of a new event only. */
int weft_uprobe_begin(struct weft_event *event);
void weft_uprobe_detach(struct weft_event *event);
void weft_uprobe_synchronize(void);
void weft_uprobe_free(struct weft_event *event);
u64 weft_uprobe_missed(const struct weft_event *event);
/* Breakpoints into processes that came into the session's scope, or all of them as the session is
 * switched on, and out of those that left. Does what it can; the first error. */
int weft_uprobe_apply(struct weft_session *session);

#endif /* WEFT_KMOD_EVENT_H */
