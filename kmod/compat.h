/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels, from 5.10 on. The kernel's headers decide, by what they define or
 * contain (WEFT_KERNEL_HAS_*, compat.mk). The version number decides only what no header shows.
 */
#ifndef WEFT_KMOD_COMPAT_H
#define WEFT_KMOD_COMPAT_H

#include <linux/cgroup.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/irqnr.h>
#include <linux/mm.h>
#include <linux/net.h>
#include <linux/ns_common.h>
#include <linux/nsproxy.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/tracepoint.h>
#include <linux/uprobes.h>
#include <linux/version.h>

/* Tracepoints call one probe with prototypes of all kinds. Kernels that check the type of each
 * indirect call (CFI) trap there: on x86-64, once a tracepoint has a second probe, from any tracer.
 * The kernel calls a single probe directly. */
#if defined(CONFIG_TRACEPOINTS) && !defined(CONFIG_CFI_CLANG) && !defined(CONFIG_CFI)
#define WEFT_HAS_TRACEPOINTS 1
#else
#define WEFT_HAS_TRACEPOINTS 0
#endif

#ifdef CONFIG_CGROUPS
/* Kernels before 6.1 have an array of ids instead of pointers. */
#ifndef WEFT_KERNEL_HAS_ANCESTOR_IDS
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

/* Returns the cgroup with a reference, if it is below the root of the caller's cgroup namespace.
   Otherwise it returns NULL or an error. */
static inline struct cgroup *weft_cgroup_get_from_id(u64 id)
{
#ifdef WEFT_KERNEL_HAS_CGROUP_GET_FROM_ID
	return cgroup_get_from_id(id);
#else
	/* Before 5.14, modules can find a cgroup by its id only by a walk through all of them. */
	struct cgroup *root = current->nsproxy->cgroup_ns->root_cset->dfl_cgrp;
	struct cgroup_subsys_state *css;
	struct cgroup *found = NULL;

	rcu_read_lock();
	css_for_each_descendant_pre (css, &root->self) {
		if (cgroup_id(css->cgroup) == id && css_tryget_online(css)) {
			found = css->cgroup;
			break;
		}
	}
	rcu_read_unlock();
	return found;
#endif
}
#endif

/* Offset of a mount namespace's inode number. The struct is private to fs/, and no header shows it.
 * Since 5.11 it begins with the part that all namespaces share. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 11, 0)
#define WEFT_MOUNT_NAMESPACE_INUM offsetof(struct ns_common, inum)
#endif

static inline bool weft_is_migratable(const struct task_struct *task)
{
#if defined(CONFIG_SMP) && defined(WEFT_KERNEL_HAS_MIGRATION_DISABLED)
	return !task->migration_disabled;
#else
	return true;
#endif
}

/* Do tracepoints call their probes with preemption off? All did up to 6.12; then those of system
 * calls began not to, later the others. */
#ifdef DECLARE_TRACE_SYSCALL
#define WEFT_TRACEPOINTS_PREEMPT_OFF 0
#else
#define WEFT_TRACEPOINTS_PREEMPT_OFF 1
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
#ifdef WEFT_KERNEL_HAS_GET_KRETPROBE
	return get_kretprobe(instance);
#else
	return instance->rp;
#endif
}
#endif

#if defined(CONFIG_UPROBES) && (defined(CONFIG_X86_64) || defined(CONFIG_ARM64))
#define WEFT_HAS_UPROBES 1

/* 6.13: handlers get a word of their own for each call. */
#ifdef UPROBE_HANDLER_IGNORE
#define WEFT_UPROBE_DATA , __u64 *data
#else
#define WEFT_UPROBE_DATA
#endif

/* Up to 6.11, the kernel passes a filter the reason why it asks. */
#ifdef WEFT_KERNEL_HAS_UPROBE_FILTER_CTX
#define WEFT_UPROBE_FILTER_PARAMETERS                                                              \
	struct uprobe_consumer *self, enum uprobe_filter_ctx why, struct mm_struct *mm
