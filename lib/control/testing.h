// SPDX-License-Identifier: Apache-2.0
// What tests of control areas share.
#ifndef WEFT_LIB_CONTROL_TESTING_H_
#define WEFT_LIB_CONTROL_TESTING_H_

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "lib/abi/control.h"
#include "lib/base/unique_fd.h"

namespace weft::control {

// Makes memory as the library does, with another size or other seals if asked for.
inline UniqueFd MakeProcessArea(uint64_t size = WEFT_CONTROL_TOTAL_BYTES,
                                int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) {
  UniqueFd fd(memfd_create("weft-ctl", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  weft_control_header h{};
  h.magic = WEFT_CONTROL_MAGIC;
  h.major = WEFT_CONTROL_MAJOR;
  h.header_size = sizeof(h);
  h.total_size = WEFT_CONTROL_TOTAL_BYTES;
  h.words_offset = WEFT_CONTROL_WORDS_OFFSET;
  h.arena_offset = WEFT_CONTROL_ARENA_OFFSET;
  h.arena_size = WEFT_CONTROL_ARENA_BYTES;
  h.word_count = WEFT_CONTROL_WORDS;
  EXPECT_EQ(pwrite(fd.get(), &h, sizeof(h), 0), ssize_t{sizeof(h)});
  if (seals != 0) {
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

}  // namespace weft::control

#endif  // WEFT_LIB_CONTROL_TESTING_H_
