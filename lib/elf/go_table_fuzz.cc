// SPDX-License-Identifier: Apache-2.0
// Any bytes are a program of Go with a table of its functions, or none.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "lib/base/unique_fd.h"
#include "lib/elf/go_table.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::UniqueFd file(memfd_create("program", MFD_CLOEXEC));
  if (ftruncate(file.get(), 0) != 0 ||
      pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  const auto image = weft::ElfImage::Read(file.get());
  if (!image) return 0;
  (void)weft::IsGoProgram(*image);
  uint64_t end = 0;
  const auto read = weft::EachGoFunction(file.get(), *image, [&](const weft::GoFunction& function) {
    const uint64_t size_left = UINT64_MAX - function.address;
    if (function.name.empty() || function.address < end || function.size > size_left)
      __builtin_trap();
    end = function.address + function.size;
  });
  if (!read && end != 0) __builtin_trap();
  return 0;
}
