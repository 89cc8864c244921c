// SPDX-License-Identifier: GPL-2.0-only
/* Perf counters of CPUs: perf.h. */
#include "perf.h"

#include <linux/cpu.h>
#include <linux/err.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#ifdef CONFIG_PERF_EVENTS
struct weft_perf {
	u32 cpus;
	struct perf_event *events[]; /* by CPU; NULL: it was not online */
};

void weft_perf_close(struct weft_perf *perf)
{
	u32 cpu;

	if (!perf)
		return;
	for (cpu = 0; cpu < perf->cpus; cpu++)
		if (perf->events[cpu])
			perf_event_release_kernel(perf->events[cpu]);
	kfree(perf);
}

static int open_all(struct weft_perf *perf, struct perf_event_attr *attr)
{
	struct perf_event *event;
	int cpu;

	for_each_online_cpu(cpu)
	{
		event = perf_event_create_kernel_counter(attr, cpu, NULL, NULL, NULL);
		if (IS_ERR(event))
			return PTR_ERR(event);
		perf->events[cpu] = event;
		/* It is pinned: it runs from now on, or never. */
		if (event->state == PERF_EVENT_STATE_ERROR)
			return -EBUSY;
	}
	return 0;
}

struct weft_perf *weft_perf_open(u32 type, u64 config)
{
	struct perf_event_attr attr = {
		.type = type, .size = sizeof(attr), .config = config, .pinned = 1};
	struct weft_perf *perf = kzalloc(struct_size(perf, events, nr_cpu_ids), GFP_KERNEL);
	int error;

	if (!perf)
		return ERR_PTR(-ENOMEM);
	perf->cpus = nr_cpu_ids;
	cpus_read_lock();
	error = open_all(perf, &attr);
	cpus_read_unlock();
	if (!error)
		return perf;
	weft_perf_close(perf);
	return ERR_PTR(error == -ENOENT || error == -ENODEV ? -EOPNOTSUPP : error);
}

/* Interrupts are off, so that the kernel does not stop the counter meanwhile for another one. An
 * NMI may come; the code of a counter allows for that. */
u64 weft_perf_read(const struct weft_perf *perf)
{
	struct perf_event *event = perf->events[raw_smp_processor_id()];
	unsigned long flags;

	if (!event)
		return 0;
	local_irq_save(flags);
	if (event->state == PERF_EVENT_STATE_ACTIVE && event->oncpu == raw_smp_processor_id())
		event->pmu->read(event);
	local_irq_restore(flags);
	return local64_read(&event->count);
}
#else
struct weft_perf *weft_perf_open(u32 type, u64 config)
{
	return ERR_PTR(-EOPNOTSUPP);
}

void weft_perf_close(struct weft_perf *perf)
{
}

u64 weft_perf_read(const struct weft_perf *perf)
{
	return 0;
}
#endif
