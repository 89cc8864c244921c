/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's own limits, with their reasons. Those of the formats are in lib/abi. */
#ifndef WEFT_KMOD_LIMITS_H
#define WEFT_KMOD_LIMITS_H

/* Descriptions of one ring: 2,500 events of 400 bytes, which is all tracepoints and system calls of
 * a kernel. It is allocated with the ring. */
#define WEFT_DESCRIPTIONS_BYTES (1u << 20)

/* All rings of one channel together: this part of the machine's memory, as 1 / it. A mistake in a
 * Trace must not put the node out of memory. */
#define WEFT_RING_MEMORY_DIVISOR 4

/* A struct of an ioctl is never larger. */
#define WEFT_IOCTL_MAX_BYTES 4096u

/* Levels of context that can interrupt each other on a CPU: task, softirq, irq, NMI. */
#define WEFT_LEVELS 4

#endif /* WEFT_KMOD_LIMITS_H */
