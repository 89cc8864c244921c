/* SPDX-License-Identifier: GPL-2.0-only */
/* The module's own limits, with their reasons. lib/abi has the limits of the formats. */
#ifndef WEFT_KMOD_LIMITS_H
#define WEFT_KMOD_LIMITS_H

/* Descriptions of one ring: 2,500 events of 400 bytes, which is all tracepoints and system calls of
 * a kernel. It is allocated with the ring. */
#define WEFT_DESCRIPTIONS_BYTES (1u << 20)

/* The rings of all channels together may take this part of the machine's memory (1 / N). Neither a
 * mistake in a Trace nor many Traces must put the node out of memory. */
#define WEFT_RING_MEMORY_DIVISOR 4

/* A caller's struct of an ioctl is never larger; the module's own structs are at most of OWN. */
#define WEFT_IOCTL_MAX_BYTES 4096u
#define WEFT_IOCTL_OWN_BYTES 128u

/* Running calls of one function whose returns can be recorded; each costs about 200 bytes. Calls of
 * threads that sleep in the function count, too. */
#define WEFT_KRETPROBE_CALLS 512

/* Calls of a user function that are kept until their return, for each uretprobe that records
 * arguments or durations (compare WEFT_KRETPROBE_CALLS). Each costs about 100 bytes. */
#define WEFT_URETPROBE_CALLS 512

/* Largest offset in a function: no function is longer. */
#define WEFT_KPROBE_MAX_OFFSET (1u << 24)

/* How long a state dump that finds no room waits until a reader takes records. After that time,
 * records without room are discarded like any others. Readers look about every 10 ms. */
#define WEFT_STATEDUMP_PATIENCE_MS 1000

/* Number of attempts, a tick apart, to lock one task's memory map while other threads change it.
 * Then the state dump leaves out the rest: a tenant's thread that holds the lock must not stop the
 * dump. */
#define WEFT_STATEDUMP_MAP_TRIES 250

/* At most so many writers interrupt each other on a CPU. Four levels with kprobes in each make far
 * fewer; a larger number is a contradiction. */
#define WEFT_MAX_NESTING 64

/* Number of attempts of a writer to publish a count that others change meanwhile. Each failure is a
 * writer that interrupted it between two instructions, or a change by the reader. */
#define WEFT_SHOW_TRIES 64

/* Levels of context that can interrupt each other on a CPU: task, softirq, irq, NMI. */
#define WEFT_LEVELS 4

#endif /* WEFT_KMOD_LIMITS_H */
