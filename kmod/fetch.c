// SPDX-License-Identifier: GPL-2.0-only
/* Fetch programs, made and run: fetch.h. */
#include "fetch.h"

#include <linux/socket.h>
#include <linux/string.h>

#include "access.h"

static const char other_text[] = "other";
/* In the place of a text that cannot be read: it is no empty one. */
static const char fault_text[] = "(fault)";

/* The state of a program while it runs. */
struct state {
	u64 a;
	u32 n;
	bool fault;
	bool other;
	u8 *scratch;
};

static __always_inline u64 cut(u64 value, unsigned int bits, bool is_signed)
{
	const unsigned int shift = 64 - bits;

	return is_signed ? (u64)((s64)(value << shift) >> shift) : value << shift >> shift;
}

static __always_inline void store(u8 *to, u64 value, unsigned int size)
{
	switch (size) { /* the compiler makes plain stores of these */
	case 8:
		memcpy(to, &value, 8);
		break;
	case 4:
		memcpy(to, &value, 4);
		break;
	case 2:
		memcpy(to, &value, 2);
		break;
	default:
		*to = value;
	}
}

static void set_fault(struct state *s)
{
	s->fault = true;
	s->a = 0;
}

/* May this read user memory now? If not, the current task may be another tenant's than the event's
 * subject. */
static bool may_read_user(const struct weft_fetch_run *run)
{
	return weft_user_is_mapped() && (!run->scope || weft_scope_has(run->scope, current));
}

static __always_inline void do_load(const struct weft_fetch_run *run,
				    const struct weft_fetch_step *step, struct state *s)
{
	const u64 from = s->a + step->offset;
	u64 value = 0;
	bool read;

	if (s->fault)
		return;
	if (step->flags & WEFT_FETCH_USER)
		read = may_read_user(run) && weft_copy_memory(&value, from, step->size, true);
	else
		read = weft_load_kernel(&value, from, step->size);
	if (unlikely(!read))
		return set_fault(s);
	s->a = cut(value, 8 * step->size, step->flags & WEFT_FETCH_SIGNED);
}

static void do_task(const struct weft_fetch_run *run, struct state *s)
{
	int has;

	if (s->fault || !run->scope)
		return;
	has = weft_scope_has_address(run->scope, s->a);
	if (has < 0)
		return set_fault(s);
	s->other = !has;
}

static void do_bytes(const struct weft_fetch_run *run, const struct weft_fetch_step *step,
		     struct state *s)
{
	const bool user = step->flags & WEFT_FETCH_USER;
	u8 *to = run->fixed + step->out;
	u32 length;

	if (unlikely(s->other)) {
		memset(to, 0, step->size);
		if (step->flags & WEFT_STEP_TEXT)
			memcpy(to, other_text, min_t(u32, step->size, sizeof(other_text)));
		return;
	}
	if (!s->fault && (!user || may_read_user(run)) &&
	    weft_copy_memory(to, s->a + step->offset, step->size, user)) {
		if (!(step->flags & WEFT_STEP_TEXT))
			return;
		length = strnlen(to, step->size);
		memset(to + length, 0, step->size - length);
		return;
	}
	memset(to, 0, step->size);
	if (step->flags & WEFT_STEP_TEXT)
		memcpy(to, fault_text, min_t(u32, step->size, sizeof(fault_text) - 1));
	set_fault(s);
}

/* Makes `size` bytes at `data` the field's segment, and `count` its fixed part. */
static void put_segment(const struct weft_fetch_run *run, const struct weft_fetch_step *step,
			const void *data, u32 size, u32 count)
{
	struct weft_segment *segment = &run->segments[step->segment];

	segment->data = data;
	segment->size = size;
	memcpy(run->fixed + step->out, &count, sizeof(count));
}

/* Makes this text the value of the field. */
static void put_text(const struct weft_fetch_run *run, const struct weft_fetch_step *step,
		     const char *text)
{
	const u32 length = min_t(u32, step->limit, strlen(text));

	put_segment(run, step, text, length, length);
}

static void do_string(const struct weft_fetch_run *run, const struct weft_fetch_step *step,
		      struct state *s)
{
	const bool user = step->flags & WEFT_FETCH_USER;
	int length = -EFAULT;

