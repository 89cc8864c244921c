// SPDX-License-Identifier: GPL-2.0-only
/* Copies of memory that may not be there: access.h. */
#include "access.h"

#include <linux/minmax.h>
#include <linux/string.h>

bool weft_copy_memory(void *to, u64 from, u32 size, bool user)
{
	u64 word;

	if (user)
		return !copy_from_user_nofault(to, (const void __user *)(unsigned long)from, size);
	for (; size >= sizeof(word); size -= sizeof(word)) {
		if (!weft_load_kernel(&word, from, sizeof(word)))
			return false;
		memcpy(to, &word, sizeof(word));
		to += sizeof(word);
		from += sizeof(word);
	}
	for (; size; size--) {
		if (!weft_load_kernel(&word, from++, 1))
			return false;
		*(u8 *)to++ = word;
	}
	return true;
}

/* Copies in pieces that end at a multiple of their size: memory behind the NUL on the next page may
 * not be readable, and need not be. */
int weft_copy_text(char *to, u64 from, u32 limit, bool user)
{
	u32 done = 0;

	while (done < limit) {
		const u32 whole = WEFT_ACCESS_MAX - ((from + done) & (WEFT_ACCESS_MAX - 1));
		const u32 piece = min(whole, limit - done);
		u32 length;

		if (!weft_copy_memory(to + done, from + done, piece, user))
			return -EFAULT;
		length = strnlen(to + done, piece);
		done += length;
		if (length < piece)
			break;
	}
	return done;
}
