// SPDX-License-Identifier: Apache-2.0
// See peek.h.
#include "ust-injector/preload/peek.h"

#include <errno.h>

#include "ust-injector/preload/sys.h"
#include "ust-injector/preload/text.h"

#define WEFT_SMALLEST_PAGE 4096u

static bool is_copied_by_kernel(void* to, uint64_t from, size_t size) {
  struct iovec {
    void* base;
    size_t size;
  } local = {to, size}, remote = {(void*)from, size};
  return weft_syscall(__NR_process_vm_readv, weft_syscall(__NR_getpid, 0), &local, 1, &remote, 1,
                      0) == (long)size;
}

// The kernel copies the set before it looks at the first argument, which it then refuses: nothing
// changes.
static long ask_kernel(uint64_t at) {
  return weft_syscall(__NR_rt_sigprocmask, WEFT_PEEK_NO_HOW, at, 0, sizeof(uint64_t));
}

static enum weft_peek ask_of_pages(uint64_t from, size_t size) {
  const uint64_t last = from + size - sizeof(uint64_t);
  if (last < from) return WEFT_PEEK_FAULT;
  for (uint64_t at = from; at < last; at = (at | (WEFT_SMALLEST_PAGE - 1)) + 1) {
    const long answer = ask_kernel(at);
    if (answer != -EINVAL) return answer == -EFAULT ? WEFT_PEEK_FAULT : WEFT_PEEK_UNKNOWN;
  }
  const long answer = ask_kernel(last);
  if (answer == -EINVAL) return WEFT_PEEK_COPIED;
  return answer == -EFAULT ? WEFT_PEEK_FAULT : WEFT_PEEK_UNKNOWN;
}

enum weft_peek weft_peek(void* to, uint64_t from, size_t size, bool may_readv) {
  if (may_readv && is_copied_by_kernel(to, from, size)) return WEFT_PEEK_COPIED;
  const enum weft_peek answer = ask_of_pages(from, size);
  if (answer == WEFT_PEEK_COPIED) memcpy(to, (const void*)from, size);
  return answer;
}
