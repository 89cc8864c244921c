// SPDX-License-Identifier: GPL-2.0-only
/* The part of a state dump about the machine itself, for sessions that record all tasks. */
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/irqnr.h>
#include <linux/string.h>
#include <linux/topology.h>
#ifdef CONFIG_X86
#include <asm/processor.h>
#endif

#include "compat.h"
#include "statedump.h"

static int record_cpu(struct weft_statedump *dump, int cpu)
{
#ifdef CONFIG_X86
	const u64 description = (unsigned long)&cpu_data(cpu);
#else
	const u64 description = 0;
#endif
	const u64 args[WEFT_STATE_ARGS] = {cpu,
					   description,
					   topology_physical_package_id(cpu),
					   topology_core_id(cpu),
					   cpu_to_node(cpu),
					   cpu_online(cpu)};

	return weft_statedump_record(dump, WEFT_KERNEL_STATE_CPU, cpu, args);
}

static int cpu_step(struct weft_statedump *dump, void *data)
{
	int *place = data;
	const int cpu = cpumask_next(*place, cpu_possible_mask);
	int error;

	if (cpu >= nr_cpu_ids)
		return 0;
	error = record_cpu(dump, cpu);
	if (error)
		return error;
	*place = cpu;
	return 1;
}

struct interrupt_place {
	unsigned int number;
	u32 action; /* number among those that share it */
};

/* An interrupt's descriptor goes by RCU, its actions under its lock. */
static int record_action(struct weft_statedump *dump, struct irq_data *data,
			 const struct interrupt_place *place)
{
	struct irq_desc *desc = irq_data_to_desc(data);
	struct irqaction *action;
	unsigned long flags;
	u32 skip = place->action;
	int result = 0;

	raw_spin_lock_irqsave(&desc->lock, flags);
	for (action = desc->action; action && skip; skip--)
		action = action->next;
	if (action) {
		const u64 args[WEFT_STATE_ARGS] = {place->number, (unsigned long)data,
						   (unsigned long)action};

		result = weft_statedump_record(dump, WEFT_KERNEL_STATE_INTERRUPT,
					       (u64)place->number << 32 | place->action, args);
		result = result ? result : 1;
	}
	raw_spin_unlock_irqrestore(&desc->lock, flags);
	return result;
}

static int interrupt_step(struct weft_statedump *dump, void *data)
{
	struct interrupt_place *place = data;
	struct irq_data *irq;
	int result;

	if (place->number >= weft_interrupts())
		return 0;
	rcu_read_lock();
	irq = irq_get_irq_data(place->number);
	result = irq ? record_action(dump, irq, place) : 0;
	rcu_read_unlock();
	if (result < 0)
		return result;
	if (result) {
		place->action++;
	} else {
		place->action = 0;
		place->number++;
	}
	return 1;
}

static bool is_block_device(const struct device *device)
{
	return device->class && !strcmp(device->class->name, "block");
}

/* The block class has no name that modules know; all devices are in one set. Devices are visited in
 * order of their numbers, since they may come and go. */
static int block_device_step(struct weft_statedump *dump, void *data)
{
	dev_t *place = data;
	const struct kobject *any = dump->session->device;
	struct device *next = NULL;
	struct kobject *object;
	int result = 0;

	spin_lock(&any->kset->list_lock);
	list_for_each_entry (object, &any->kset->list, entry) {
		struct device *device = kobj_to_dev(object);

		if (object->ktype == any->ktype && is_block_device(device) &&
		    device->devt > *place && (!next || device->devt < next->devt))
			next = device;
	}
	if (next) {
		const u64 args[WEFT_STATE_ARGS] = {(unsigned long)next};

		result = weft_statedump_record(dump, WEFT_KERNEL_STATE_BLOCK_DEVICE, next->devt,
					       args);
		if (!result) {
			*place = next->devt;
			result = 1;
		}
	}
	spin_unlock(&any->kset->list_lock);
	return result;
}

int weft_statedump_machine(struct weft_statedump *dump)
{
	struct interrupt_place interrupt = {};
	dev_t block_device = 0;
	int cpu = -1, error = 0;

	if (weft_statedump_wants(dump, 1u << WEFT_KERNEL_STATE_CPU))
		error = weft_statedump_walk(dump, cpu_step, &cpu);
	if (!error && weft_statedump_wants(dump, 1u << WEFT_KERNEL_STATE_INTERRUPT))
		error = weft_statedump_walk(dump, interrupt_step, &interrupt);
	if (!error && weft_statedump_wants(dump, 1u << WEFT_KERNEL_STATE_BLOCK_DEVICE))
		error = weft_statedump_walk(dump, block_device_step, &block_device);
	return error;
}
