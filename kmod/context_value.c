// SPDX-License-Identifier: GPL-2.0-only
/* Paths to the contexts' values, and the values that functions compute: context.h. */
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
/* Paths to a member of the task itself, to one behind one pointer of the task, and so on. */
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
/* Contexts that a function computes; the flag: the value describes the task. */
#define CALLED_CONTEXTS(X)                                                                         \
	X(VUID, true)                                                                              \
	X(VEUID, true)                                                                             \
	X(VSUID, true)                                                                             \
	X(VGID, true)                                                                              \
	X(VEGID, true)                                                                             \
	X(VSGID, true)                                                                             \
	X(PPID, true)                                                                              \
	X(VPPID, true)                                                                             \
	X(PRIO, true)                                                                              \
	X(NICE, true)                                                                              \
	X(CPU_ID, false)                                                                           \
	X(INTERRUPTIBLE, false)                                                                    \
	X(PREEMPTIBLE, false)                                                                      \
	X(NEED_RESCHEDULE, true)                                                                   \
	X(MIGRATABLE, true)
#define CALLED_PLACE(symbol, task) CALLED_##symbol = WEFT_CONTEXT_PLACE(WEFT_CONTEXT_##symbol),
enum called_context { CALLED_CONTEXTS(CALLED_PLACE) };
#define CALLED_PATH(symbol, task)                                                                  \
	[CALLED_##symbol] = {.end = WEFT_CONTEXT_END_CALL, .of_task = (task)},

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
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_HOSTNAME)] = {.end = WEFT_CONTEXT_END_TEXT},
#if WEFT_HAS_CALLSTACKS
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CALLSTACK_KERNEL)] = {.end = WEFT_CONTEXT_END_STACK},
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_CALLSTACK_USER)] = {.end = WEFT_CONTEXT_END_STACK},
#endif
	[WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PERF_CPU)] = {.end = WEFT_CONTEXT_END_PERF},
	CALLED_CONTEXTS(CALLED_PATH)};

/* A task that was waited for while it still runs its last instructions is in no pid namespace:
   returns 0. */
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

/* Returns the id as the task's own user namespace numbers it. */
static noinline u64 user_id(kuid_t id)
{
	return from_kuid_munged(current_cred()->user_ns, id);
}

static noinline u64 group_id(kgid_t id)
{
	return from_kgid_munged(current_cred()->user_ns, id);
}

/* Can the code with the tracepoint be preempted? -1: the probe cannot know. A breakpoint changes
 * the preemption count, and later kernels may turn preemption off for a tracepoint. */
static noinline u64 preemption(bool tracepoint)
{
	if (!tracepoint || !IS_ENABLED(CONFIG_PREEMPT_COUNT) || !WEFT_TRACEPOINTS_PREEMPT_OFF)
		return -1;
	return preempt_count() == PREEMPT_DISABLE_OFFSET && !irqs_disabled();
}

u64 weft_context_call(unsigned int place, unsigned long view)
{
	const bool tracepoint = view & WEFT_VIEW_TRACEPOINT;

	switch ((enum called_context)place) {
	case CALLED_VUID:
		return user_id(current_cred()->uid);
	case CALLED_VEUID:
		return user_id(current_cred()->euid);
	case CALLED_VSUID:
		return user_id(current_cred()->suid);
	case CALLED_VGID:
		return group_id(current_cred()->gid);
	case CALLED_VEGID:
		return group_id(current_cred()->egid);
	case CALLED_VSGID:
		return group_id(current_cred()->sgid);
	case CALLED_PPID:
		return parent(false);
	case CALLED_VPPID:
		return parent(true);
	case CALLED_PRIO:
		return current->prio - MAX_RT_PRIO;
	case CALLED_NICE:
		return task_nice(current);
	case CALLED_CPU_ID:
		return raw_smp_processor_id();
	case CALLED_INTERRUPTIBLE:
		return tracepoint ? !irqs_disabled() : -1;
	case CALLED_PREEMPTIBLE:
		return preemption(tracepoint);
	case CALLED_NEED_RESCHEDULE:
		return test_tsk_need_resched(current);
	case CALLED_MIGRATABLE:
		return weft_is_migratable(current);
	}
	return 0; /* not reached */
}

const char *weft_context_text(unsigned int place, unsigned long view)
{
	const struct nsproxy *spaces = READ_ONCE(current->nsproxy);

	if (view & WEFT_VIEW_OTHER)
		return "other";
	if (place == WEFT_CONTEXT_PLACE(WEFT_CONTEXT_PROCNAME))
		return current->comm;
	/* A task that is ending has no namespaces any more, and so no host name. */
	return spaces ? spaces->uts_ns->name.nodename : "";
}
