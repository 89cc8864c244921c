// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a ring of weft.ko contradict itself, once, as no program can: kprobes on weft.ko's own
 * functions find the ring among the arguments and change its words. Tests use it to check how
 * weft.ko reacts.
 *
 *     insmod contradict.ko                                       behind weft.ko, of the same build
 *     echo 7 > /sys/module/contradict/parameters/channel         the ring with this channel_id; 0:
 *                                                                any
 *     echo 1 > /sys/module/contradict/parameters/what            armed; reads as 0 when it is done
 *
 * The functions are those of a writer that finds its sub-buffer full (1, 2, 3), of a program that
 * made a segment (4), and of the outermost writer of a record in a new sub-buffer (5).
 */
#include <linux/kprobes.h>
#include <linux/module.h>

#include "kmod/fetch.h"
#include "kmod/ring.h"

/* One value beyond enum weft_kernel_stop: STOP_COUNT as the publishing writer meets it. */
#define COUNT_AT_THE_END 5
#define TOO_MANY	 (1u << 20)

static unsigned int what;
module_param(what, uint, 0600);
static unsigned long channel;
module_param(channel, ulong, 0600);

static bool is_meant(const struct weft_ring *ring)
{
	const struct weft_ring_header *header = (const void *)ring->shared;

	return !channel || header->channel_id == channel;
}

/* weft_ring_reserve_slow(ring, c, ...) */
static int full(struct kprobe *probe, struct pt_regs *regs)
{
	const struct weft_ring *ring = (void *)regs_get_kernel_argument(regs, 0);
	struct weft_ring_cpu *c = (void *)regs_get_kernel_argument(regs, 1);
	const unsigned int armed = READ_ONCE(what);

	if (!armed || armed > WEFT_KERNEL_STOP_NESTING || !is_meant(ring) ||
	    cmpxchg(&what, armed, 0) != armed)
		return 0;
	if (armed == WEFT_KERNEL_STOP_POSITION)
		c->base_position += 2ull << ring->slot_shift;
	else if (armed == WEFT_KERNEL_STOP_COUNT)
		c->base_before += TOO_MANY;
	else
		c->nesting += TOO_MANY;
	return 0;
}

/* weft_ring_publish_slow(ring, c, word) */
static int publish(struct kprobe *probe, struct pt_regs *regs)
{
	const struct weft_ring *ring = (void *)regs_get_kernel_argument(regs, 0);
	struct weft_ring_cpu *c = (void *)regs_get_kernel_argument(regs, 1);

	if (is_meant(ring) && cmpxchg(&what, COUNT_AT_THE_END, 0) == COUNT_AT_THE_END)
		c->base_before += TOO_MANY;
	return 0;
}

static bool has_segment(const struct weft_fetch_step *step)
{
	for (; step->code != WEFT_STEP_END; step++)
		if (step->code == WEFT_FETCH_STRING || step->code == WEFT_FETCH_SEQUENCE)
			return true;
	return false;
}

/* weft_fetch_run(steps, run), at its end */
static int keep_segments(struct kretprobe_instance *call, struct pt_regs *regs)
{
	const struct weft_fetch_run *run = (void *)regs_get_kernel_argument(regs, 1);

	if (READ_ONCE(what) != WEFT_KERNEL_STOP_IMAGE ||
	    !has_segment((void *)regs_get_kernel_argument(regs, 0)))
		return 1; /* not this call */
	*(struct weft_segment **)call->data = run->segments;
	return 0;
}

static int fetched(struct kretprobe_instance *call, struct pt_regs *regs)
{
	if (cmpxchg(&what, WEFT_KERNEL_STOP_IMAGE, 0) == WEFT_KERNEL_STOP_IMAGE)
		(*(struct weft_segment **)call->data)->size = TOO_MANY;
	return 0;
}

static struct kprobe at_full = {.symbol_name = "weft_ring_reserve_slow", .pre_handler = full};
static struct kprobe at_publish = {.symbol_name = "weft_ring_publish_slow", .pre_handler = publish};
static struct kretprobe at_fetch = {
	.kp.symbol_name = "weft_fetch_run",
	.entry_handler = keep_segments,
	.handler = fetched,
	.data_size = sizeof(struct weft_segment *),
};

static int __init contradict_init(void)
{
	int error = register_kprobe(&at_full);

	if (error)
		return error;
	error = register_kprobe(&at_publish);
	if (error)
		goto no_publish;
	error = register_kretprobe(&at_fetch);
	if (!error)
		return 0;
	unregister_kprobe(&at_publish);
no_publish:
	unregister_kprobe(&at_full);
	return error;
}

static void __exit contradict_exit(void)
{
	unregister_kretprobe(&at_fetch);
	unregister_kprobe(&at_publish);
	unregister_kprobe(&at_full);
}

module_init(contradict_init);
module_exit(contradict_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Makes weft.ko contradict itself, for its tests");
