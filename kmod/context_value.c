// SPDX-License-Identifier: GPL-2.0-only
/* Where contexts' values are, and what those are worth that must be computed: context.h. */
#include "context.h"

#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/ipc_namespace.h>
#include <linux/kernfs.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/time_namespace.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/utsname.h>
#include <net/net_namespace.h>

#include "compat.h"

#define OFFSETS(...) {__VA_ARGS__}
/* A path to a member of the task itself; behind one pointer of it; and so on. */
#define TASK(id, kind, member)                                                                     \
	[WEFT_CONTEXT_PLACE(id)] = {.end = WEFT_CONTEXT_END_##kind,                                \
				    .of_task = true,                                               \
				    .offsets = OFFSETS(offsetof(struct task_struct, member))}
#define CRED(id, member)                                                                           \
	[WEFT_CONTEXT_PLACE(id)] = {.end = WEFT_CONTEXT_END_U32,                                   \
				    .steps = 1,                                                    \
				    .of_task = true,                                               \
				    .offsets = OFFSETS(offsetof(struct task_struct, cred),         \
						       offsetof(struct cred, member))}
#define SPACE(id, member, inum)                                                                    \
	[WEFT_CONTEXT_PLACE(id)] = {.end = WEFT_CONTEXT_END_U32,                                   \
				    .steps = 2,                                                    \
				    .of_task = true,                                               \
				    .offsets = OFFSETS(offsetof(struct task_struct, nsproxy),      \
						       offsetof(struct nsproxy, member), inum)}
#define CALL(id, task) [WEFT_CONTEXT_PLACE(id)] = {.end = WEFT_CONTEXT_END_CALL, .of_task = (task)}

/* User ids of the node are the kernel's own numbers. A namespace that this kernel has not has no
   path. */
const struct weft_context_path weft_context_paths[WEFT_CONTEXT_PLACES] = {
	[WEFT_CONTEXT_VPID] = {.end = WEFT_CONTEXT_END_PID,
			       .steps = 2,
			       .of_task = true,
			       .offsets = {offsetof(struct task_struct, signal),
					   offsetof(struct signal_struct, pids[PIDTYPE_TGID])}},
	[WEFT_CONTEXT_VTID] = {.end = WEFT_CONTEXT_END_PID,
			       .steps = 1,
			       .of_task = true,
			       .offsets = {offsetof(struct task_struct, thread_pid)}},
	[WEFT_CONTEXT_PID_NS] = {.end = WEFT_CONTEXT_END_PID_SPACE,
				 .steps = 1,
				 .of_task = true,
				 .offsets = {offsetof(struct task_struct, thread_pid)}},
	[WEFT_CONTEXT_USER_NS] = {.end = WEFT_CONTEXT_END_U32,
				  .steps = 2,
				  .of_task = true,
				  .offsets = {offsetof(struct task_struct, cred),
					      offsetof(struct cred, user_ns),
					      offsetof(struct user_namespace, ns.inum)}},
#ifdef CONFIG_CGROUPS
	SPACE(WEFT_CONTEXT_CGROUP_NS, cgroup_ns, offsetof(struct cgroup_namespace, ns.inum)),
	[WEFT_CONTEXT_PLACE(
		WEFT_CONTEXT_CGROUP_ID)] = {.end = WEFT_CONTEXT_END_U64,
					    .steps = 3,
					    .of_task = true,
					    .offsets = {offsetof(struct task_struct, cgroups),
							offsetof(struct css_set, dfl_cgrp),
							offsetof(struct cgroup, kn),
							offsetof(struct kernfs_node, id)}},
#endif
#if defined(CONFIG_SYSVIPC) || defined(CONFIG_POSIX_MQUEUE)
	SPACE(WEFT_CONTEXT_IPC_NS, ipc_ns, offsetof(struct ipc_namespace, ns.inum)),
#endif
#ifdef WEFT_MOUNT_NAMESPACE_INUM
	SPACE(WEFT_CONTEXT_MNT_NS, mnt_ns, WEFT_MOUNT_NAMESPACE_INUM),
#endif
	SPACE(WEFT_CONTEXT_NET_NS, net_ns, offsetof(struct net, ns.inum)),
	SPACE(WEFT_CONTEXT_UTS_NS, uts_ns, offsetof(struct uts_namespace, ns.inum)),
	SPACE(WEFT_CONTEXT_TIME_NS, time_ns, offsetof(struct time_namespace, ns.inum)),
	TASK(WEFT_CONTEXT_PROCNAME, TEXT, comm),
	TASK(WEFT_CONTEXT_PID, S32, tgid),
	TASK(WEFT_CONTEXT_TID, S32, pid),
	CRED(WEFT_CONTEXT_UID, uid),
	CRED(WEFT_CONTEXT_EUID, euid),
	CRED(WEFT_CONTEXT_SUID, suid),
	CRED(WEFT_CONTEXT_GID, gid),
	CRED(WEFT_CONTEXT_EGID, egid),
	CRED(WEFT_CONTEXT_SGID, sgid),
	CALL(WEFT_CONTEXT_VUID, true),
	CALL(WEFT_CONTEXT_VEUID, true),
	CALL(WEFT_CONTEXT_VSUID, true),
	CALL(WEFT_CONTEXT_VGID, true),
	CALL(WEFT_CONTEXT_VEGID, true),
	CALL(WEFT_CONTEXT_VSGID, true),
	CALL(WEFT_CONTEXT_PPID, true),
	CALL(WEFT_CONTEXT_VPPID, true),
	CALL(WEFT_CONTEXT_PRIO, true),
	CALL(WEFT_CONTEXT_NICE, true),
	CALL(WEFT_CONTEXT_CPU_ID, false),
	CALL(WEFT_CONTEXT_INTERRUPTIBLE, false),
	CALL(WEFT_CONTEXT_PREEMPTIBLE, false),
	CALL(WEFT_CONTEXT_NEED_RESCHEDULE, true),
	CALL(WEFT_CONTEXT_MIGRATABLE, true),
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_HOSTNAME)] = {.end = WEFT_CONTEXT_END_TEXT},
#if WEFT_HAS_CALLSTACKS
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CALLSTACK_KERNEL)] = {.end = WEFT_CONTEXT_END_STACK},
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CALLSTACK_USER)] = {.end = WEFT_CONTEXT_END_STACK},
#endif
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PERF_CPU)] = {.end = WEFT_CONTEXT_END_PERF},
};

