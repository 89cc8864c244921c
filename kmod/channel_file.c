// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a ring's descriptor does: pread, splice, mmap, poll, and the ioctl that makes events.
 *
 * A reader copies while writers write: what it gets is as torn as shared memory is, and it checks
 * (lib/abi/ring.h, R). Nothing here waits for a writer, nor a writer for a reader.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/uio.h>
#include <linux/vmalloc.h>

#include "channel.h"
#include "compat.h"
#include "event.h"
#include "uapi.h"

/* What is at `offset` of the ring set, and how many bytes lie there in one piece. NULL: zeros. */
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

static long ring_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct weft_channel *channel = file->private_data;

	if (!weft_ioctl_is_ours(cmd) || _IOC_NR(cmd) != _IOC_NR(WEFT_IOCTL_EVENT))
		return -ENOTTY;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return weft_event_ioctl_create(channel, (void __user *)arg);
}

static int ring_release(struct inode *inode, struct file *file)
{
	weft_channel_put(file->private_data);
	return 0;
}

const struct file_operations weft_channel_fops = {
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
