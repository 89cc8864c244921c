// SPDX-License-Identifier: GPL-2.0-only
/* What contexts are worth, of the current task: context.h. */
#include "context.h"

#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/ipc_namespace.h>
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

static noinline u64 parent(bool in_namespace)
{
	struct task_struct *task;
	u64 pid;

	rcu_read_lock();
	task = rcu_dereference(current->real_parent);
	pid = in_namespace ? task_tgid_nr_ns(task, task_active_pid_ns(current))
			   : task_tgid_nr(task);
	rcu_read_unlock();
	return pid;
}

/* A pid's number in its own, innermost namespace, which is that of whoever has it. NULL: it was
 * taken from a task that is about to end. */
static __always_inline u64 number_inside(const struct pid *pid)
{
	return pid ? pid->numbers[pid->level].nr : 0;
}

static u64 task_value(u16 id)
{
	switch (id) {
	case WEFT_CONTEXT_VPID:
		return number_inside(READ_ONCE(current->signal->pids[PIDTYPE_TGID]));
	case WEFT_CONTEXT_VTID:
		return number_inside(READ_ONCE(current->thread_pid));
	case WEFT_CONTEXT_PID:
		return task_tgid_nr(current);
	case WEFT_CONTEXT_TID:
		return task_pid_nr(current);
	case WEFT_CONTEXT_PPID:
		return parent(false);
	case WEFT_CONTEXT_VPPID:
		return parent(true);
	case WEFT_CONTEXT_PRIO:
		return current->prio - MAX_RT_PRIO;
	case WEFT_CONTEXT_NICE:
		return task_nice(current);
	case WEFT_CONTEXT_CPU_ID:
		return raw_smp_processor_id();
	default: /* WEFT_CONTEXT_CGROUP_ID */
#ifdef CONFIG_CGROUPS
		return cgroup_id(task_css_set_check(current, true)->dfl_cgrp);
#else
		return 0;
#endif
	}
}

static noinline u64 id_value(u16 id)
{
	const struct cred *cred = current_cred();
	struct user_namespace *inside = cred->user_ns, *node = &init_user_ns;

	switch (id) {
	case WEFT_CONTEXT_VUID:
		return from_kuid_munged(inside, cred->uid);
	case WEFT_CONTEXT_VEUID:
		return from_kuid_munged(inside, cred->euid);
	case WEFT_CONTEXT_VSUID:
		return from_kuid_munged(inside, cred->suid);
	case WEFT_CONTEXT_VGID:
		return from_kgid_munged(inside, cred->gid);
	case WEFT_CONTEXT_VEGID:
		return from_kgid_munged(inside, cred->egid);
	case WEFT_CONTEXT_VSGID:
		return from_kgid_munged(inside, cred->sgid);
	case WEFT_CONTEXT_UID:
		return from_kuid_munged(node, cred->uid);
	case WEFT_CONTEXT_EUID:
		return from_kuid_munged(node, cred->euid);
	case WEFT_CONTEXT_SUID:
		return from_kuid_munged(node, cred->suid);
	case WEFT_CONTEXT_GID:
		return from_kgid_munged(node, cred->gid);
	case WEFT_CONTEXT_EGID:
		return from_kgid_munged(node, cred->egid);
	default: /* WEFT_CONTEXT_SGID */
		return from_kgid_munged(node, cred->sgid);
	}
}

/* Inode numbers of namespaces; 0 in a task that has left them. */
static u64 namespace_value(u16 id)
{
	const struct nsproxy *proxy = current->nsproxy;
	const struct pid_namespace *pids;

	switch (id) {
	case WEFT_CONTEXT_USER_NS:
		return current_user_ns()->ns.inum;
	case WEFT_CONTEXT_PID_NS:
		pids = task_active_pid_ns(current);
		return pids ? pids->ns.inum : 0;
	default:
		break;
	}
	if (!proxy)
		return 0;
	switch (id) {
#ifdef CONFIG_CGROUPS
	case WEFT_CONTEXT_CGROUP_NS:
		return proxy->cgroup_ns->ns.inum;
#endif
#if defined(CONFIG_SYSVIPC) || defined(CONFIG_POSIX_MQUEUE)
	case WEFT_CONTEXT_IPC_NS:
		return proxy->ipc_ns->ns.inum;
#endif
	case WEFT_CONTEXT_MNT_NS:
		return weft_mount_namespace(proxy);
	case WEFT_CONTEXT_NET_NS:
		return proxy->net_ns->ns.inum;
	case WEFT_CONTEXT_UTS_NS:
		return proxy->uts_ns->ns.inum;
	case WEFT_CONTEXT_TIME_NS:
		return proxy->time_ns->ns.inum;
	default:
		return 0;
	}
}

/* What the code with the tracepoint may be subject to: -1 where a probe cannot know. Breakpoints
 * leave no trace of what was, and tracepoints of later kernels may have turned preemption off or
 * not. */
static noinline u64 running_value(u16 id, bool tracepoint)
{
	switch (id) {
	case WEFT_CONTEXT_INTERRUPTIBLE:
		return tracepoint ? !irqs_disabled() : -1;
	case WEFT_CONTEXT_PREEMPTIBLE:
		if (!tracepoint || !IS_ENABLED(CONFIG_PREEMPT_COUNT) ||
		    !WEFT_TRACEPOINTS_PREEMPT_OFF)
			return -1;
		return preempt_count() == PREEMPT_DISABLE_OFFSET && !irqs_disabled();
	case WEFT_CONTEXT_NEED_RESCHEDULE:
		return test_tsk_need_resched(current);
	default: /* WEFT_CONTEXT_MIGRATABLE */
		return weft_is_migratable(current);
	}
}

/* Does it say something of the task, and not only of the machine? */
static bool is_of_task(u16 id)
{
	return id != WEFT_CONTEXT_CPU_ID && id != WEFT_CONTEXT_HOSTNAME &&
	       id < WEFT_CONTEXT_INTERRUPTIBLE;
}

u64 weft_context_value(u16 id, unsigned long view)
{
	if (unlikely(view & WEFT_VIEW_OTHER) && is_of_task(id))
		return 0;
	switch (id) {
	case WEFT_CONTEXT_VUID ... WEFT_CONTEXT_VSGID:
	case WEFT_CONTEXT_UID ... WEFT_CONTEXT_SGID:
		return id_value(id);
	case WEFT_CONTEXT_CGROUP_NS ... WEFT_CONTEXT_TIME_NS:
		return namespace_value(id);
	case WEFT_CONTEXT_INTERRUPTIBLE ... WEFT_CONTEXT_MIGRATABLE:
		return running_value(id, view & WEFT_VIEW_TRACEPOINT);
	default:
		return task_value(id);
	}
}

const char *weft_context_text(u16 id, unsigned long view)
{
	if (id == WEFT_CONTEXT_HOSTNAME)
		return utsname()->nodename;
	return view & WEFT_VIEW_OTHER ? "other" : current->comm;
}
