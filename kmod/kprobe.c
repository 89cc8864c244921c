// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of functions: kprobes (an instruction) and kretprobes (a return). The kernel counts the
 * hits that it could not deliver (inside another probe, or too many calls at once). It does not
 * tell which tasks they concern: event.h, weft_event_take_missed.
 *
 * The kernel calls handlers with preemption off (Documentation/trace/kprobes.rst, "Kprobe Features
 * and Limitations").
 */
#include "kprobe.h"

#include <linux/kprobes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/timekeeping.h>

#include "compat.h"
#include "event_run.h"
#include "limits.h"

#ifdef CONFIG_KRETPROBES

/* Numbers of arguments: lib/abi/fetch.h. */
enum {
	ARGUMENT_REGISTERS = 6,
	ARGUMENT_ADDRESS = 6,
	ARGUMENT_RESULT = 7,
	ARGUMENT_NS = 8,
};
#define REGISTER_ARGUMENTS ((1u << ARGUMENT_REGISTERS) - 1)
#define TIME_ARGUMENT	   (1u << ARGUMENT_NS)

struct weft_kprobe {
	struct weft_event *event;
	char *symbol;
	union {
		struct kprobe entry;
		struct kretprobe exit;
	};
	u32 missed_seen; /* the kernel's count, which wraps around */
	u64 missed;	 /* whole */
};

/* Values that are kept from the entry of a call until its return. */
struct call {
	u64 registers[ARGUMENT_REGISTERS];
	u64 began;    /* ns */
	u32 narrowed; /* the scope's, at the entry */
};

static __always_inline bool reads_registers(const struct weft_event *event)
{
	return event->arguments & REGISTER_ARGUMENTS;
}

/* Apart, so that events that read none do not save registers for it. */
static noinline void gather(struct pt_regs *regs, u64 *args)
{
	unsigned int i;

	for (i = 0; i < ARGUMENT_REGISTERS; i++)
		args[i] = regs_get_kernel_argument(regs, i);
}
NOKPROBE_SYMBOL(gather);

/* Returns preempt_count() of the function that was hit. On x86 the breakpoint's own exception
 * counts as an NMI; a jump or call in its place counts as none. NMI code itself cannot have
 * breakpoints. */
static __always_inline unsigned int count_of(const struct kprobe *kprobe)
{
	const unsigned int count = preempt_count();

	if ((count & NMI_MASK) && !(kprobe->flags & (KPROBE_FLAG_FTRACE | KPROBE_FLAG_OPTIMIZED)))
		return count - (NMI_OFFSET + HARDIRQ_OFFSET);
	return count;
}

static int hit(struct kprobe *kprobe, struct pt_regs *regs)
{
	struct weft_event *event = container_of(kprobe, struct weft_kprobe, entry)->event;
	u64 args[WEFT_FETCH_MAX_ARGS];

	if (!READ_ONCE(event->on))
		return 0;
	if (reads_registers(event))
		gather(regs, args);
	args[ARGUMENT_ADDRESS] = (unsigned long)kprobe->addr;
	weft_event_run(event, args, count_of(kprobe));
	return 0;
}
NOKPROBE_SYMBOL(hit);

/* Does an event of a return read values of its call? Most read none. */
static __always_inline bool reads_call(const struct weft_event *event)
{
	return event->arguments & (REGISTER_ARGUMENTS | TIME_ARGUMENT);
}

static noinline void keep_call(const struct weft_event *event, struct call *call,
			       struct pt_regs *regs)
{
	if (event->arguments & TIME_ARGUMENT)
		call->began = ktime_get_mono_fast_ns();
	if (reads_registers(event))
		gather(regs, call->registers);
}
NOKPROBE_SYMBOL(keep_call);

static noinline void take_call(const struct weft_event *event, const struct call *call, u64 *args)
{
	if (reads_registers(event))
		memcpy(args, call->registers, sizeof(call->registers));
	if (event->arguments & TIME_ARGUMENT)
		args[ARGUMENT_NS] = ktime_get_mono_fast_ns() - call->began;
}
NOKPROBE_SYMBOL(take_call);

/* Returns NULL if the probe is being removed. */
static __always_inline struct weft_event *event_of(struct kretprobe *kretprobe)
{
	return kretprobe ? container_of(kretprobe, struct weft_kprobe, exit)->event : NULL;
}

/* Is the task in scope at the return? A task that was in scope at the call still is, unless the
 * scope was narrowed. */
static __always_inline bool is_still_wanted(const struct weft_event *event, const struct call *call)
{
	return likely(call->narrowed == READ_ONCE(event->scope->narrowed)) ||
	       event->scope_mode == WEFT_SCOPE_ALL || weft_scope_wants(event->scope);
}

/* 1: the return of this call is of no interest. */
static int called(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct kretprobe *kretprobe = weft_kretprobe_of(instance);
	struct weft_event *event = event_of(kretprobe);
	struct call *call = (struct call *)instance->data;

	if (!event || !READ_ONCE(event->on))
		return 1;
	call->narrowed = READ_ONCE(event->scope->narrowed);
	if (event->scope_mode != WEFT_SCOPE_ALL &&
	    !weft_event_concerns_current(event, count_of(&kretprobe->kp)))
		return 1;
	if (reads_call(event))
		keep_call(event, call, regs);
	return 0;
}
NOKPROBE_SYMBOL(called);

static int returned(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct kretprobe *kretprobe = weft_kretprobe_of(instance);
	struct weft_event *event = event_of(kretprobe);
	const struct call *call = (struct call *)instance->data;
	u64 args[WEFT_FETCH_MAX_ARGS];

	if (!event || !READ_ONCE(event->on))
		return 0;
	if (reads_call(event))
		take_call(event, call, args);
	args[ARGUMENT_ADDRESS] = (unsigned long)kretprobe->kp.addr;
	args[ARGUMENT_RESULT] = regs_return_value(regs);
	if (is_still_wanted(event, call) && weft_event_passes_early(event))
		weft_event_record(event, args);
	return 0;
}
NOKPROBE_SYMBOL(returned);

static int register_probe(struct weft_kprobe *probe, u64 offset)
{
	if (probe->event->kind == WEFT_KERNEL_KPROBE) {
		probe->entry.symbol_name = probe->symbol;
		probe->entry.offset = offset;
		probe->entry.pre_handler = hit;
		return register_kprobe(&probe->entry);
	}
	probe->exit.kp.symbol_name = probe->symbol;
	probe->exit.entry_handler = called;
	probe->exit.handler = returned;
	probe->exit.data_size = sizeof(struct call);
	probe->exit.maxactive = WEFT_KRETPROBE_CALLS;
	return register_kretprobe(&probe->exit);
}

static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	struct weft_kprobe *probe;
	int error = -ENOMEM;

	if (input->arg.offset > WEFT_KPROBE_MAX_OFFSET)
		return -EINVAL;
	probe = kzalloc(sizeof(*probe), GFP_KERNEL);
	if (!probe)
		return -ENOMEM;
	probe->event = event;
	probe->symbol = kstrdup(input->name, GFP_KERNEL);
	if (probe->symbol)
		error = register_probe(probe, input->arg.offset);
	if (!error) {
		event->kprobe = probe;
		return 0;
	}
	kfree(probe->symbol);
	kfree(probe);
	return error;
}