	if (unlikely(s->other))
		return put_text(run, step, other_text);
	if (!s->fault && (!user || may_read_user(run)))
		length = weft_copy_text((char *)s->scratch, s->a + step->offset, step->limit, user);
	if (unlikely(length < 0)) {
		set_fault(s);
		return put_text(run, step, fault_text);
	}
	put_segment(run, step, s->scratch, length, length);
	s->scratch += length;
}

/* Copies the path of a socket address of `count` bytes; negative: a fault. */
static int copy_unix_path(const struct weft_fetch_step *step, u64 from, u32 count, char *to)
{
	u16 family;
	u32 length, i;

	if (count <= (u32)step->offset || count < sizeof(family))
		return 0;
	if (!weft_copy_memory(&family, from, sizeof(family), true))
		return -EFAULT;
	if (family != AF_UNIX)
		return 0;
	length = min(count - (u32)step->offset, step->limit);
	from += step->offset;
	if (!weft_copy_memory(to, from, 1, true))
		return -EFAULT;
	if (*to)
		return weft_copy_text(to, from, length, true);
	if (!weft_copy_memory(to, from, length, true))
		return -EFAULT;
	for (i = 0; i < length; i++)
		if (!to[i])
			to[i] = '@';
	return length;
}

/* Apart from the program's state, which is in registers. */
static noinline int do_unix_path(const struct weft_fetch_run *run,
				 const struct weft_fetch_step *step, u64 from, u32 count, u8 *to)
{
	int length = 0;

	if (count)
		length = may_read_user(run) ? copy_unix_path(step, from, count, (char *)to)
					    : -EFAULT;
	if (length < 0)
		put_text(run, step, fault_text);
	else
		put_segment(run, step, to, length, length);
	return length;
}

static __always_inline void do_socket_path(const struct weft_fetch_run *run,
					   const struct weft_fetch_step *step, struct state *s)
{
	int length;

	if (unlikely(s->other))
		return put_text(run, step, other_text);
	if (s->fault && s->n)
		return put_text(run, step, fault_text);
	length = do_unix_path(run, step, s->a, s->n, s->scratch);
	if (length < 0)
		set_fault(s);
	else
		s->scratch += length;
}

/* Result of reading elements one by one: the bytes that were read, and whether the next ones could
 * not be read. */
struct parts {
	u32 made;
	bool fault;
};

static struct parts copy_each(const struct weft_fetch_step *step, u64 from, u32 count, u8 *to)
{
	const bool user = step->flags & WEFT_FETCH_USER;
	u32 i;

	for (i = 0; i < count; i++, from += step->arg)
		if (!weft_copy_memory(to + i * step->size, from, step->size, user))
			break;
	return (struct parts){.made = i, .fault = i < count};
}

/* Collects the contents of `count` buffers, at most `left` bytes. */
static struct parts gather(const struct weft_fetch_step *step, u64 from, u32 count, u32 left,
			   u8 *to)
{
	const u32 size = step->size; /* of an address and of a length, in bytes */
	u32 made = 0, bytes;

	for (; count && left; count--, from += 2 * size) {
		u64 base = 0, length = 0;

		if (!weft_copy_memory(&base, from, size, true) ||
		    !weft_copy_memory(&length, from + size, size, true))
			return (struct parts){.made = made, .fault = true};
		bytes = min_t(u64, length, left);
		if (bytes && !weft_copy_memory(to + made, base, bytes, true))
			return (struct parts){.made = made, .fault = true};
		made += bytes;
		left -= bytes;
	}
	return (struct parts){.made = made};
}

#define PARTS_FAULT (1u << 31)

/* Makes the field: how many bytes, and PARTS_FAULT. Apart from the program's state, which is in
 * registers. */
