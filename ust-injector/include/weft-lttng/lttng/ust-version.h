/* SPDX-License-Identifier: Apache-2.0 */
/* States the version of LTTng-UST whose source interface these headers offer. */
#pragma GCC system_header
#ifndef WEFT_LTTNG_UST_VERSION_H_
#define WEFT_LTTNG_UST_VERSION_H_

#define LTTNG_UST_MAJOR_VERSION 2
#define LTTNG_UST_MINOR_VERSION 13
#define LTTNG_UST_PATCHLEVEL_VERSION 5
#define LTTNG_UST_VERSION "2.13.5"

#endif /* WEFT_LTTNG_UST_VERSION_H_ */