/* Both unregister functions wait until no handler runs. */
static void detach(struct weft_event *event)
{
	struct weft_kprobe *probe = event->kprobe;

	if (event->kind == WEFT_KERNEL_KPROBE)
		unregister_kprobe(&probe->entry);
	else
		unregister_kretprobe(&probe->exit);
}

static void free_probe(struct weft_event *event)
{
	if (!event->kprobe)
		return;
	kfree(event->kprobe->symbol);
	kfree(event->kprobe);
}

/* Returns the kernel's count, which wraps around. CPUs that count at the same moment may overwrite
 * each other's, so that it is a few too small, or even goes back. */
static u32 count_missed(const struct weft_event *event)
{
	const struct weft_kprobe *probe = event->kprobe;

	return event->kind == WEFT_KERNEL_KPROBE
		       ? READ_ONCE(probe->entry.nmissed)
		       : READ_ONCE(probe->exit.nmissed) + READ_ONCE(probe->exit.kp.nmissed);
}

static u64 missed(struct weft_event *event)
{
	struct weft_kprobe *probe = event->kprobe;
	const u32 seen = count_missed(event);
	const s32 more = seen - probe->missed_seen;

	if (more > 0) {
		probe->missed_seen = seen;
		probe->missed += more;
	}
	return probe->missed;
}

const struct weft_event_source weft_kprobe_source = {
	.features = WEFT_KERNEL_KPROBES,
	.attach = attach,
	.detach = detach,
	.free = free_probe,
	.missed = missed,
};

#else

const struct weft_event_source weft_kprobe_source = {};

#endif
