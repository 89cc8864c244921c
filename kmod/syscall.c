// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of system calls, by number: one probe at the entry of all of them and one at the exit,
 * which look the number up in a table. A system call that no event is for costs only that look.
 *
 * Events of unknown numbers are in chains of their own, and are asked at each call as long as there
 * are any. The exits of two calls do not show which call it was, so the module notes their entries
 * and keeps their events in these chains, too. rt_sigreturn gives its task the registers of before
 * the signal, among them the mark that this is no system call; a successful exec has the number and
 * the table of the new program's execve.
 *
 * The chains are read by probes and changed under the lock of control; an event that left its chain
 * is freed when no probe can stand on it any more.
 */
#include "syscall.h"

#include <linux/bitops.h>
#include <linux/compat.h>
#include <linux/slab.h>
#include <linux/threads.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "compat.h"
#include "event_run.h"
#include "limits.h"

#define HAS_SYSCALLS (WEFT_HAS_TRACEPOINTS && IS_ENABLED(CONFIG_HAVE_SYSCALL_TRACEPOINTS))

/* Numbers of arguments: lib/abi/fetch.h. */
enum { ARGUMENT_NUMBER = 6, ARGUMENT_RESULT = 7 };
#define REGISTER_ARGUMENTS 0x3fu

struct syscall_side {
	const char *name; /* the tracepoint's */
	struct tracepoint *point;
	void *probe;
	u32 events; /* that need the probe; 0: it is not attached */
	u32 others; /* events with unknown numbers, and exits that need notes */
	/* Chains of events, by enum weft_kernel_syscall_table and number. */
	struct weft_event __rcu *first[2][WEFT_KERNEL_SYSCALL_NUMBERS];
	/* Chains of events whose system call's number is not below WEFT_KERNEL_SYSCALL_NUMBERS. */
	struct weft_event __rcu *unknown[2];
};

static struct syscall_side entry_side, exit_side;

/* Notes of entries that the exit needs: one bit for each task or process and each kind. They exist
 * from the first event that asks for such an exit until the module is unloaded. */
enum note {
	NOTE_SIGRETURN,	    /* by the task's number; cleared at the exit */
	NOTE_OLD_SIGRETURN, /* the other one that 32-bit programs have */
	/* By the process's number, because a thread that executes a program gets its leader's
	 * number. The note describes the last exec of any of its threads; the exit of the
	 * successful exec clears NOTE_EXEC. */
	NOTE_EXEC,
	NOTE_EXEC_COMPAT, /* in the table of 32-bit programs */
	NOTE_EXEC_AT,	  /* execveat */
	NOTES
};
static unsigned long *notes;
static u32 noted_exits; /* events */

static __always_inline unsigned int current_table(void)
{
#ifdef CONFIG_X86_64
	return in_ia32_syscall() ? WEFT_KERNEL_SYSCALLS_COMPAT : WEFT_KERNEL_SYSCALLS_NATIVE;
#else
	return in_compat_syscall() ? WEFT_KERNEL_SYSCALLS_COMPAT : WEFT_KERNEL_SYSCALLS_NATIVE;
#endif
}

static __always_inline struct weft_event *find(const struct syscall_side *side, unsigned int table,
					       long number)
{
	if (unlikely((unsigned long)number >= WEFT_KERNEL_SYSCALL_NUMBERS))
		return NULL;
	return rcu_dereference_raw(side->first[table][number]);
}

/* Returns the note of a call that takes a task back from a signal; negative: it is no such call. */
static __always_inline int sigreturn_of(unsigned int table, unsigned long number)
{
	if (table == WEFT_KERNEL_SYSCALLS_NATIVE)
		return number == __NR_rt_sigreturn ? NOTE_SIGRETURN : -1;
	/* The numbers of i386 and arm. */
	return number == 119 ? NOTE_OLD_SIGRETURN : number == 173 ? NOTE_SIGRETURN : -1;
}

static const u16 compat_sigreturns[] = {[NOTE_SIGRETURN] = 173, [NOTE_OLD_SIGRETURN] = 119};

/* Numbers of execve and execveat, by table. */
static const u16 execs[2][2] = {
	[WEFT_KERNEL_SYSCALLS_NATIVE] = {__NR_execve, __NR_execveat},
#ifdef CONFIG_X86_64
	[WEFT_KERNEL_SYSCALLS_COMPAT] = {11, 358},
#else
	[WEFT_KERNEL_SYSCALLS_COMPAT] = {11, 387},
#endif
};

static __always_inline bool is_exec(unsigned int table, unsigned long number)
{
	return number == execs[table][0] || number == execs[table][1];
}

