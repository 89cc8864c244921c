// SPDX-License-Identifier: GPL-2.0-only
/* Lists of contexts, records' and filters' access to them: context.h. */
#include "context.h"

#include <linux/err.h>
#include <linux/string.h>

#include "perf.h"

/* Returns the context's entry; NULL: only user space has it, or this kernel lacks it. */
static const struct weft_context_info *find_here(u16 id)
{
	const struct weft_context_info *info = weft_context_by_id(id);
	const unsigned int place = WEFT_CONTEXT_PLACE(id);

	if (!info || place >= WEFT_CONTEXT_PLACES)
		return NULL;
	return weft_context_paths[place].end == WEFT_CONTEXT_END_NONE ? NULL : info;
}

/* Is this entry one that a list may have, behind `before` others? */
static int check_spec(const struct weft_contexts *contexts, const struct weft_context_spec *spec,
		      u32 before)
{
	const bool perf = spec->id == WEFT_CONTEXT_PERF_CPU;
	u32 i;

	if (!find_here(spec->id))
		return -EOPNOTSUPP;
	if (spec->name_size || spec->name_offset || spec->reserved)
		return -EINVAL;
	if (perf)
		return 0;
	if (spec->perf_config || spec->perf_type)
		return -EINVAL;
	for (i = 0; i < before; i++)
		if (contexts->places[i] == WEFT_CONTEXT_PLACE(spec->id))
			return -EINVAL;
	return 0;
}

static int add(struct weft_contexts *contexts, const struct weft_context_spec *spec, u32 i)
{
	const struct weft_context_info *info = find_here(spec->id);
	struct weft_perf *perf;
	int error = check_spec(contexts, spec, i);

	if (error)
		return error;
	contexts->places[i] = WEFT_CONTEXT_PLACE(spec->id);
	contexts->sizes[i] = info->type == WEFT_CONTEXT_ADDRESSES ? sizeof(u32) : info->size;
	contexts->bytes += contexts->sizes[i];
	contexts->kernel_stack |= spec->id == WEFT_CONTEXT_CALLSTACK_KERNEL;
	contexts->user_stack |= spec->id == WEFT_CONTEXT_CALLSTACK_USER;
	if (spec->id != WEFT_CONTEXT_PERF_CPU)
		return 0;
	perf = weft_perf_open(spec->perf_type, spec->perf_config);
	if (IS_ERR(perf))
		return PTR_ERR(perf);
	contexts->perf[i] = perf;
	return 0;
}

void weft_contexts_destroy(struct weft_contexts *contexts)
{
	u32 i;

	for (i = 0; i < WEFT_KERNEL_MAX_CONTEXTS; i++)
		weft_perf_close(contexts->perf[i]);
}

int weft_contexts_init(struct weft_contexts *contexts, const struct weft_context_spec *specs,
		       u32 count)
{
	int error = 0;
	u32 i;

	if (count > WEFT_KERNEL_MAX_CONTEXTS)
		return -EINVAL;
	for (i = 0; i < count && !error; i++)
		error = add(contexts, &specs[i], i);
	contexts->count = error ? 0 : count;
	return error;
}

static void write_text(u8 *to, const char *text, u32 size)
{
	const u32 length = strnlen(text, size - 1);

	memcpy(to, text, length);
	memset(to + length, 0, size - length);
}

u32 weft_contexts_take_stacks(const struct weft_contexts *contexts, struct weft_callstacks *stacks,
			      unsigned long view)
{
	const bool hidden = view & WEFT_VIEW_OTHER;

	stacks->kernel.count = 0;
	stacks->user.count = 0;
	if (contexts->kernel_stack && !hidden)
		weft_callstack_kernel(&stacks->kernel);
	if (contexts->user_stack && !hidden)
		weft_callstack_user(&stacks->user);
	return (stacks->kernel.count + stacks->user.count) * sizeof(u64);
}

static u8 *write_stack(u8 *to, const struct weft_callstack *stack)
{
	memcpy(to, &stack->count, sizeof(stack->count));
	memcpy(to + sizeof(stack->count), stack->addresses, stack->count * sizeof(u64));
	return to + sizeof(stack->count) + stack->count * sizeof(u64);
}

/* Writes a value that is no integer of a task: a text, a call stack or a counter. */
static u8 *write_other(const struct weft_contexts *contexts, u32 i, u8 *to, unsigned long view,
		       const struct weft_callstacks *stacks)
{
	const u32 place = contexts->places[i], size = contexts->sizes[i];
	u64 value;

	if (place == WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CALLSTACK_KERNEL))
		return write_stack(to, &stacks->kernel);
	if (place == WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CALLSTACK_USER))
		return write_stack(to, &stacks->user);
	if (contexts->perf[i]) {
		value = weft_perf_read(contexts->perf[i]);
		memcpy(to, &value, sizeof(value));
	} else {
		write_text(to, weft_context_text(place, view), size);
	}
	return to + size;
}

u8 *weft_contexts_write(const struct weft_contexts *contexts, u8 *to, unsigned long view,
			const struct weft_callstacks *stacks)
{
	u32 i;

	for (i = 0; i < contexts->count; i++) {
		const u32 place = contexts->places[i];
		u64 value;

		if (unlikely(weft_context_paths[place].end >= WEFT_CONTEXT_END_TEXT)) {
			to = write_other(contexts, i, to, view, stacks);
			continue;
		}
		value = weft_context_value(place, view);
		if (contexts->sizes[i] == sizeof(value)) {
			memcpy(to, &value, sizeof(value));
			to += sizeof(value);
		} else {
			memcpy(to, &value, sizeof(u32));
			to += sizeof(u32);
		}
	}
	return to;
}

/* A context's number in a linked filter holds its place and, for a text, its size, so that the
 * filter looks nothing up when it runs. */
enum { NUMBER_PLACE = 0xff, NUMBER_SIZE_SHIFT = 8 };

static int filter_find(const struct weft_filter_contexts *self, uint8_t kind, const char *name,
		       uint32_t name_size, uint8_t *type)
{
	const struct weft_context_info *info;

	if (kind != WEFT_FILTER_SYMBOL_CONTEXT)
		return -ENOENT;
	info = weft_context_by_name(name, name_size);
	if (!info || !find_here(info->id) || info->type == WEFT_CONTEXT_ADDRESSES)
		return -ENOENT;
	*type = WEFT_FILTER_INT;
	if (info->type != WEFT_CONTEXT_TEXT)
		return WEFT_CONTEXT_PLACE(info->id);
	*type = WEFT_FILTER_STRING;
	return WEFT_CONTEXT_PLACE(info->id) | info->size << NUMBER_SIZE_SHIFT;
}

uint64_t weft_filter_context_int(void *arg, uint32_t number)
{
	return weft_context_value(number, (unsigned long)arg);
}

int weft_filter_context_fetch(void *arg, uint32_t number, struct weft_filter_value *value)
{
	const u32 size = number >> NUMBER_SIZE_SHIFT;

	if (size) {
		value->text = weft_context_text(number & NUMBER_PLACE, (unsigned long)arg);
		value->size = size;
		value->type = WEFT_FILTER_STRING;
		return 0;
	}
	value->bits = weft_filter_context_int(arg, number);
	value->type = WEFT_FILTER_INT;
	return 0;
}

const struct weft_filter_contexts weft_filter_contexts = {
	.find = filter_find,
	.fetch = weft_filter_context_fetch,
};