static noinline u32 do_parts(const struct weft_fetch_run *run, const struct weft_fetch_step *step,
			     u64 from, u32 count, u8 *to)
{
	struct parts parts = {};
	u32 left = step->limit, size = 1;

	from += step->offset;
	if (count && (step->flags & WEFT_FETCH_USER) && !may_read_user(run)) {
		parts.fault = true;
	} else if (step->flags & WEFT_STEP_GATHER) {
		if (step->arg != WEFT_FETCH_NO_ARG)
			left = clamp_t(s64, run->args[step->arg], 0, left);
		parts = gather(step, from, min(count, WEFT_FETCH_MAX_PARTS), left, to);
	} else {
		size = step->size;
		parts = copy_each(step, from, min(count, left), to);
	}
	put_segment(run, step, to, parts.made * size, parts.made);
	return parts.made * size | (parts.fault ? PARTS_FAULT : 0);
}

static __always_inline void do_sequence_of_parts(const struct weft_fetch_run *run,
						 const struct weft_fetch_step *step,
						 struct state *s)
{
	const u32 count = s->other || s->fault ? 0 : s->n;
	const u32 made = do_parts(run, step, s->a, count, s->scratch);

	if (made & PARTS_FAULT) {
		set_fault(s);
		if (made == PARTS_FAULT && step->flags & WEFT_STEP_TEXT)
			put_text(run, step, fault_text);
	}
	s->scratch += made & ~PARTS_FAULT;
}

static void do_sequence(const struct weft_fetch_run *run, const struct weft_fetch_step *step,
			struct state *s)
{
	const bool user = step->flags & WEFT_FETCH_USER;
	u32 count = s->other || s->fault ? 0 : min(s->n, step->limit);

	if (count &&
	    ((user && !may_read_user(run)) ||
	     !weft_copy_memory(s->scratch, s->a + step->offset, count * step->size, user))) {
		set_fault(s);
		count = 0;
	}
	if (unlikely(s->fault) && !s->other && s->n && step->flags & WEFT_STEP_TEXT)
		return put_text(run, step, fault_text);
	put_segment(run, step, s->scratch, count * step->size, count);
	s->scratch += count * step->size;
}

static __always_inline void do_arg(const struct weft_fetch_run *run,
				   const struct weft_fetch_step *step, struct state *s)
{
	s->fault = false;
	if (!(step->flags & WEFT_FETCH_KEEP_OTHER))
		s->other = false;
	s->a = cut(run->args[step->arg], 8 * step->size, step->flags & WEFT_FETCH_SIGNED);
}

void weft_fetch_run(const struct weft_fetch_step *step, struct weft_fetch_run *run)
{
	struct state s = {.scratch = run->scratch};

	for (;; step++) {
		switch (step->code) {
		case WEFT_STEP_ARG_STORE8:
			memcpy(run->fixed + step->out, &run->args[step->arg], 8);
			break;
		case WEFT_STEP_ARG_STORE4:
			memcpy(run->fixed + step->out, &run->args[step->arg], 4);
			break;
		case WEFT_FETCH_ARG:
			do_arg(run, step, &s);
			break;
		case WEFT_FETCH_LOAD:
			do_load(run, step, &s);
			break;
		case WEFT_FETCH_ADD:
			s.a += s.fault ? 0 : step->offset;
			break;
		case WEFT_FETCH_BITS:
			s.a = cut(s.a >> step->offset, step->size, step->flags & WEFT_FETCH_SIGNED);
			break;
		case WEFT_FETCH_COUNT:
			s.n = (s64)s.a < 0 ? 0 : min_t(u64, s.a, U32_MAX);
			break;
		case WEFT_FETCH_TASK:
			do_task(run, &s);
			break;
		case WEFT_FETCH_WITHIN:
			if (s.n < (u32)step->offset)
				set_fault(&s);
			break;
		case WEFT_FETCH_STORE:
			store(run->fixed + step->out, s.other ? 0 : s.a, step->size);
			break;
		case WEFT_STEP_STORE_USER:
			store(run->fixed + step->out, s.other || s.a >= TASK_SIZE_MAX ? 0 : s.a,
			      step->size);
			break;
		case WEFT_FETCH_BYTES:
			do_bytes(run, step, &s);
			break;
		case WEFT_FETCH_STRING:
			do_string(run, step, &s);
			break;
		case WEFT_FETCH_SEQUENCE:
			if (unlikely(step->flags & WEFT_STEP_PARTS))
				do_sequence_of_parts(run, step, &s);
			else
				do_sequence(run, step, &s);
			break;
		case WEFT_FETCH_UNIX_PATH:
			do_socket_path(run, step, &s);
			break;
		default: /* WEFT_STEP_END */
			return;
		}
	}
}

