/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's own limits, with their reasons. lib/abi has the limits of the formats. */
#ifndef WEFT_KMOD_LIMITS_H
#define WEFT_KMOD_LIMITS_H

/* Descriptions of one ring: 2,500 events of 400 bytes, which is all tracepoints and system calls of
 * a kernel. It is allocated with the ring. */
#define WEFT_DESCRIPTIONS_BYTES (1u << 20)

/* All rings of one channel together: this part of the machine's memory, as 1 / it. A mistake in a
 * Trace must not put the node out of memory. */
#define WEFT_RING_MEMORY_DIVISOR 4

/* A caller's struct of an ioctl is never larger; the module's own structs are at most of OWN. */
#define WEFT_IOCTL_MAX_BYTES 4096u
#define WEFT_IOCTL_OWN_BYTES 128u

/* Calls of one function that may be running at once for their returns to be seen; each costs about
 * 200 bytes. Threads that sleep in it count as well. */
#define WEFT_KRETPROBE_CALLS 512

/* As WEFT_KRETPROBE_CALLS, but of a user function, for each uretprobe that records arguments or
 * durations; each costs about 100 bytes. */
#define WEFT_URETPROBE_CALLS 512

/* No function is longer. */
#define WEFT_KPROBE_MAX_OFFSET (1u << 24)

/* A statedump that finds no room waits so long for a reader to take anything; then its records are
 * discarded as any. Readers look every 10 ms or so. */
#define WEFT_STATEDUMP_PATIENCE_MS 1000

/* How often, a tick apart, it asks for one task's memory map while others change it, before it
 * leaves the rest out: a tenant's thread that stands still in there must not hold it up. */
#define WEFT_STATEDUMP_MAP_TRIES 250

/* Writers that interrupt each other on a CPU: each of the four levels, with kprobes in each, is far
 * below; where it is more, something counted wrong. */
#define WEFT_MAX_NESTING 64

/* How often a writer tries to show a count that others, or the reader itself, change meanwhile.
 * Each failure is another writer that interrupted in between two instructions. */
#define WEFT_SHOW_TRIES 64

/* Levels of context that can interrupt each other on a CPU: task, softirq, irq, NMI. */
#define WEFT_LEVELS 4

#endif /* WEFT_KMOD_LIMITS_H */
