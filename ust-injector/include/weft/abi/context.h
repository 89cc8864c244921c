/* SPDX-License-Identifier: Apache-2.0 */
/* In the source tree only: `cmake --install` puts lib/abi's own files here. */
#include "../../../../lib/abi/context.h"  // IWYU pragma: export
