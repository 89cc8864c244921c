// SPDX-License-Identifier: GPL-2.0-only
/* Scratch memory of running probes: guard.h. */
#include <linux/topology.h>
#include <linux/vmalloc.h>

#include "guard.h"

DEFINE_PER_CPU(struct weft_guard, weft_guard);

void weft_guard_exit(void)
{
	int cpu;

	for_each_possible_cpu (cpu)
		vfree(per_cpu(weft_guard, cpu).scratch[0]);
}

int weft_guard_init(void)
{
	int cpu, level;

	for_each_possible_cpu (cpu) {
		struct weft_guard *guard = &per_cpu(weft_guard, cpu);
		struct weft_scratch *all =
			vzalloc_node(WEFT_LEVELS * sizeof(*all), cpu_to_node(cpu));

		if (!all) {
			weft_guard_exit();
			return -ENOMEM;
		}
		for (level = 0; level < WEFT_LEVELS; level++)
			guard->scratch[level] = all + level;
	}
	return 0;
}
