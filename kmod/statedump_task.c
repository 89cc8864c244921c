// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of a statedump that belongs to tasks: processes, threads, open files, sockets, mappings,
 * and the interfaces of their network namespaces. statedump.h has the rules.
 *
 * Tasks are gone through by their numbers in the first pid namespace, as /proc does it: a task that
 * is there all the time is met once, and there is an end however many come meanwhile. Sockets are
 * those that tasks in scope have open, not those of a network namespace: it may be shared with
 * others.
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/limits.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/pid_namespace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <net/net_namespace.h>

#include "compat.h"
#include "limits.h"
#include "statedump.h"

#define BIT_OF(state) (1u << WEFT_KERNEL_STATE_##state)

/* --- tasks --- */

static enum weft_kernel_task_status status_of(struct task_struct *task)
{
	switch (task_state_to_char(task)) {
	case 'R':
		return WEFT_KERNEL_TASK_RUNNABLE;
	case 'Z':
		return WEFT_KERNEL_TASK_ZOMBIE;
	case 'X':
		return WEFT_KERNEL_TASK_DEAD;
	case 'S':
	case 'D':
	case 'T':
	case 't':
	case 'P':
	case 'I':
		return WEFT_KERNEL_TASK_WAITING;
	default:
		return WEFT_KERNEL_TASK_OTHER;
	}
}

struct task_place {
	struct task_struct *task;
	enum weft_kernel_state state;
};

/* `parent` is NULL where the dump does not have it. The caller is in an RCU read-side critical
 * section. */
static int record_place(struct weft_statedump *dump, const struct task_place *place,
			struct task_struct *parent, struct pid_namespace *inside)
{
	const u64 args[WEFT_STATE_ARGS] = {
		(unsigned long)place->task,
		(unsigned long)parent,
		task_pid_nr_ns(place->task, inside),
		task_tgid_nr_ns(place->task, inside),
		parent ? task_tgid_nr_ns(parent, inside) : 0,
		status_of(place->task),
	};

	return weft_statedump_record(dump, place->state, 0, args);
}

/* The one thing behind this place is the task itself. */
static int task_step(struct weft_statedump *dump, void *data)
{
	const struct task_place *place = data;
	struct task_struct *task = place->task, *parent;
	struct pid_namespace *inside;
	int result = 0;

	rcu_read_lock();
	inside = task_active_pid_ns(task); /* NULL: it is as good as gone */
	if (inside && pid_alive(task) && weft_statedump_has(dump, task)) {
		parent = rcu_dereference(task->real_parent);
		if (!weft_statedump_has(dump, parent))
			parent = NULL;
		result = record_place(dump, place, parent, inside);
	}
	rcu_read_unlock();
	return result;
}

static int record_task(struct weft_statedump *dump, struct task_struct *task,
		       enum weft_kernel_state state)
{
	struct task_place place = {.task = task, .state = state};

	return weft_statedump_wants(dump, 1u << state)
		       ? weft_statedump_walk(dump, task_step, &place)
		       : 0;
}

/* --- what tasks have --- */

struct task_things {
	struct task_struct *task;
	u64 vpid;
	unsigned int fd;
	bool socket; /* the file of `fd` is recorded, the socket that it is perhaps not yet */
	unsigned long address;
	u32 tries; /* for its memory map */
	struct net *net;
	int interface;
};

/* Threads share these, but not all always do: `task` records what no thread before it has. */
static bool is_first_with(struct task_struct *task, size_t member)
{
	const void *mine = READ_ONCE(*(void **)((char *)task + member)), *its;
	struct task_struct *thread;
	bool first = false;

	rcu_read_lock();
	for_each_thread(task, thread)
	{
		its = READ_ONCE(*(void **)((char *)thread + member));
		if (!mine || its != mine)
			continue;
		first = thread == task;
		break;
	}
	rcu_read_unlock();
	return first;
}

