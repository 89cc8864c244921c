/* SPDX-License-Identifier: Apache-2.0 */
/* LTTNG_UST_COMPAT_API_VERSION and LTTNG_UST_COMPAT_API. */
#pragma GCC system_header
#include "../../weft/detail/short_names.h"
