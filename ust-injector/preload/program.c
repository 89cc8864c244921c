// SPDX-License-Identifier: Apache-2.0
// How the executable gets libweft.so's functions before its constructors run: by its note
// (WEFT_NOTE_OBJECT in lib/abi/tracepoint.h). The notes are those of the program that ld.so
// started, so as trustworthy as it is; one that leads out of the program's data is passed over.
#include <elf.h>
#include <stdbool.h>

#include "ust-injector/preload/environment.h"
#include "ust-injector/preload/library.h"
#include "ust-injector/preload/text.h"

struct program {
  const Elf64_Phdr* headers;
  unsigned long count;
  uintptr_t bias;  // of its addresses in memory
};

static bool find_program(struct program* p) {
  p->headers = (const Elf64_Phdr*)weft_auxiliary(AT_PHDR);
  p->count = weft_auxiliary(AT_PHNUM);
  if (p->headers == NULL || weft_auxiliary(AT_PHENT) != sizeof(Elf64_Phdr)) return false;
  p->bias = weft_program_bias(p->headers, p->count);
  return true;
}

static bool is_program_data(const struct program* p, uintptr_t address, size_t size) {
  for (unsigned long i = 0; i < p->count; ++i) {
    const Elf64_Phdr* h = &p->headers[i];
    const uintptr_t offset = address - p->bias - h->p_vaddr;
    if (h->p_type == PT_LOAD && (h->p_flags & PF_W) != 0 && offset < h->p_memsz &&
        size <= h->p_memsz - offset) {
      return true;
    }
  }
  return false;
}

static void adopt(const struct program* p, const uint8_t* contents) {
  int64_t distance;
  __builtin_memcpy(&distance, contents, sizeof(distance));
  const uintptr_t address = (uintptr_t)contents + (uintptr_t)distance;
  if (address % 8 != 0 || !is_program_data(p, address, sizeof(struct weft_object))) return;
  ((struct weft_object*)address)->library = &weft_library;
}

// Looks at each multiple of 4 instead of walking from note to note: linkers put notes of different
// alignment into one segment, and then nothing says how they are padded.
static void search_notes(const struct program* p, const Elf64_Phdr* segment) {
  static const struct {
    Elf64_Nhdr head;
    char name[8];
  } wanted = {{5, 8, WEFT_NOTE_OBJECT}, "weft"};
  const uint8_t* notes = (const uint8_t*)(p->bias + segment->p_vaddr);
  for (uint64_t at = 0; at + sizeof(wanted) + sizeof(int64_t) <= segment->p_memsz; at += 4) {
    if (memcmp(notes + at, &wanted, sizeof(wanted)) == 0) adopt(p, notes + at + sizeof(wanted));
  }
}

__attribute__((constructor)) static void weft_program_start(void) {
  struct program p;
  if (!find_program(&p)) return;
  for (unsigned long i = 0; i < p.count; ++i) {
    if (p.headers[i].p_type == PT_NOTE) search_notes(&p, &p.headers[i]);
  }
}
