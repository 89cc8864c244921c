// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file with packed symbols, or none. Nothing but an error may come of it, or
// symbols within the limit.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "lib/base/unique_fd.h"
#include "node-agent/hooks/limits.h"
#include "node-agent/hooks/unpack_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weft::UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  static const weft::UniqueFd to(memfd_create("symbols", MFD_CLOEXEC));
  if (ftruncate(file.get(), 0) != 0 || ftruncate(to.get(), 0) != 0 ||
      lseek(to.get(), 0, SEEK_SET) != 0 ||
      pwrite(file.get(), data, size, 0) != static_cast<ssize_t>(size))
    return 0;
  const auto done = weft::hooks::UnpackSymbols(file.get(), to.get());
  struct stat st{};
  if (fstat(to.get(), &st) != 0) return 0;
  if (done && static_cast<size_t>(st.st_size) > weft::hooks::kMaxUnpackedBytes) __builtin_trap();
  return 0;
}
