/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State dumps (lib/abi/kernel.h, STATEDUMP): the objects that exist when a session begins,
 * recorded by its events of kind STATE. The module only walks through the objects. The events'
 * fetch programs decide what is recorded, as for every kind of event.
 *
 * A dump runs in the thread that requests it, in steps. A step finds the next object after a place
 * (a pid, a descriptor, an address: a number, never a pointer), takes what keeps the object alive
 * (a lock, RCU), passes it to the events, and releases it. Between steps the dump holds no lock,
 * and no reference except those to the task that it visits and its network namespace. It can
 * therefore wait for readers, and tasks may start, end and change meanwhile. An object that exists
 * from the dump's START to its END is recorded once; other objects may be missing.
 *
 * There are two fences. When START is in its ring, all records that began before the call are in
 * the other rings. When END is in its ring, all records are there that began before the dump's
 * last record. One thread makes the dump's own records and publishes each before it begins the
 * next, on whatever CPUs it runs. The end of a grace period publishes the records of other probes
 * that began before the fence, since probes run with preemption off, or as readers of the
 * tracepoints' own RCU. The dump therefore need not write into rings of CPUs on which it did not
 * run.
 */
#ifndef WEFT_KMOD_STATEDUMP_H
#define WEFT_KMOD_STATEDUMP_H

#include <linux/xarray.h>

#include "event_source.h"
#include "scope.h"
#include "session.h"
#include "lib/abi/kernel.h"

#define WEFT_STATE_ARGS 6

struct weft_statedump {
	struct weft_session *session;
	struct weft_scope only;	    /* the cgroup that the caller asked for; none: all in scope */
	struct weft_event **events; /* references */
	u32 count;
	/* The current object, and the next event to get it; the events before have recorded it. */
	u32 state;
	u64 key;
	u32 next;
	bool full;    /* the last step found no room */
	u32 wanted;   /* bit n: there is an event for enum weft_kernel_state n */
	int patience; /* ticks for which it still waits for room */
	u64 number, found, lost;
	char *text;	    /* PATH_MAX: what a thing is called */
	struct xarray nets; /* namespaces that were gone through, by inode number */
};

/* Finds the thing behind `place` and records it. 1: and moved `place` behind it; 0: there is
 * none any more; -EAGAIN: to be called again, with the same place, a little later; else an
 * error. */
typedef int (*weft_statedump_step)(struct weft_statedump *dump, void *place);

/* WEFT_IOCTL_STATEDUMP. `cgroup`: 0 for all. 0 or negative. */
int weft_statedump(struct weft_session *session, u64 cgroup);

/* The source of events of kind STATE. */
extern const struct weft_event_source weft_statedump_source;

/* Takes all steps. Returns 0 or an error, -EINTR and -ESHUTDOWN among them. May sleep. */
int weft_statedump_walk(struct weft_statedump *dump, weft_statedump_step step, void *place);

/* Hands a thing to the events that ask for it; does not sleep. 0; -EAGAIN: one had no room: if
 * the thing is still there later, which is known by `key` among those of a walk, that one gets
 * it next. */
int weft_statedump_record(struct weft_statedump *dump, enum weft_kernel_state state, u64 key,
			  const u64 args[WEFT_STATE_ARGS]);

static inline bool weft_statedump_wants(const struct weft_statedump *dump, u32 states)
{
	return dump->wanted & states;
}

/* Is the dump restricted to a cgroup's tasks? */
static inline bool weft_statedump_is_of_some(const struct weft_statedump *dump)
{
	return rcu_access_pointer(dump->only.cgroups);
}

/* Is the task in the session's scope, and do trackers have it? The caller is an RCU reader. */
static inline bool weft_statedump_has(const struct weft_statedump *dump, struct task_struct *task)
{
	const struct weft_scope *scope = &dump->session->scope;

	return weft_scope_has(scope, task) &&
	       weft_trackers_have_address(&scope->trackers, (unsigned long)task);
}

/* Like weft_statedump_has; also, is the task one that the caller asked for? */
static inline bool weft_statedump_means(const struct weft_statedump *dump, struct task_struct *task)
{
	return weft_statedump_has(dump, task) &&
	       (!weft_statedump_is_of_some(dump) || weft_scope_has(&dump->only, task));
}

/* statedump_task.c: dumps tasks and what they have; is there any such task? */
int weft_statedump_tasks(struct weft_statedump *dump);
bool weft_statedump_means_any_task(const struct weft_statedump *dump);
/* statedump_machine.c: CPUs, interrupts, block devices. */
int weft_statedump_machine(struct weft_statedump *dump);

#endif /* WEFT_KMOD_STATEDUMP_H */