static __always_inline unsigned long *note_of(int which)
{
	return notes + BIT_WORD(PID_MAX_LIMIT) * which;
}

/* Records an event whose task is in scope and that its filter did not reject early. */
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

/* The only subject that such an event can have is the current task: event_input.c. */
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

static __always_inline bool is_unknown(const struct weft_event *event, long number)
{
	return (unsigned long)number >= WEFT_KERNEL_SYSCALL_NUMBERS ||
	       !(event->syscall.known[number / 8] >> number % 8 & 1);
}

static __always_inline void run_unknown(const struct syscall_side *side, unsigned int table,
					struct pt_regs *regs, long number, long result)
{
	struct weft_event *event = rcu_dereference_raw(side->unknown[table]);

	if (!event)
		return;
	weft_tracepoint_enter();
	for (; event; event = rcu_dereference_raw(event->syscall.next)) {
		if (is_unknown(event, number) && is_wanted(event) && weft_event_passes_early(event))
			record(event, regs, number, result);
	}
	weft_tracepoint_leave();
}

static __always_inline void note_entry(unsigned int table, long number)
{
	const int which = sigreturn_of(table, number);

	if (which >= 0) {
		set_bit(current->pid, note_of(which));
	} else if (is_exec(table, number)) {
		assign_bit(current->tgid, note_of(NOTE_EXEC_COMPAT),
			   table == WEFT_KERNEL_SYSCALLS_COMPAT);
		assign_bit(current->tgid, note_of(NOTE_EXEC_AT), number == execs[table][1]);
		set_bit(current->tgid, note_of(NOTE_EXEC));
	}
}

static noinline notrace void enter_other(struct pt_regs *regs, long number)
{
	const unsigned int table = current_table();

	if (READ_ONCE(noted_exits))
		note_entry(table, number);
	run_unknown(&entry_side, table, regs, number, 0);
}

/* Returns the number of the call that took this task back from a signal, if one did; negative:
 * none. */
static __always_inline long take_sigreturn(unsigned int table)
{
	int which;

	for (which = NOTE_SIGRETURN; which <= NOTE_OLD_SIGRETURN; which++) {
		if (!test_bit(current->pid, note_of(which)))
			continue;
		clear_bit(current->pid, note_of(which));
		return table == WEFT_KERNEL_SYSCALLS_NATIVE ? __NR_rt_sigreturn
							    : compat_sigreturns[which];
	}
	return -1;
}

/* Can a call that succeeded have been an exec? x86 gives it the number of the new program's execve,
 * other machines leave that of its entry, which the new program's table has for another call. */
static __always_inline bool may_be_exec(unsigned int table, long number)
{
	return is_exec(table, number) || (!IS_ENABLED(CONFIG_X86_64) && is_exec(!table, number));
}

/* Changes table and number to those that the exec had at its entry, if that was noted. */
static __always_inline void take_exec(unsigned int *table, long *number)
{
	const pid_t process = current->tgid;
	const unsigned int from = test_bit(process, note_of(NOTE_EXEC_COMPAT))
					  ? WEFT_KERNEL_SYSCALLS_COMPAT
					  : WEFT_KERNEL_SYSCALLS_NATIVE;
	const u16 entered = execs[from][test_bit(process, note_of(NOTE_EXEC_AT))];

	if (!IS_ENABLED(CONFIG_X86_64) && *number != entered)
		return;
	if (!test_and_clear_bit(process, note_of(NOTE_EXEC)))
		return;
	*table = from;
	*number = entered;
}

static noinline notrace void exit_other(struct pt_regs *regs, long number, long result)
{
	unsigned int table = current_table();
	struct weft_event *event;

	if (READ_ONCE(noted_exits)) {
		if (number < 0 || sigreturn_of(table, number) >= 0) {
			const long taken = take_sigreturn(table);

			/* If the kernel cannot read the signal's frame, the number is unchanged. */
			if (number < 0 && taken >= 0)
				number = taken;
		} else if (result == 0 && may_be_exec(table, number)) {
			take_exec(&table, &number);
		}
	}
	event = find(&exit_side, table, number);
	if (event)
		run_chain(event, regs, number, result);
	run_unknown(&exit_side, table, regs, number, result);
}

static notrace void probe_entry(void *data, struct pt_regs *regs, long number)
{
	struct weft_event *event = find(&entry_side, current_table(), number);

	if (unlikely(event))
		run_chain(event, regs, number, 0);
	if (unlikely(READ_ONCE(entry_side.others)))
		enter_other(regs, number);
}

