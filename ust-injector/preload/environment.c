// SPDX-License-Identifier: Apache-2.0
// See environment.h.
#include "ust-injector/preload/environment.h"

#include <stddef.h>

#include "ust-injector/preload/text.h"

// These come from a libc. They are weak, and so NULL if there is no libc.
extern void* __libc_stack_end __attribute__((weak));
extern char** __environ __attribute__((weak));
extern unsigned long getauxval(unsigned long type) __attribute__((weak));

// glibc's ld.so keeps the address of argc, which leads to the environment of exec time before any
// constructor has run. In other libcs (musl), __environ is set before constructors run.
static char** environment(void) {
  if (&__libc_stack_end != NULL && __libc_stack_end != NULL) {
    long* argc = __libc_stack_end;
    return (char**)(argc + 1 + *argc + 1);
  }
  return &__environ != NULL ? __environ : NULL;
}

const char* weft_environment(const char* name) {
  char** env = environment();
  const size_t n = strlen(name);
  for (; env != NULL && *env != NULL; ++env) {
    if (memcmp(*env, name, n) == 0 && (*env)[n] == '=') return *env + n + 1;
  }
  return NULL;
}

unsigned long weft_auxiliary(unsigned long type) {
  if (getauxval != NULL) return getauxval(type);
  return 0;
}

// A static program that is position-independent has no PT_PHDR. There the headers follow the file's
// own header, at the begin of the segment that has the file's first byte.
uintptr_t weft_program_bias(const Elf64_Phdr* headers, unsigned long count) {
  const uintptr_t begin = (uintptr_t)headers - sizeof(Elf64_Ehdr);
  uintptr_t bias = 0;
  for (unsigned long i = 0; i < count; ++i) {
    const Elf64_Phdr* h = &headers[i];
    if (h->p_type == PT_PHDR) return (uintptr_t)headers - h->p_vaddr;
    if (h->p_type == PT_LOAD && h->p_offset == 0 && begin % 4096 == 0) bias = begin - h->p_vaddr;
  }
  return bias;
}
