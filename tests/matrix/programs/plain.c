/* SPDX-License-Identifier: Apache-2.0 */
/* One thread emits more events than a sub-buffer holds. It is also built as a static program. */
#include "hit.h"

int main(void) {
  hit_many(5000);
  report();
  return 7;
}
