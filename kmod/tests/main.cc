// SPDX-License-Identifier: GPL-2.0-only
// The tests of weft.ko, in a guest (kmod/qemu): loads the module, runs them, unloads it. What the
// kernel says of a mistake meanwhile makes the guest's run fail, not this program.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kmod/tests/device.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("WEFT_VM") == nullptr) {
    std::fprintf(stderr, "these tests load a kernel module: run them with ./dev test vm\n");
    return EXIT_FAILURE;
  }
  if (const int error = weft::kmod::LoadModule(); error != 0) {
    std::fprintf(stderr, "weft.ko does not load: %s\n", std::strerror(-error));
    return EXIT_FAILURE;
  }
  const int failed = RUN_ALL_TESTS();
  if (const int error = weft::kmod::UnloadModule(); error != 0) {
    std::fprintf(stderr, "weft.ko does not go: %s\n", std::strerror(-error));
    return EXIT_FAILURE;
  }
  return failed;
}
