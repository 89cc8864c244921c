/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads memory at addresses that may have any value, in any context, without sleeping.
 *
 * Kernel memory: on x86, a load with an exception table entry costs almost nothing, while
 * copy_from_kernel_nofault costs about 80 instructions. The load is safe only if the address is
 * canonical and belongs to the kernel: for other faults the table has no entry. The last ten
 * megabytes are excluded. They hold error pointers and the vsyscall page, whose faults the kernel
 * treats as faults of user memory.
 */
#ifndef WEFT_KMOD_ACCESS_H
#define WEFT_KMOD_ACCESS_H

#include <linux/sched.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86_64
#include <asm/page.h>
#include <asm/vsyscall.h>
#endif

/* Largest access, in bytes, that one check of an address allows. */
#define WEFT_ACCESS_MAX 64

static __always_inline bool weft_is_kernel_address(u64 address)
{
#ifdef CONFIG_X86_64
	return address >= PAGE_OFFSET && address < VSYSCALL_ADDR - WEFT_ACCESS_MAX;
#else
	return (s64)address < 0 && address < (u64)-MAX_ERRNO - WEFT_ACCESS_MAX;
#endif
}

/* Stores the `size` (1, 2, 4, 8) bytes there in *to, zero-extended. */
static __always_inline bool weft_load_kernel(u64 *to, u64 from, unsigned int size)
{
	const void *address = (const void *)(unsigned long)from;

	*to = 0;
	if (unlikely(!weft_is_kernel_address(from)))
		return false;
#ifdef CONFIG_X86_64
	switch (size) {
	case 8:
		__get_kernel_nofault(to, address, u64, fault);
		return true;
	case 4:
		__get_kernel_nofault(to, address, u32, fault);
		return true;
	case 2:
		__get_kernel_nofault(to, address, u16, fault);
		return true;
	default:
		__get_kernel_nofault(to, address, u8, fault);
		return true;
	}
fault:
	*to = 0;
	return false;
#else
	return !copy_from_kernel_nofault(to, address, size);
#endif
}

/* Stores in *to a member of the struct that the caller expects at `from`. */
#define WEFT_LOAD_MEMBER(to, from, type, member)                                                   \
	weft_load_kernel(to, (from) + offsetof(type, member), sizeof_field(type, member))

/* Has the current task user memory that is mapped now? A kernel thread runs on another task's. */
static inline bool weft_user_is_mapped(void)
{
	return current->mm && !(current->flags & PF_KTHREAD);
}

/* Copies `size` bytes. False: some could not be read; the bytes at `to` are then undefined. */
bool weft_copy_memory(void *to, u64 from, u32 size, bool user);

/* Copies text up to a NUL, at most `limit` bytes. Returns its length without the NUL; negative: a
 * fault. */
int weft_copy_text(char *to, u64 from, u32 limit, bool user);

#endif /* WEFT_KMOD_ACCESS_H */
