// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of system calls, by number: one probe at the entry of all of them and one at the exit,
 * which look the number up in a table. What a system call pays that nobody asked for is the look.
 *
 * The table's chains are read by probes and changed under the lock of control; an event that left
 * its chain is freed when no probe can stand on it any more.
 */
#include <linux/compat.h>
#include <linux/tracepoint.h>
#include <asm/syscall.h>

#include "compat.h"
#include "event_run.h"
#include "limits.h"

/* Where arguments stand: lib/abi/fetch.h. */
enum { ARGUMENT_NUMBER = 6, ARGUMENT_RESULT = 7 };
#define REGISTER_ARGUMENTS 0x3fu

struct syscall_side {
	const char *name; /* of the tracepoint */
	struct tracepoint *point;
	void *probe;
	u32 events; /* attached; 0: nor is the probe */
	/* Chains of events, by enum weft_kernel_syscall_table and number. */
	struct weft_event __rcu *first[2][WEFT_SYSCALL_NUMBERS];
};

static struct syscall_side entry_side, exit_side;

static __always_inline unsigned int current_table(void)
{
#ifdef CONFIG_X86_64
	return in_ia32_syscall() ? WEFT_KERNEL_SYSCALLS_COMPAT : WEFT_KERNEL_SYSCALLS_NATIVE;
#else
	return in_compat_syscall() ? WEFT_KERNEL_SYSCALLS_COMPAT : WEFT_KERNEL_SYSCALLS_NATIVE;
#endif
}

static __always_inline struct weft_event *find(const struct syscall_side *side, long number)
{
	if (unlikely((unsigned long)number >= WEFT_SYSCALL_NUMBERS))
		return NULL;
	return rcu_dereference_raw(side->first[current_table()][number]);
}

/* An event whose task is in scope, and that its filter did not reject early. */
static noinline notrace void record(struct weft_event *event, struct pt_regs *regs, long number,
				    long result)
{
	u64 args[WEFT_FETCH_MAX_ARGS];

	args[ARGUMENT_NUMBER] = number;
	args[ARGUMENT_RESULT] = result;
	if (event->arguments & REGISTER_ARGUMENTS)
		syscall_get_arguments(current, regs, (unsigned long *)args);
	weft_event_record(event, args);
}

/* Subjects are the current task or nobody: event_input.c. */
static __always_inline bool is_wanted(const struct weft_event *event)
{
	return READ_ONCE(event->on) &&
	       (event->scope_mode == WEFT_SCOPE_ALL || weft_scope_wants(event->scope));
}

static __always_inline void run_chain(struct weft_event *event, struct pt_regs *regs, long number,
				      long result)
{
	weft_tracepoint_enter();
	do {
		if (is_wanted(event) && weft_event_passes_early(event))
			record(event, regs, number, result);
		event = rcu_dereference_raw(event->syscall.next);
	} while (unlikely(event));
	weft_tracepoint_leave();
}

static notrace void probe_entry(void *data, struct pt_regs *regs, long number)
{
	struct weft_event *event = find(&entry_side, number);

	if (unlikely(event))
		run_chain(event, regs, number, 0);
}

static notrace void probe_exit(void *data, struct pt_regs *regs, long result)
{
	const long number = syscall_get_nr(current, regs);
	struct weft_event *event = find(&exit_side, number);

	if (unlikely(event))
		run_chain(event, regs, number, result);
}

static struct syscall_side entry_side = {.name = "sys_enter", .probe = probe_entry};
static struct syscall_side exit_side = {.name = "sys_exit", .probe = probe_exit};

static struct syscall_side *side_of(const struct weft_event *event)
{
	return event->kind == WEFT_KERNEL_SYSCALL_ENTRY ? &entry_side : &exit_side;
}

static void look_at(struct tracepoint *point, void *data)
{
	struct syscall_side *side = data;

	if (!strcmp(point->name, side->name))
		side->point = point;
}

int weft_syscall_attach(struct weft_event *event, u32 number, u32 table)
{
	struct syscall_side *side = side_of(event);
	struct weft_event __rcu **first;
	int error;

	if (!WEFT_HAS_TRACEPOINTS || !IS_ENABLED(CONFIG_HAVE_SYSCALL_TRACEPOINTS))
		return -EOPNOTSUPP;
	if (number >= WEFT_SYSCALL_NUMBERS)
		return -EINVAL;
	if (!side->point)
		for_each_kernel_tracepoint(look_at, side);
	if (!side->point)
		return -EOPNOTSUPP;
	first = &side->first[table][number];
	if (!side->events) {
		error = tracepoint_probe_register(side->point, side->probe, NULL);
		if (error)
			return error;
	}
	side->events++;
	event->syscall.place = first;
	RCU_INIT_POINTER(event->syscall.next, rcu_dereference_raw(*first));
	rcu_assign_pointer(*first, event);
	return 0;
}

void weft_syscall_detach(struct weft_event *event)
{
	struct syscall_side *side = side_of(event);
	struct weft_event __rcu **place = event->syscall.place;

	while (rcu_dereference_raw(*place) != event)
		place = &rcu_dereference_raw(*place)->syscall.next;
	rcu_assign_pointer(*place, rcu_dereference_raw(event->syscall.next));
	if (!--side->events)
		tracepoint_probe_unregister(side->point, side->probe, NULL);
}
