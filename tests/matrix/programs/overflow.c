/* SPDX-License-Identifier: Apache-2.0 */
/* More events than the ring holds: the rest is counted. */
#include "hit.h"

int main(void) {
  hit_many(100000);
  report();
  return 0;
}
