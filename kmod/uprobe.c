// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of user functions: uprobes (an instruction of a file) and uretprobes (a return).
 *
 * A breakpoint is only in processes that the session records while it is on: the kernel asks the
 * consumer's filter when a process maps the file and when a consumer comes or goes. The kernel's
 * own means to ask again about all processes, uprobe_apply, is not exported, so a second consumer
 * with the same filter comes and goes instead, whenever the scope changes or the session is
 * switched.
 *
 * The filter knows a process by the task that owns its memory, the handler looks at the task that
 * runs: only that decides what is recorded. Handlers run in task context, and end before detached
 * probes are freed (synchronize).
 */
#include "uprobe.h"

#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/path.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/uprobes.h>

#include "compat.h"
#include "event_run.h"
#include "uprobe_calls.h"

#ifdef WEFT_HAS_UPROBES

/* Numbers of arguments: lib/abi/fetch.h; those of registers follow: fetch.h. */
enum {
	ARGUMENT_ADDRESS = 6,
	ARGUMENT_RESULT = 7,
	ARGUMENT_NS = 8,
	ARGUMENTS = WEFT_REGISTER_ARGUMENTS + WEFT_FETCH_REGISTERS + 1,
};
#define CALL_ARGUMENTS ((1u << WEFT_CALL_REGISTERS) - 1)

struct weft_uprobe {
	struct weft_event *event;
	struct path path;    /* held: the file that the agent opened */
	struct inode *inode; /* of the file that processes map, below an overlay if there is one */
	loff_t offset, semaphore;
	u64 twin; /* 0: it has none */
	struct uprobe_consumer consumer;
	struct uprobe_consumer again; /* see above; not registered but for a moment */
	weft_uprobe_handle handle, handle_again;
	struct weft_calls *calls; /* NULL: a return needs nothing of its entry */
	atomic64_t missed;
};

/* Is a breakpoint wanted in this address space? Judged by its owner; without owners (no memory
 * cgroups) it is wanted, and the handler judges. */
static bool is_wanted(const struct weft_event *event, struct mm_struct *mm)
{
	bool wanted = true;

	if (!READ_ONCE(event->on))
		return false;
#ifdef CONFIG_MEMCG
	if (event->within) {
		struct task_struct *owner;

		preempt_disable(); /* as scope.h wants it; and the owner stays */
		owner = rcu_dereference_check(mm->owner, 1);
		wanted = owner && weft_scope_has(event->within, owner);
		if (!wanted && mm == current->mm)
			wanted = weft_scope_has(event->within, current);
		preempt_enable();
	}
#endif
	return wanted;
}

static bool filter(WEFT_UPROBE_FILTER_PARAMETERS)
{
	return is_wanted(container_of(self, struct weft_uprobe, consumer)->event, mm);
}

static bool filter_again(WEFT_UPROBE_FILTER_PARAMETERS)
{
	return is_wanted(container_of(self, struct weft_uprobe, again)->event, mm);
}

static int do_nothing(struct uprobe_consumer *self, struct pt_regs *regs WEFT_UPROBE_DATA)
{
	return 0;
}

static void gather_registers(const struct pt_regs *regs, u64 *to)
{
#if defined(CONFIG_X86_64)
	to[0] = regs->ax;
	to[1] = regs->dx;
	to[2] = regs->cx;
	to[3] = regs->bx;
	to[4] = regs->si;
	to[5] = regs->di;
	to[6] = regs->bp;
	to[7] = regs->sp;
	to[8] = regs->r8;
	to[9] = regs->r9;
	to[10] = regs->r10;
	to[11] = regs->r11;
	to[12] = regs->r12;
	to[13] = regs->r13;
	to[14] = regs->r14;
	to[15] = regs->r15;
	to[16] = regs->ip;
#elif defined(CONFIG_ARM64)
	memcpy(to, regs->regs, sizeof(regs->regs));
	to[31] = regs->sp;
	to[32] = regs->pc;
#endif
	to[WEFT_FETCH_REGISTERS] = 0;
}

static void gather_arguments(struct pt_regs *regs, u64 *to)
{
	unsigned int i;

	for (i = 0; i < WEFT_CALL_REGISTERS; i++)
		to[i] = regs_get_kernel_argument(regs, i);
}

