/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that a test image preloads by its ENV, as images with an allocator of their own do: it
 * says that it runs.
 */
#include <unistd.h>

__attribute__((constructor)) static void say_it(void) {
  static const char kText[] = "the image's library runs\n";
  if (write(STDERR_FILENO, kText, sizeof(kText) - 1) < 0) return;
}
