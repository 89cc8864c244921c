// SPDX-License-Identifier: GPL-2.0-only
/*
 * A ring's descriptor: channel_file.h.
 *
 * A reader copies while writers write: what it gets is as torn as shared memory is, and it checks
 * (lib/abi/ring.h, R). Nothing here waits for a writer, nor a writer for a reader.
 */
#include "channel_file.h"

#include <linux/anon_inodes.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "control.h"
#include "event_file.h"

/* Returns the ring set's bytes at `offset`, and how many lie there in one piece. NULL: zeros. */
static u8 *locate(const struct weft_ring *ring, u64 offset, u64 *left)
{
	u64 slot, in;

	if (offset < ring->data_offset) {
		*left = ring->data_offset - offset;
		return ring->shared + offset;
	}
	slot = (offset - ring->data_offset) >> ring->slot_shift;
	in = (offset - ring->data_offset) & ring->slot_mask;
	*left = (1ull << ring->slot_shift) - in;
	if (slot >= nr_cpu_ids || !cpu_possible(slot))
		return NULL;
	return per_cpu_ptr(ring->cpus, slot)->data + in;
}

static ssize_t ring_read_iter(struct kiocb *iocb, struct iov_iter *to)
{
	const struct weft_channel *channel = iocb->ki_filp->private_data;
	const struct weft_ring *ring = &channel->ring;
	ssize_t done = 0;

	while (iov_iter_count(to) && iocb->ki_pos >= 0 && iocb->ki_pos < ring->total_size) {
		size_t copied, wanted;
		u64 left;
		u8 *from = locate(ring, iocb->ki_pos, &left);

		wanted = min_t(u64, left, iov_iter_count(to));
		copied = from ? copy_to_iter(from, wanted, to) : iov_iter_zero(wanted, to);
		iocb->ki_pos += copied;
		done += copied;
		if (copied < wanted)
			return done ? done : -EFAULT;
	}
	return done;
}

static vm_fault_t ring_fault(struct vm_fault *vmf)
{
	const struct weft_channel *channel = vmf->vma->vm_file->private_data;
	const u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	u64 left;
	u8 *at;

	if (offset >= channel->ring.total_size)
		return VM_FAULT_SIGBUS;
	at = locate(&channel->ring, offset, &left);
	vmf->page = at ? vmalloc_to_page(at) : virt_to_page(channel->ring.atomic_page);
	get_page(vmf->page);
	return 0;
}

static const struct vm_operations_struct ring_vm_ops = {.fault = ring_fault};

/* Shared; writable only within [0, data_offset), of which only `tail` and `closed` are ever read.
 */
static int ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct weft_channel *channel = file->private_data;
	const u64 first = (u64)vma->vm_pgoff << PAGE_SHIFT;
	const u64 bytes = vma->vm_end - vma->vm_start;
	const struct weft_ring *ring = &channel->ring;
	unsigned long clear = VM_MAYEXEC;

	if (!(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	if (first > ring->total_size || bytes > ring->total_size - first)
		return -EINVAL;
	if (first + bytes > ring->data_offset) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		clear |= VM_MAYWRITE;
	}
	weft_vma_flags(vma, VM_DONTEXPAND | VM_DONTDUMP, clear);
	vma->vm_ops = &ring_vm_ops;
	return 0;
}

static __poll_t ring_poll(struct file *file, poll_table *wait)
{
	struct weft_channel *channel = file->private_data;
	u64 filled;

	poll_wait(file, &channel->ring.readers, wait);
	filled = weft_ring_switches(&channel->ring);
	if (filled == READ_ONCE(channel->polled))
		return 0;
	WRITE_ONCE(channel->polled, filled);
	return EPOLLIN | EPOLLRDNORM;
}

static loff_t ring_llseek(struct file *file, loff_t offset, int whence)
{
	const struct weft_channel *channel = file->private_data;

	return fixed_size_llseek(file, offset, whence, channel->ring.total_size);
}

static long run_event(void *object, struct weft_request *request)
{
	return weft_event_file_create(object, request);
}

static const struct weft_ioctl ring_ioctls[] = {
	{.command = WEFT_IOCTL_EVENT, .privileged = true, .run = run_event},
	{},
};

static long ring_ioctl(struct file *file, unsigned int command, unsigned long arg)
{
	return weft_control(ring_ioctls, file->private_data, command, arg);
}

static int ring_release(struct inode *inode, struct file *file)
{
	weft_channel_put(file->private_data);
	return 0;
}

static const struct file_operations ring_fops = {
	.owner = THIS_MODULE,
	.llseek = ring_llseek,
	.read_iter = ring_read_iter,
	.splice_read = weft_splice_read,
	.mmap = ring_mmap,
	.poll = ring_poll,
	.unlocked_ioctl = ring_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = ring_release,
};

/* The file's position is a place in the ring set (pread). */
static int make_file(struct weft_channel *channel)
{
	struct file *file;
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	file = anon_inode_getfile("[weft-ring]", &ring_fops, channel, O_RDWR);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	fd_install(fd, file);
	return fd;
}

int weft_channel_file_create(struct weft_session *session, const struct weft_kernel_channel *arg)
{
	struct weft_channel *channel = weft_channel_new(session, arg);
	int fd;

	if (IS_ERR(channel))
		return PTR_ERR(channel);
	fd = make_file(channel);
	if (fd < 0)
		weft_channel_put(channel);
	return fd;
}
