// SPDX-License-Identifier: Apache-2.0
// See time_namespace.h.
#include "ust-injector/preload/time_namespace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "ust-injector/preload/sys.h"
#include "ust-injector/preload/text.h"

#define WEFT_PROCESS_FOLDER "/proc/self"

// Reads a number with spaces before it. Returns false if there is none.
static bool take_number(const char** at, const char* end, int64_t* number) {
  const char* p = *at;
  int64_t value = 0;
  while (p < end && *p == ' ') ++p;
  const bool negative = p < end && *p == '-';
  if (negative) ++p;
  const char* first = p;
  for (; p < end && *p >= '0' && *p <= '9'; ++p) value = value * 10 + (*p - '0');
  *number = negative ? -value : value;
  *at = p;
  return p != first && p - first <= 18;
}

// "monotonic SECONDS NANOSECONDS" is the first line.
static bool parse_offset(const char* text, const char* end, int64_t* offset) {
  static const char key[] = "monotonic ";
  int64_t seconds, nanoseconds;
  if ((uint64_t)(end - text) < sizeof(key) - 1 || memcmp(text, key, sizeof(key) - 1) != 0) {
    return false;
  }
  text += sizeof(key) - 1;
  if (!take_number(&text, end, &seconds) || !take_number(&text, end, &nanoseconds)) return false;
  *offset = seconds * 1000000000 + nanoseconds;
  return true;
}

bool weft_time_namespace_offset(long folder, int64_t* offset) {
  struct stat own = {0}, childrens = {0};
  char text[128];
  if (weft_syscall(__NR_newfstatat, folder, "ns/time", &own, 0) != 0 ||
      weft_syscall(__NR_newfstatat, folder, "ns/time_for_children", &childrens, 0) != 0 ||
      own.st_ino != childrens.st_ino) {
    return false;
  }
  const long fd = weft_syscall(__NR_openat, folder, "timens_offsets", O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  const long size = weft_syscall(__NR_read, fd, text, sizeof(text));
  weft_syscall(__NR_close, fd);
  return size > 0 && parse_offset(text, text + size, offset);
}

long weft_time_namespace_open(void) {
  return weft_syscall(__NR_openat, AT_FDCWD, WEFT_PROCESS_FOLDER,
                      O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
}
