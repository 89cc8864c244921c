// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of tracepoints, whatever their prototype: tracepoints hand their arguments to probes in
 * registers and on the stack as any function call does, so one function of 64-bit arguments serves
 * all of them. It sees garbage in registers behind those that the tracepoint has. It reads
 * arguments on the stack only if a program asks for them, and by loads that may fault: a tracepoint
 * with fewer arguments may be at the top of a stack, with nothing behind it (local_timer_entry is).
 * Kernels that check the type of an indirect call cannot do this (WEFT_HAS_TRACEPOINTS).
 *
 * Tracepoints are found by name: the kernel's own by a walk, modules' by what their notifier tells
 * when it is registered. A module whose tracepoint is used is held.
 */
#include "tracepoint.h"

#include <linux/module.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "access.h"
#include "compat.h"
#include "event_run.h"

/* The number of arguments in registers, behind the probe's own data pointer, and the number of
 * arguments that can be read. */
#ifdef CONFIG_X86_64
#define REGISTER_ARGS 5
#define ALL_ARGS      WEFT_FETCH_MAX_ARGS
#else
#define REGISTER_ARGS 5
#define ALL_ARGS      5
#endif

static __always_inline void fire(struct weft_event *event, const u64 *args)
{
	weft_tracepoint_enter();
	weft_event_run(event, args, preempt_count());
	weft_tracepoint_leave();
}

/* The probe for an event that needs only arguments in registers. */
static notrace void probe_registers(void *data, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4)
{
	struct weft_event *event = data;
	const u64 args[REGISTER_ARGS] = {a0, a1, a2, a3, a4};

	if (READ_ONCE(event->on))
		fire(event, args);
}

/* On x86-64 the stack's arguments lie behind the saved frame pointer and the return address. */
static notrace void probe_stack(void *data, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4)
{
	struct weft_event *event = data;
	u64 args[ALL_ARGS] = {a0, a1, a2, a3, a4};
	const u64 stack = (unsigned long)__builtin_frame_address(0) + 2 * sizeof(u64);
	const int end = fls(event->arguments);
	int i;

	if (!READ_ONCE(event->on))
		return;
	for (i = REGISTER_ARGS; i < end; i++)
		weft_load_kernel(&args[i], stack + (i - REGISTER_ARGS) * sizeof(u64), sizeof(u64));
	fire(event, args);
}

struct search {
	const char *name;
	struct tracepoint *found;
	struct module *owner;
	struct notifier_block modules;
};

static void look_at(struct tracepoint *point, void *data)
{
	struct search *search = data;

	if (!search->found && !strcmp(point->name, search->name))
		search->found = point;
}

#ifdef CONFIG_MODULES
static int look_at_module(struct notifier_block *block, unsigned long event, void *data)
{
	struct search *search = container_of(block, struct search, modules);
	struct module *module = ((struct tp_module *)data)->mod;
	unsigned int i;

	if (event != MODULE_STATE_COMING || search->found)
		return NOTIFY_DONE;
	for (i = 0; i < module->num_tracepoints; i++) {
		struct tracepoint *point = tracepoint_ptr_deref(&module->tracepoints_ptrs[i]);

		if (strcmp(point->name, search->name) || !try_module_get(module))
			continue;
		search->found = point;
		search->owner = module;
		break;
	}
	return NOTIFY_DONE;
}

/* Registering tells of all modules that are there. */
static int find_in_modules(struct search *search)
{
	int error;

	search->modules.notifier_call = look_at_module;
	error = register_tracepoint_module_notifier(&search->modules);
	if (error)
		return error;
	return unregister_tracepoint_module_notifier(&search->modules);
}
#else
static int find_in_modules(struct search *search)
{
	return 0;
}
#endif

static int attach(struct weft_event *event, const struct weft_event_input *input)
{
	struct search search = {.name = input->name};
	void *probe =
		event->arguments >> REGISTER_ARGS ? (void *)probe_stack : (void *)probe_registers;
	int error = 0;

	if (!WEFT_HAS_TRACEPOINTS || event->arguments >> ALL_ARGS)
		return -EOPNOTSUPP;
	for_each_kernel_tracepoint(look_at, &search);
	if (!search.found)
		error = find_in_modules(&search);
	if (!error && !search.found)
		error = -ENOENT;
	if (!error)
		error = tracepoint_probe_register(search.found, probe, event);
	if (error) {
		module_put(search.owner);
		return error;
	}
	event->tracepoint_source.point = search.found;
	event->tracepoint_source.owner = search.owner;
	event->tracepoint_source.probe = probe;
	return 0;
}

static void detach(struct weft_event *event)
{
	tracepoint_probe_unregister(event->tracepoint_source.point, event->tracepoint_source.probe,
				    event);
	module_put(event->tracepoint_source.owner);
}

const struct weft_event_source weft_tracepoint_source = {
	.features = WEFT_HAS_TRACEPOINTS ? WEFT_KERNEL_TRACEPOINTS : 0,
	.attach = attach,
	.detach = detach,
};
