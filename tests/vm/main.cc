// SPDX-License-Identifier: Apache-2.0
// Tests with weft.ko, in a guest (kmod/qemu).
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (std::getenv("WEFT_VM") == nullptr) {
    std::cerr << "these tests load a kernel module: run them with ./dev test vm\n";
    return EXIT_FAILURE;
  }
  return RUN_ALL_TESTS();
}