/* A task that was waited for while it still runs its last instructions is in no namespace of pids:
   0. */
static noinline u64 parent(bool in_namespace)
{
	struct pid_namespace *space = task_active_pid_ns(current);
	struct task_struct *task;
	u64 pid = 0;

	rcu_read_lock();
	task = rcu_dereference(current->real_parent);
	if (!in_namespace)
		pid = task_tgid_nr(task);
	else if (space)
		pid = task_tgid_nr_ns(task, space);
	rcu_read_unlock();
	return pid;
}

/* As the task's own user namespace has them. */
static noinline u64 id_value(unsigned int place)
{
	const struct cred *cred = current_cred();
	struct user_namespace *inside = cred->user_ns;

	switch (place) {
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VUID):
		return from_kuid_munged(inside, cred->uid);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VEUID):
		return from_kuid_munged(inside, cred->euid);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VSUID):
		return from_kuid_munged(inside, cred->suid);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VGID):
		return from_kgid_munged(inside, cred->gid);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VEGID):
		return from_kgid_munged(inside, cred->egid);
	default: /* VSGID */
		return from_kgid_munged(inside, cred->sgid);
	}
}

/* What the code with the tracepoint may be subject to: -1 where a probe cannot know. Breakpoints
 * leave no trace of what was, and tracepoints of later kernels may have turned preemption off or
 * not. */
static noinline u64 running_value(unsigned int place, bool tracepoint)
{
	switch (place) {
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_INTERRUPTIBLE):
		return tracepoint ? !irqs_disabled() : -1;
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PREEMPTIBLE):
		if (!tracepoint || !IS_ENABLED(CONFIG_PREEMPT_COUNT) ||
		    !WEFT_TRACEPOINTS_PREEMPT_OFF)
			return -1;
		return preempt_count() == PREEMPT_DISABLE_OFFSET && !irqs_disabled();
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_NEED_RESCHEDULE):
		return test_tsk_need_resched(current);
	default: /* WEFT_CONTEXT_MIGRATABLE */
		return weft_is_migratable(current);
	}
}

u64 weft_context_call(unsigned int place, unsigned long view)
{
	switch (place) {
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VUID)... WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VSGID):
		return id_value(place);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PPID):
		return parent(false);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_VPPID):
		return parent(true);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PRIO):
		return current->prio - MAX_RT_PRIO;
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_NICE):
		return task_nice(current);
	case WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CPU_ID):
		return raw_smp_processor_id();
	default: /* INTERRUPTIBLE and behind */
		return running_value(place, view & WEFT_VIEW_TRACEPOINT);
	}
}

const char *weft_context_text(unsigned int place, unsigned long view)
{
	const struct nsproxy *spaces = READ_ONCE(current->nsproxy);

	if (view & WEFT_VIEW_OTHER)
		return "other";
	if (place == WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PROCNAME))
		return current->comm;
	/* The name of a host, of which a task that ends has none any more. */
	return spaces ? spaces->uts_ns->name.nodename : "";
}
