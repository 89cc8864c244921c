// SPDX-License-Identifier: GPL-2.0-only
/* Checking and linking an event's parts: event_input.h. */
#include "event_input.h"

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "lib/event/fetch_validate.h"

#define SUBJECT_ARGUMENTS ((1u << WEFT_FETCH_MAX_ARGS) - 1)

/* Can this struct be an event's? Does not look at the memory that it points to. */
static int check_arg(const struct weft_kernel_event *arg)
{
	const bool in_file = arg->kind == WEFT_KERNEL_UPROBE || arg->kind == WEFT_KERNEL_URETPROBE;
	const bool named = arg->kind == WEFT_KERNEL_TRACEPOINT || arg->kind == WEFT_KERNEL_KPROBE ||
			   arg->kind == WEFT_KERNEL_KRETPROBE;

	const bool of_unknown =
		(arg->kind == WEFT_KERNEL_SYSCALL_ENTRY || arg->kind == WEFT_KERNEL_SYSCALL_EXIT) &&
		arg->number == WEFT_KERNEL_SYSCALL_UNKNOWN;

	if (!weft_fetch_arg_count(arg->kind) || (arg->flags & ~WEFT_KERNEL_EVENT_STAYS) ||
	    arg->event_id || of_unknown != !!arg->known)
		return -EINVAL;
	if (named ? arg->name_size < 2 || arg->name_size > WEFT_KERNEL_NAME_MAX || arg->number ||
			    arg->table
		  : arg->name_size || arg->name)
		return -EINVAL;
	if (in_file && (arg->number || arg->table))
		return -EINVAL;
	if (arg->kind != WEFT_KERNEL_KPROBE && !in_file && arg->offset)
		return -EINVAL;
	if ((!in_file && (arg->file || arg->twin)) ||
	    (arg->kind != WEFT_KERNEL_UPROBE && arg->semaphore))
		return -EINVAL;
	if (arg->table > WEFT_KERNEL_SYSCALLS_COMPAT)
		return -EINVAL;
	if (arg->kind == WEFT_KERNEL_STATE &&
	    (!arg->number || arg->number > WEFT_KERNEL_STATE_MAX || arg->table || arg->subjects))
		return -EINVAL;
	if (arg->subjects & ~(SUBJECT_ARGUMENTS | WEFT_KERNEL_SUBJECT_CURRENT))
		return -EINVAL;
	if (!arg->description_size || arg->description_size > WEFT_EVENT_DESC_MAX_BYTES ||
	    arg->fetch_count > WEFT_FETCH_MAX_OPS || arg->filter_size > WEFT_FILTER_MAX_BYTES ||
	    !arg->filter != !arg->filter_size)
		return -EINVAL;
	return 0;
}

/* Copies `size` bytes into new memory; leaves *to NULL if there are none. */
static int copy(void **to, u64 from, u32 size)
{
	void *memory;

	if (!size)
		return 0;
	memory = vmemdup_user(u64_to_user_ptr(from), size);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	*to = memory;
	return 0;
}

int weft_event_input_copy(struct weft_event_input *input, const struct weft_kernel_event *arg)
{
	int error = check_arg(arg);

	if (error)
		return error;
	input->arg = *arg;
	error = copy((void **)&input->name, arg->name, arg->name_size);
	if (!error && input->name && strnlen(input->name, arg->name_size) != arg->name_size - 1)
		error = -EINVAL;
	if (!error)
		error = copy(&input->description, arg->description, arg->description_size);
	if (!error)
		error = copy((void **)&input->ops, arg->fetch,
			     arg->fetch_count * sizeof(*input->ops));
	if (!error)
		error = copy(&input->filter, arg->filter, arg->filter_size);
	if (!error)
		error = copy((void **)&input->known, arg->known,
			     arg->known ? WEFT_KERNEL_SYSCALL_NUMBERS / 8 : 0);
	if (error)
		weft_event_input_free(input);
	return error;
}

void weft_event_input_free(struct weft_event_input *input)
{
	kvfree(input->name);
	kvfree(input->description);
	kvfree(input->ops);
	kvfree(input->filter);
	kvfree(input->known);
}