static int hit(struct uprobe_consumer *self, struct pt_regs *regs WEFT_UPROBE_DATA)
{
	struct weft_event *event = container_of(self, struct weft_uprobe, consumer)->event;
	u64 args[ARGUMENTS];

	preempt_disable_notrace();
	if (READ_ONCE(event->on)) {
		if (event->arguments & CALL_ARGUMENTS)
			gather_arguments(regs, args);
		if (event->arguments & 1u << WEFT_REGISTER_ARGUMENTS)
			gather_registers(regs, args + WEFT_REGISTER_ARGUMENTS);
		args[ARGUMENT_ADDRESS] = instruction_pointer(regs);
		weft_event_run(event, args, 0);
	}
	preempt_enable_notrace();
	return 0;
}

static bool concerns_current(const struct weft_event *event)
{
	bool concerns;

	if (event->scope_mode == WEFT_SCOPE_ALL)
		return true;
	preempt_disable_notrace();
	concerns = weft_scope_wants(event->scope);
	preempt_enable_notrace();
	return concerns;
}

static int called(struct uprobe_consumer *self, struct pt_regs *regs WEFT_UPROBE_DATA)
{
	struct weft_uprobe *probe = container_of(self, struct weft_uprobe, consumer);
	struct weft_call call;

	if (!READ_ONCE(probe->event->on) || !concerns_current(probe->event))
		return 0;
	gather_arguments(regs, call.registers);
	call.began = ktime_get_mono_fast_ns();
	weft_calls_enter(probe->calls, user_stack_pointer(regs), &call);
	return 0;
}

/* Returns the stack pointer at the entry of the call that returned. */
static unsigned long frame_of_return(struct pt_regs *regs)
{
#ifdef CONFIG_X86_64
	return user_stack_pointer(regs) - (user_64bit_mode(regs) ? 8 : 4); /* the return address */
#else
	return user_stack_pointer(regs);
#endif
}

/* Fills what is kept of the entry. */
static bool take_call(struct weft_uprobe *probe, struct pt_regs *regs, u64 *args)
{
	struct weft_call call;

	if (!weft_calls_leave(probe->calls, frame_of_return(regs), &call))
		return false;
	memcpy(args, call.registers, sizeof(call.registers));
	args[ARGUMENT_NS] = ktime_get_mono_fast_ns() - call.began;
	return true;
}

/* Counts a return of a call that was not kept. */
static void miss(struct weft_uprobe *probe)
{
	struct weft_event *event = probe->event;

	preempt_disable_notrace();
	if (READ_ONCE(event->on) && concerns_current(event)) {
		atomic64_inc(&probe->missed);
		weft_ring_discard(&event->channel->ring, WEFT_DISCARD_MISSED);
	}
	preempt_enable_notrace();
}

static int returned(struct uprobe_consumer *self, unsigned long function,
		    struct pt_regs *regs WEFT_UPROBE_DATA)
{
	struct weft_uprobe *probe = container_of(self, struct weft_uprobe, consumer);
	struct weft_event *event = probe->event;
	u64 args[ARGUMENTS];

	if (!READ_ONCE(event->on))
		return 0;
	if (probe->calls && !take_call(probe, regs, args)) {
		miss(probe);
		return 0;
	}
	args[ARGUMENT_ADDRESS] = function;
	args[ARGUMENT_RESULT] = regs_return_value(regs);
	preempt_disable_notrace();
	if (READ_ONCE(event->on)) {
		if (event->arguments & 1u << WEFT_REGISTER_ARGUMENTS)
			gather_registers(regs, args + WEFT_REGISTER_ARGUMENTS);
		weft_event_run(event, args, 0);
	}
	preempt_enable_notrace();
	return 0;
}

/* Holds the file that the descriptor is of. */
static int take_file(struct weft_uprobe *probe, int fd)
{
	struct file *file = fget(fd);
	int error = 0;

	if (!file)
		return -EBADF;
	probe->inode = d_real_inode(file->f_path.dentry);
	if (!(file->f_mode & FMODE_READ))
		error = -EBADF;
	else if (!probe->inode || !S_ISREG(probe->inode->i_mode))
		error = -EINVAL;
	if (!error) {
		probe->path = file->f_path;
		path_get(&probe->path);
	}
	fput(file);
	return error;
}

