/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks that the module makes before it offers its device. */
#ifndef WEFT_KMOD_SELFTEST_H
#define WEFT_KMOD_SELFTEST_H

/* Returns 0; -EINVAL, after a line in the kernel's log that says what is wrong; or -ENOMEM. Takes
 * about a millisecond.
 */
int weft_selftest(void);

#endif /* WEFT_KMOD_SELFTEST_H */
