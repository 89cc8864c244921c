/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, 5.10 and later. Found by what headers define wherever that tells;
 * version numbers are the last resort, since stable and vendors' kernels move code between them.
 */
#ifndef WEFT_KMOD_COMPAT_H
#define WEFT_KMOD_COMPAT_H

#include <linux/cgroup.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/ns_common.h>
#include <linux/nsproxy.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/version.h>

/* Tracepoints call one probe with prototypes of all kinds, which kernels with control-flow
 * integrity of calls refuse with a trap. */
#if defined(CONFIG_TRACEPOINTS) && !defined(CONFIG_CFI_CLANG) && !defined(CONFIG_CFI)
#define WEFT_HAS_TRACEPOINTS 1
#else
#define WEFT_HAS_TRACEPOINTS 0
#endif

#ifdef CONFIG_CGROUPS
/* 6.1 replaced ids by pointers. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
#define WEFT_CGROUP_ANCESTOR_POINTERS 1
#endif

/* `level` is at most the cgroup's own. */
static __always_inline u64 weft_cgroup_ancestor_id(const struct cgroup *cgroup, int level)
{
#ifdef WEFT_CGROUP_ANCESTOR_POINTERS
	return cgroup_id(cgroup->ancestors[level]);
#else
	return cgroup->ancestor_ids[level];
#endif
}
#endif

/* The inode number of a mount namespace, whose struct is private to fs/; since 5.11 it begins with
 * what all namespaces have in common. */
static inline u64 weft_mount_namespace(const struct nsproxy *proxy)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
	return ((const struct ns_common *)proxy->mnt_ns)->inum;
#else
	return 0;
#endif
}

static inline bool weft_is_migratable(const struct task_struct *task)
{
#if defined(CONFIG_SMP) && LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
	return !task->migration_disabled;
#else
	return true;
#endif
}

/* Do tracepoints call their probes with preemption off? All did up to 6.12; then those of system
 * calls began not to, later the others. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0) && !defined(DECLARE_TRACE_SYSCALL)
#define WEFT_TRACEPOINTS_PREEMPT_OFF 1
#else
#define WEFT_TRACEPOINTS_PREEMPT_OFF 0
#endif

static __always_inline void weft_tracepoint_enter(void)
{
	if (!WEFT_TRACEPOINTS_PREEMPT_OFF)
		preempt_disable_notrace();
}

static __always_inline void weft_tracepoint_leave(void)
{
	if (!WEFT_TRACEPOINTS_PREEMPT_OFF)
		preempt_enable_notrace();
}

#ifdef CONFIG_KRETPROBES
/* 5.11: an instance no longer points to its kretprobe by itself. */
static __always_inline struct kretprobe *weft_kretprobe_of(struct kretprobe_instance *instance)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
	return get_kretprobe(instance);
#else
	return instance->rp;
#endif
}
#endif

/* 6.3: flags of a mapping have setters. */
static inline void weft_vma_flags(struct vm_area_struct *vma, unsigned long set,
				  unsigned long clear)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

#endif /* WEFT_KMOD_COMPAT_H */