#else
#define WEFT_UPROBE_FILTER_PARAMETERS struct uprobe_consumer *self, struct mm_struct *mm
#endif

/* 6.12: a registration is an object, and ends in two steps. */
#ifdef WEFT_KERNEL_HAS_UPROBE_UNREGISTER_NOSYNC
typedef struct uprobe *weft_uprobe_handle;

static inline int weft_uprobe_register(weft_uprobe_handle *handle, struct inode *inode,
				       loff_t offset, loff_t semaphore,
				       struct uprobe_consumer *consumer)
{
	*handle = uprobe_register(inode, offset, semaphore, consumer);
	return PTR_ERR_OR_ZERO(*handle);
}

static inline void weft_uprobe_unregister(weft_uprobe_handle handle, struct inode *inode,
					  loff_t offset, struct uprobe_consumer *consumer)
{
	uprobe_unregister_nosync(handle, consumer);
}

static inline void weft_uprobe_unregister_sync(void)
{
	uprobe_unregister_sync();
}
#else
typedef struct {
} weft_uprobe_handle;

static inline int weft_uprobe_register(weft_uprobe_handle *handle, struct inode *inode,
				       loff_t offset, loff_t semaphore,
				       struct uprobe_consumer *consumer)
{
	return uprobe_register_refctr(inode, offset, semaphore, consumer);
}

/* Returns when no handler runs any more. */
static inline void weft_uprobe_unregister(weft_uprobe_handle handle, struct inode *inode,
					  loff_t offset, struct uprobe_consumer *consumer)
{
	uprobe_unregister(inode, offset, consumer);
}

static inline void weft_uprobe_unregister_sync(void)
{
}
#endif
#endif

/* 6.3: flags of a mapping have setters. */
static inline void weft_vma_flags(struct vm_area_struct *vma, unsigned long set,
				  unsigned long clear)
{
#ifdef WEFT_KERNEL_HAS_VM_FLAGS_MOD
	vm_flags_mod(vma, set, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

/* The splice_read operation for a file that has read_iter. 6.5 removed generic_file_splice_read. */
#ifdef WEFT_KERNEL_HAS_COPY_SPLICE_READ
#define weft_splice_read copy_splice_read
#else
#define weft_splice_read generic_file_splice_read
#endif

/* Returns NULL if the file is no socket. */
static inline struct socket *weft_socket_of(struct file *file)
{
#ifdef WEFT_KERNEL_HAS_SOCK_FROM_FILE_ALONE
	return sock_from_file(file);
#else
	int error;

	return sock_from_file(file, &error);
#endif
}

/* Returns the path of a mapped file as the process that mapped it sees it. Since 6.8, the file in a
   mapping may be a stacked file system's backing file. */
static inline const struct path *weft_mapped_path(const struct file *file)
{
#ifdef WEFT_KERNEL_HAS_FILE_USER_PATH
	return file_user_path(file);
#else
	return &file->f_path;
#endif
}

static inline const struct inode *weft_mapped_inode(const struct file *file)
{
#ifdef WEFT_KERNEL_HAS_FILE_USER_PATH
	return file_user_inode(file);
#else
	return file_inode(file);
#endif
}

/* Returns a number above that of every interrupt. Since 6.13 a function returns it. */
static inline unsigned int weft_interrupts(void)
{
#ifdef WEFT_KERNEL_HAS_IRQ_GET_NR_IRQS
	return irq_get_nr_irqs();
#else
	return nr_irqs;
#endif
}

/* Drops a reference to a memory map. The last one to drop it takes the map apart, which may take
 * long: a worker does that where the kernel lets modules ask for it. */
static inline void weft_mmput(struct mm_struct *mm)
{
#ifdef WEFT_KERNEL_HAS_MMPUT_ASYNC
	mmput_async(mm);
#else
	mmput(mm);
#endif
}

#endif /* WEFT_KMOD_COMPAT_H */
