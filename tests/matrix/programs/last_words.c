/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in constructors, atexit handlers and destructors, and forks in a constructor between
 * them. */
#include "hit.h"

static void __attribute__((constructor(200))) very_early(void) {
  prepare_hits();
  hit_many(3);
}

static void __attribute__((constructor)) early(void) {
  hit_many(3);
  const pid_t child = fork();
  if (child == 0) {
    hit();
    _exit(2);
  }
  say_end("child of a constructor", child);
}

static void at_exit(void) { hit_many(4); }

static void __attribute__((destructor)) late(void) {
  hit_many(5);
  report();
}

int main(void) {
  REQUIRE(atexit(at_exit) == 0);
  hit_many(6);
  return 12;
}
