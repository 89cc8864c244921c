/* SPDX-License-Identifier: Apache-2.0 */
/* The tracepoint of weft-install-test. */
#undef TRACEPOINT_PROVIDER
#define TRACEPOINT_PROVIDER weft_install_test

#undef TRACEPOINT_INCLUDE
#define TRACEPOINT_INCLUDE "deploy/install_test/install_test_tp.h"

#if !defined(WEFT_DEPLOY_INSTALL_TEST_INSTALL_TEST_TP_H_) || defined(TRACEPOINT_HEADER_MULTI_READ)
#define WEFT_DEPLOY_INSTALL_TEST_INSTALL_TEST_TP_H_

#include <stdint.h>
#include <weft/tracepoint.h>

/* clang-format off */
TRACEPOINT_EVENT(weft_install_test, step,
  TP_ARGS(uint32_t, number),
  TP_FIELDS(
    ctf_integer(uint32_t, number, number)
  )
)
/* clang-format on */

#endif  // WEFT_DEPLOY_INSTALL_TEST_INSTALL_TEST_TP_H_

#include <weft/tracepoint-event.h>
