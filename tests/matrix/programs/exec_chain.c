/* SPDX-License-Identifier: Apache-2.0 */
/* A program that replaces itself five times; every life reports its own events. */
#include "hit.h"

int main(int argc, char** argv) {
  const int life = argc > 1 ? atoi(argv[1]) : 0;
  char next[16];
  hit_many(20 * (life + 1));
  report();
  if (life == 5) return 4;
  snprintf(next, sizeof(next), "%d", life + 1);
  execl("/proc/self/exe", argv[0], next, (char*)NULL);
  return 98;
}
