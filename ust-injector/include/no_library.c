/* SPDX-License-Identifier: Apache-2.0 */
/* liblttng-ust.a for build files that say -llttng-ust: weft's headers need nothing from it. */
typedef int weft_nothing;
