// SPDX-License-Identifier: GPL-2.0-only
/* Lists of contexts, records' and filters' access to them: context.h. */
#include "context.h"

#include <linux/errno.h>
#include <linux/string.h>
#include <linux/utsname.h>

/* All but those that only user space has. */
static const struct weft_context_info *find_here(u16 id)
{
	switch (id) {
	case WEFT_CONTEXT_PTHREAD_ID:
	case WEFT_CONTEXT_IP:
	case WEFT_CONTEXT_PERF_THREAD:
	case WEFT_CONTEXT_APP:
		return NULL;
	default:
		return weft_context_by_id(id);
	}
}

int weft_contexts_init(struct weft_contexts *contexts, const struct weft_context_spec *specs,
		       u32 count)
{
	u32 i, j;

	if (count > WEFT_KERNEL_MAX_CONTEXTS)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		const struct weft_context_spec *spec = &specs[i];
		const struct weft_context_info *info = find_here(spec->id);

		if (!info)
			return -EOPNOTSUPP;
		if (spec->name_size || spec->name_offset || spec->perf_config || spec->perf_type ||
		    spec->reserved)
			return -EINVAL;
		for (j = 0; j < i; j++)
			if (contexts->ids[j] == spec->id)
				return -EINVAL;
		contexts->ids[i] = spec->id;
		contexts->sizes[i] = info->size;
		contexts->bytes += info->size;
	}
	contexts->count = count;
	return 0;
}

static void write_text(u8 *to, const char *text, u32 size)
{
	const u32 length = strnlen(text, size - 1);

	memcpy(to, text, length);
	memset(to + length, 0, size - length);
}

u8 *weft_contexts_write(const struct weft_contexts *contexts, u8 *to, unsigned long view)
{
	u32 i;

	for (i = 0; i < contexts->count; i++) {
		const u32 size = contexts->sizes[i];
		u64 value;

		if (size > sizeof(value)) {
			write_text(to, weft_context_text(contexts->ids[i], view), size);
		} else {
			value = weft_context_value(contexts->ids[i], view);
			if (size == sizeof(value))
				memcpy(to, &value, sizeof(value));
			else
				memcpy(to, &value, sizeof(u32));
		}
		to += size;
	}
	return to;
}

/* A context's number in a linked filter: its id, and what its value is, so that nothing is looked
 * up when the filter runs. */
enum {
	NUMBER_ID = 0xffff,
	NUMBER_TEXT = 1 << 16,
	NUMBER_S32 = 1 << 17,
	NUMBER_U32 = 1 << 18,
};

static int filter_find(const struct weft_filter_contexts *self, uint8_t kind, const char *name,
		       uint32_t name_size, uint8_t *type)
{
	const struct weft_context_info *info;

	if (kind != WEFT_FILTER_SYMBOL_CONTEXT)
		return -ENOENT;
	info = weft_context_by_name(name, name_size);
	if (!info || !find_here(info->id))
		return -ENOENT;
	*type = WEFT_FILTER_INT;
	if (info->type == WEFT_CONTEXT_TEXT) {
		*type = WEFT_FILTER_STRING;
		return info->id | NUMBER_TEXT;
	}
	if (info->size == sizeof(u64))
		return info->id;
	return info->id | (info->type == WEFT_CONTEXT_INT ? NUMBER_S32 : NUMBER_U32);
}

uint64_t weft_filter_context_int(void *arg, uint32_t number)
{
	const u64 bits = weft_context_value(number & NUMBER_ID, (unsigned long)arg);

	if (number & NUMBER_S32)
		return (u64)(s64)(s32)bits;
	return number & NUMBER_U32 ? (u32)bits : bits;
}

int weft_filter_context_fetch(void *arg, uint32_t number, struct weft_filter_value *value)
{
	const u16 id = number & NUMBER_ID;

	if (number & NUMBER_TEXT) {
		value->text = weft_context_text(id, (unsigned long)arg);
		value->size = weft_context_by_id(id)->size;
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
