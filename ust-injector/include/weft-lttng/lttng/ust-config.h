/* SPDX-License-Identifier: Apache-2.0 */
/* LTTng's build options; weft has none (no SystemTap probes beside its tracepoints). */
#pragma GCC system_header
#ifndef WEFT_LTTNG_UST_CONFIG_H_
#define WEFT_LTTNG_UST_CONFIG_H_

#endif /* WEFT_LTTNG_UST_CONFIG_H_ */