static notrace void probe_exit(void *data, struct pt_regs *regs, long result)
{
	const long number = syscall_get_nr(current, regs);
	struct weft_event *event;

	if (unlikely(READ_ONCE(exit_side.others)))
		return exit_other(regs, number, result);
	event = find(&exit_side, current_table(), number);
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

/* Attaches its probe for one more event. */
static int use(struct syscall_side *side)
{
	if (!side->point)
		for_each_kernel_tracepoint(look_at, side);
	if (!side->point)
		return -EOPNOTSUPP;
	if (!side->events) {
		int error = tracepoint_probe_register(side->point, side->probe, NULL);

		if (error)
			return error;
	}
	side->events++;
	return 0;
}

static void unuse(struct syscall_side *side)
{
	if (!--side->events)
		tracepoint_probe_unregister(side->point, side->probe, NULL);
}

static bool needs_notes(const struct weft_event *event, u32 number, u32 table)
{
	return event->kind == WEFT_KERNEL_SYSCALL_EXIT && number != WEFT_KERNEL_SYSCALL_UNKNOWN &&
	       (sigreturn_of(table, number) >= 0 || is_exec(table, number));
}

/* Begins to note entries of calls whose exits do not show which call it was. */
static int watch_entries(void)
{
	const size_t size = NOTES * BIT_WORD(PID_MAX_LIMIT) * sizeof(long);
	int error;

	if (!noted_exits && notes) {
		/* Notes whose exits came when no event asked for them; nor does a probe make more. */
		weft_event_synchronize();
		memset(notes, 0, size);
	}
	if (!notes)
		notes = vzalloc(size);
	if (!notes)
		return -ENOMEM;
	error = use(&entry_side);
	if (error)
		return error;
	WRITE_ONCE(noted_exits, noted_exits + 1);
	WRITE_ONCE(entry_side.others, entry_side.others + 1);
	WRITE_ONCE(exit_side.others, exit_side.others + 1);
	return 0;
}

static void unwatch_entries(void)
{
	WRITE_ONCE(exit_side.others, exit_side.others - 1);
	WRITE_ONCE(entry_side.others, entry_side.others - 1);
	WRITE_ONCE(noted_exits, noted_exits - 1);
	unuse(&entry_side);
}

/* Finds the start of the chain for the event's number. */
static int place_of(struct weft_event *event, const struct weft_event_input *input,
		    struct weft_event __rcu ***place)
{
	struct syscall_side *side = side_of(event);
	const u32 number = input->arg.number, table = input->arg.table;

	if (number < WEFT_KERNEL_SYSCALL_NUMBERS) {
		*place = &side->first[table][number];
		return 0;
	}
	if (number != WEFT_KERNEL_SYSCALL_UNKNOWN)
		return -EINVAL;
	event->syscall.known = kmemdup(input->known, WEFT_KERNEL_SYSCALL_NUMBERS / 8, GFP_KERNEL);
	if (!event->syscall.known)
		return -ENOMEM;
	*place = &side->unknown[table];
	return 0;
}

static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	struct syscall_side *side = side_of(event);
	struct weft_event __rcu **place;
	int error;

	if (!HAS_SYSCALLS)
		return -EOPNOTSUPP;
	error = place_of(event, input, &place);
	if (!error)
		error = use(side);
	if (error)
		return error;
	event->syscall.watches = needs_notes(event, input->arg.number, input->arg.table);
	if (event->syscall.watches) {
		error = watch_entries();
		if (error) {
			unuse(side);
			return error;
		}
	}
	event->syscall.place = place;
	RCU_INIT_POINTER(event->syscall.next, rcu_dereference_raw(*place));
	rcu_assign_pointer(*place, event);
	if (event->syscall.known)
		WRITE_ONCE(side->others, side->others + 1);
	return 0;
}

static void detach(struct weft_event *event)
{
	struct syscall_side *side = side_of(event);
	struct weft_event __rcu **place = event->syscall.place;

	while (rcu_dereference_raw(*place) != event)
		place = &rcu_dereference_raw(*place)->syscall.next;
	rcu_assign_pointer(*place, rcu_dereference_raw(event->syscall.next));
	if (event->syscall.known)
		WRITE_ONCE(side->others, side->others - 1);
	if (event->syscall.watches)
		unwatch_entries();
	unuse(side);
}

static void free_known(struct weft_event *event)
{
	kfree(event->syscall.known);
}

static void free_notes(void)
{
	vfree(notes);
	notes = NULL;
}

const struct weft_event_source weft_syscall_source = {
	.features = HAS_SYSCALLS ? WEFT_KERNEL_SYSCALLS | WEFT_KERNEL_UNKNOWN_SYSCALLS : 0,
	.attach = attach,
	.detach = detach,
	.free = free_known,
	.exit = free_notes,
};
