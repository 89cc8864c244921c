/* SPDX-License-Identifier: Apache-2.0 */
/* fork without exec, three deep, before and after the parent's first event; _exit and exit. */
#include "hit.h"

static void grow(int depth) {
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      hit_many(100);
      if (depth > 1) grow(depth - 1);
      _exit(depth);
    }
    say_end("child", child);
  }
}

int main(void) {
  grow(2);
  hit_many(10);
  grow(3);
  hit_many(10);
  report();
  return 0;
}