static u64 text_of(struct weft_statedump *dump, const struct path *path)
{
	char *text = path ? d_path(path, dump->text, PATH_MAX) : NULL;

	if (!IS_ERR_OR_NULL(text))
		return (unsigned long)text;
	dump->text[0] = 0;
	return (unsigned long)dump->text;
}

struct file_visit {
	struct weft_statedump *dump;
	struct task_things *place;
	int result; /* of the step */
};

static int record_file(struct weft_statedump *dump, struct task_things *place, struct file *file)
{
	const u64 args[WEFT_STATE_ARGS] = {(unsigned long)place->task, (unsigned long)file,
					   place->fd, text_of(dump, &file->f_path), place->vpid};

	return weft_statedump_record(dump, WEFT_KERNEL_STATE_FILE, place->fd, args);
}

static int record_socket(struct weft_statedump *dump, struct task_things *place, struct file *file)
{
	struct socket *socket = weft_socket_of(file);
	struct sock *sock = socket ? READ_ONCE(socket->sk) : NULL;
	const u64 args[WEFT_STATE_ARGS] = {
		(unsigned long)place->task, (unsigned long)file, place->fd,
		(unsigned long)socket,	    (unsigned long)sock, place->vpid};

	return sock ? weft_statedump_record(dump, WEFT_KERNEL_STATE_SOCKET, place->fd, args) : 0;
}

/* Records the first file from place->fd on, under the lock of its table. It takes no reference,
 * which would delay the end of a file that is closed meanwhile. */
static int visit_file(const void *data, struct file *file, unsigned int fd)
{
	struct file_visit *visit = (void *)data;
	struct task_things *place = visit->place;
	struct weft_statedump *dump = visit->dump;
	int error = 0;

	if (fd != place->fd)
		place->socket = false;
	place->fd = fd;
	if (!place->socket && weft_statedump_wants(dump, BIT_OF(FILE)))
		error = record_file(dump, place, file);
	if (!error) {
		place->socket = true;
		if (weft_statedump_wants(dump, BIT_OF(SOCKET)))
			error = record_socket(dump, place, file);
	}
	if (!error) {
		place->socket = false;
		place->fd++;
	}
	visit->result = error ? error : 1;
	return 1; /* no further */
}

static int file_step(struct weft_statedump *dump, void *data)
{
	struct file_visit visit = {.dump = dump, .place = data};
	struct task_struct *task = visit.place->task;
	bool in_scope;

	rcu_read_lock();
	in_scope = weft_statedump_has(dump, task);
	rcu_read_unlock();
	if (!in_scope)
		return 0;
	task_lock(task);
	if (task->files)
		iterate_fd(task->files, visit.place->fd, visit_file, &visit);
	task_unlock(task);
	return visit.result;
}

static int mapping_step(struct weft_statedump *dump, void *data)
{
	struct task_things *place = data;
	struct mm_struct *mm = get_task_mm(place->task);
	struct vm_area_struct *vma;
	int result = 0;

	if (!mm)
		return 0;
	if (!mmap_read_trylock(mm)) {
		weft_mmput(mm);
		if (place->tries++ < WEFT_STATEDUMP_MAP_TRIES)
			return -EAGAIN;
		dump->lost++;
		return 0;
	}
	vma = find_vma(mm, place->address);
	if (vma) {
		const struct file *file = vma->vm_file;
		const u64 args[WEFT_STATE_ARGS] = {
			(unsigned long)place->task,
			(unsigned long)vma,
			text_of(dump, file ? weft_mapped_path(file) : NULL),
			place->vpid,
			file ? (unsigned long)weft_mapped_inode(file) : 0,
		};

		result =
			weft_statedump_record(dump, WEFT_KERNEL_STATE_MAPPING, vma->vm_start, args);
		if (!result) {
			place->address = vma->vm_end;
			result = 1;
		}
	}
	mmap_read_unlock(mm);
	weft_mmput(mm);
	return result;
}