/* Decides which tasks are asked whether an event is recorded. */
static int make_scope(struct weft_event *event, const struct weft_kernel_event *arg)
{
	struct weft_session *session = event->channel->session;

	event->subjects = arg->subjects;
	event->scope = &session->scope;
	if (session->all) {
		event->own_scope_mode = WEFT_SCOPE_ALL;
		return 0;
	}
	event->within = &session->scope;
	if (arg->kind == WEFT_KERNEL_STATE) {
		/* The task that runs is the one that asked for the dump: contexts do not show it. */
		event->own_scope_mode = WEFT_SCOPE_SUBJECTS;
		return arg->number < WEFT_KERNEL_STATE_BLOCK_DEVICE ? 0 : -EINVAL;
	}
	if (!arg->subjects)
		return -EINVAL;
	event->own_scope_mode = arg->subjects == WEFT_KERNEL_SUBJECT_CURRENT ? WEFT_SCOPE_CURRENT
									     : WEFT_SCOPE_SUBJECTS;
	if ((arg->subjects & SUBJECT_ARGUMENTS) && arg->kind != WEFT_KERNEL_TRACEPOINT)
		return -EINVAL;
	return 0;
}

static int make_filter(struct weft_event *event, const struct weft_event_input *input,
		       const struct weft_description_layout *layout)
{
	const u32 size = input->arg.filter_size;
	void *linked;
	int bound, error;

	if (!input->filter)
		return 0;
	bound = weft_filter_link(input->filter, size, input->description, layout,
				 &weft_filter_contexts, NULL, 0);
	if (bound < 0)
		return bound;
	linked = kvmalloc(bound, GFP_KERNEL);
	if (!linked)
		return -ENOMEM;
	error = weft_filter_link(input->filter, size, input->description, layout,
				 &weft_filter_contexts, linked, bound);
	if (error < 0) {
		kvfree(linked);
		return error;
	}
	event->filter = linked;
	event->early = !(weft_filter_reads(linked) & WEFT_FILTER_READS_FIELD);
	return 0;
}

static int make_program(struct weft_event *event, const struct weft_event_input *input,
			const struct weft_description_layout *layout)
{
	const u32 count = input->arg.fetch_count;
	struct weft_fetch_step *steps;
	struct weft_fetch_needs needs;
	int error = weft_fetch_validate(input->ops, count, event->kind, input->description, layout,
					&needs);

	if (error)
		return error;
	steps = kvmalloc_array(count + 1, sizeof(*steps), GFP_KERNEL);
	if (!steps)
		return -ENOMEM;
	weft_fetch_make(steps, input->ops, count, input->description, layout);
	event->steps = steps;
	event->arguments = needs.args | (event->subjects & SUBJECT_ARGUMENTS);
	event->most = weft_ring_round(event->size + needs.segment_bytes);
	if (needs.uses & WEFT_FETCH_USES_REGISTERS)
		event->arguments |= 1u << WEFT_REGISTER_ARGUMENTS;
	return 0;
}

static enum weft_event_way way_of(const struct weft_event *event,
				  const struct weft_description_layout *layout)
{
	if ((event->filter && !event->early) ||
	    weft_contexts_have_stacks(&event->channel->contexts) || layout->segment_count ||
	    layout->nowrite_segments || layout->nowrite_size)
		return WEFT_WAY_IMAGE;
	return weft_fetch_is_plain(event->steps) ? WEFT_WAY_PLAIN : WEFT_WAY_DIRECT;
}

int weft_event_make(struct weft_event *event, const struct weft_event_input *input)
{
	const struct weft_kernel_event *arg = &input->arg;
	struct weft_description_layout layout;
	int error = weft_description_check(input->description, arg->description_size, &layout);

	if (error)
		return error;
	if (layout.size != arg->description_size)
		return -EINVAL;
	event->kind = arg->kind;
	event->stays = arg->flags & WEFT_KERNEL_EVENT_STAYS;
	event->view = arg->kind < WEFT_KERNEL_KPROBE ? WEFT_VIEW_TRACEPOINT : 0;
	event->fixed_size = layout.fixed_size;
	event->segments = layout.segment_count;
	event->size =
		sizeof(struct weft_record) + event->channel->contexts.bytes + layout.fixed_size;
	event->rounded = weft_ring_round(event->size);
	error = make_scope(event, arg);
	if (!error)
		error = make_program(event, input, &layout);
	if (!error)
		error = make_filter(event, input, &layout);
	if (!error)
		event->way = way_of(event, &layout);
	return error;
}
