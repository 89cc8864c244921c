/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks that the module makes before it offers its device. */
#ifndef WEFT_KMOD_SELFTEST_H
#define WEFT_KMOD_SELFTEST_H

/* 0, or -EINVAL after saying in the kernel's log what is wrong; -ENOMEM. Takes about a millisecond.
 */
int weft_selftest(void);

#endif /* WEFT_KMOD_SELFTEST_H */
