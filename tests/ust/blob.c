/* SPDX-License-Identifier: Apache-2.0 */
/* Records events with BLOB fields. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "blob_tp.h"

int main(void) {
  uint8_t bytes[100];
  unsigned int i;
  for (i = 0; i < sizeof(bytes); i++) bytes[i] = (uint8_t)(0xf0 + i);
  lttng_ust_tracepoint(blob, each, bytes, "{}\0\xff", 4, 1);
  lttng_ust_tracepoint(blob, each, bytes + 0, "", 0, 2);
  lttng_ust_tracepoint(blob, each, bytes, NULL, 9, 3);
  return 0;
}