/* Sets where the field of an output op lies in the record. */
static void place(struct weft_fetch_step *step, const struct weft_fetch_op *op, const void *desc,
		  const struct weft_description_layout *layout, u32 index)
{
	struct weft_description_field field;

	if (weft_description_field_at(desc, layout, index, &field))
		return; /* cannot be: the validator saw as many fields as outputs */
	step->out = field.fixed_offset;
	step->segment = field.segment;
	if (field.flags & WEFT_FIELD_TEXT)
		step->flags |= WEFT_STEP_TEXT;
	if (op->code == WEFT_FETCH_SEQUENCE)
		step->limit /= step->size;
	if (op->code == WEFT_FETCH_SEQUENCE && op->arg)
		step->flags |= WEFT_STEP_PARTS;
	if (op->code == WEFT_FETCH_GATHER) {
		step->code = WEFT_FETCH_SEQUENCE;
		step->flags |= WEFT_STEP_PARTS | WEFT_STEP_GATHER;
	}
}

/* Turns a register into an argument behind the others. */
static void make_argument(struct weft_fetch_step *step)
{
	const u32 number = step->arg == WEFT_FETCH_REG_ZERO ? WEFT_FETCH_REGISTERS : step->arg;

	step->code = WEFT_FETCH_ARG;
	step->arg = WEFT_REGISTER_ARGUMENTS + number;
}

/* Makes one step of ARG and the STORE behind it, where the argument's bits are stored as they are.
 */
static bool fuse(struct weft_fetch_step *arg, const struct weft_fetch_step *next)
{
	if (arg->code != WEFT_FETCH_ARG || next->code != WEFT_FETCH_STORE || next->size > arg->size)
		return false;
	if (arg->flags & WEFT_FETCH_KEEP_OTHER)
		return false;
	if (next->size != 8 && next->size != 4)
		return false;
	arg->code = next->size == 8 ? WEFT_STEP_ARG_STORE8 : WEFT_STEP_ARG_STORE4;
	arg->out = next->out;
	return true;
}

/* Are A, FAULT and OTHER, as the ARG before left them, of no use any more? They are if the next
 * operation sets them. */
static bool leaves_nothing(const struct weft_fetch_op *ops, u32 count, u32 behind)
{
	if (behind >= count || ops[behind].code == WEFT_FETCH_REG)
		return true;
	return ops[behind].code == WEFT_FETCH_ARG && !(ops[behind].flags & WEFT_FETCH_KEEP_OTHER);
}

void weft_fetch_make(struct weft_fetch_step *steps, const struct weft_fetch_op *ops, u32 count,
		     const void *desc, const struct weft_description_layout *layout)
{
	u32 i, fields = 0, made = 0;

	for (i = 0; i < count; i++) {
		const struct weft_fetch_op *op = &ops[i];
		struct weft_fetch_step step = {
			.code = op->code,
			.arg = op->arg,
			.size = op->size,
			.flags = op->flags,
			.offset = op->offset,
			.limit = op->limit,
		};

		if (op->code == WEFT_FETCH_REG)
			make_argument(&step);
		if (op->code >= WEFT_FETCH_STORE)
			place(&step, op, desc, layout, fields++);
		if (op->code == WEFT_FETCH_STORE && (op->flags & WEFT_FETCH_USER))
			step.code = WEFT_STEP_STORE_USER;
		if (made && leaves_nothing(ops, count, i + 1) && fuse(&steps[made - 1], &step))
			continue;
		steps[made++] = step;
	}
	steps[made] = (struct weft_fetch_step){.code = WEFT_STEP_END};
}

bool weft_fetch_is_plain(const struct weft_fetch_step *steps)
{
	while (steps->code == WEFT_STEP_ARG_STORE8 || steps->code == WEFT_STEP_ARG_STORE4)
		steps++;
	return steps->code == WEFT_STEP_END;
}