/* Is another one in its ring that records the same? The caller has the lock of control. */
static bool has_twin(const struct weft_uprobe *probe)
{
	const struct weft_event *other;

	list_for_each_entry (other, &probe->event->channel->session->events, node) {
		if (other->kind == probe->event->kind && other->channel == probe->event->channel &&
		    other->uprobe->twin == probe->twin && other->uprobe->inode == probe->inode &&
		    other->uprobe->offset == probe->offset)
			return true;
	}
	return false;
}

static int register_probe(struct weft_uprobe *probe)
{
	const struct weft_event *event = probe->event;
	const u64 size = i_size_read(probe->inode);
	const bool keeps = event->arguments & (CALL_ARGUMENTS | 1u << ARGUMENT_NS);

	if ((u64)probe->offset >= size || (u64)probe->semaphore >= size)
		return -EINVAL;
	probe->consumer.filter = filter;
	probe->again.filter = filter_again;
	probe->again.handler = do_nothing;
	if (event->kind == WEFT_KERNEL_UPROBE) {
		probe->consumer.handler = hit;
	} else {
		probe->consumer.ret_handler = returned;
		if (keeps) {
			probe->calls = weft_calls_new();
			if (!probe->calls)
				return -ENOMEM;
			probe->consumer.handler = called;
		}
	}
	return weft_uprobe_register(&probe->handle, probe->inode, probe->offset, probe->semaphore,
				    &probe->consumer);
}

static void free_probe(struct weft_uprobe *probe)
{
	if (probe->inode)
		path_put(&probe->path);
	if (probe->calls)
		weft_calls_free(probe->calls);
	kfree(probe);
}

/* The event is off: no process gets a breakpoint yet. */
static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	const struct weft_kernel_event *arg = &input->arg;
	struct weft_uprobe *probe = kzalloc(sizeof(*probe), GFP_KERNEL);
	int error;

	if (!probe)
		return -ENOMEM;
	probe->event = event;
	probe->offset = arg->offset;
	probe->semaphore = arg->semaphore;
	probe->twin = arg->twin;
	error = take_file(probe, arg->file);
	if (error) {
		kfree(probe);
		return error;
	}
	error = probe->twin && has_twin(probe) ? -EEXIST : register_probe(probe);
	if (error) {
		free_probe(probe);
		return error;
	}
	event->uprobe = probe;
	return 0;
}

/* Handlers may still run afterwards. */
static void detach(struct weft_event *event)
{
	struct weft_uprobe *probe = event->uprobe;

	weft_uprobe_unregister(probe->handle, probe->inode, probe->offset, &probe->consumer);
}

static void synchronize(void)
{
	weft_uprobe_unregister_sync();
}

static void free_event(struct weft_event *event)
{
	if (event->uprobe)
		free_probe(event->uprobe);
}

/* Puts breakpoints into processes that came into the session's scope, or into all of its processes
 * when the session is switched on, and takes them out of those that left. */
static int apply(struct weft_event *event)
{
	struct weft_uprobe *probe = event->uprobe;
	int error = weft_uprobe_register(&probe->handle_again, probe->inode, probe->offset,
					 probe->semaphore, &probe->again);

	if (!error)
		weft_uprobe_unregister(probe->handle_again, probe->inode, probe->offset,
				       &probe->again);
	return error;
}

static int begin(struct weft_event *event)
{
	int error = 0;

	if (event->on) {
		error = apply(event);
		synchronize();
	}
	return error;
}

static u64 missed(struct weft_event *event)
{
	return atomic64_read(&event->uprobe->missed);
}

const struct weft_event_source weft_uprobe_source = {
	.features = WEFT_KERNEL_UPROBES,
	.discards_missed = true,
	.attach = attach,
	.begin = begin,
	.apply = apply,
	.detach = detach,
	.synchronize = synchronize,
	.free = free_event,
	.missed = missed,
};

#else

const struct weft_event_source weft_uprobe_source = {};

#endif