/* Interfaces are visited in order of their numbers in the namespace, since they may come and go. */
static int interface_step(struct weft_statedump *dump, void *data)
{
	struct task_things *place = data;
	struct net_device *next = NULL, *device;
	int result = 0;

	rcu_read_lock();
	for_each_netdev_rcu(place->net, device) if (device->ifindex > place->interface &&
						    (!next || device->ifindex < next->ifindex))
		next = device;
	if (next) {
		const u64 args[WEFT_STATE_ARGS] = {(unsigned long)place->net, (unsigned long)next};

		result = weft_statedump_record(dump, WEFT_KERNEL_STATE_INTERFACE, next->ifindex,
					       args);
		if (!result) {
			place->interface = next->ifindex;
			result = 1;
		}
	}
	rcu_read_unlock();
	return result;
}

static int record_interfaces(struct weft_statedump *dump, struct task_things *place)
{
	struct task_struct *task = place->task;
	int error = 0;

	task_lock(task);
	place->net = task->nsproxy ? get_net(task->nsproxy->net_ns) : NULL;
	task_unlock(task);
	if (!place->net)
		return 0;
	if (!xa_load(&dump->nets, place->net->ns.inum)) {
		error = xa_err(
			xa_store(&dump->nets, place->net->ns.inum, xa_mk_value(1), GFP_KERNEL));
		if (!error)
			error = weft_statedump_walk(dump, interface_step, place);
	}
	put_net(place->net);
	return error;
}

static int record_things(struct weft_statedump *dump, struct task_struct *task)
{
	struct task_things place = {.task = task};
	struct pid_namespace *inside;
	int error = 0;

	rcu_read_lock();
	inside = task_active_pid_ns(task);
	place.vpid = inside ? task_tgid_nr_ns(task, inside) : 0;
	rcu_read_unlock();
	if (weft_statedump_wants(dump, BIT_OF(INTERFACE)))
		error = record_interfaces(dump, &place);
	if (!error && weft_statedump_wants(dump, BIT_OF(FILE) | BIT_OF(SOCKET)) &&
	    is_first_with(task, offsetof(struct task_struct, files)))
		error = weft_statedump_walk(dump, file_step, &place);
	if (!error && weft_statedump_wants(dump, BIT_OF(MAPPING)) &&
	    is_first_with(task, offsetof(struct task_struct, mm)))
		error = weft_statedump_walk(dump, mapping_step, &place);
	return error;
}

/* --- all of them --- */

/* Returns the first task in scope whose number is at least *number, with a reference, and stores
 * its number in *number. */
static struct task_struct *next_in_scope(const struct weft_statedump *dump, int *number)
{
	struct task_struct *found = NULL, *task;
	struct pid *pid;

	do {
		rcu_read_lock();
		pid = idr_get_next(&init_pid_ns.idr, number);
		task = pid ? pid_task(pid, PIDTYPE_PID) : NULL;
		if (task && weft_statedump_means(dump, task)) {
			get_task_struct(task);
			found = task;
		} else {
			++*number;
		}
		rcu_read_unlock();
		cond_resched();
	} while (pid && !found && !signal_pending(current));
	return found;
}

bool weft_statedump_means_any_task(const struct weft_statedump *dump)
{
	int number = 1;
	struct task_struct *task = next_in_scope(dump, &number);

	if (task)
		put_task_struct(task);
	return task;
}

int weft_statedump_tasks(struct weft_statedump *dump)
{
	struct task_struct *task;
	int number = 1, error = 0;

	while (!error && (task = next_in_scope(dump, &number))) {
		if (thread_group_leader(task))
			error = record_task(dump, task, WEFT_KERNEL_STATE_PROCESS);
		if (!error)
			error = record_task(dump, task, WEFT_KERNEL_STATE_THREAD);
		if (!error)
			error = record_things(dump, task);
		put_task_struct(task);
		number++;
	}
	return !error && signal_pending(current) ? -EINTR : error;
}
