// SPDX-License-Identifier: Apache-2.0
// See loaded_objects.h. Everything here is read from the kernel as bytes and checked; nothing is
// dereferenced.
#include "ust-injector/preload/loaded_objects.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/mman.h>

#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"

#define WEFT_LIST_BYTES (512u * 1024u)
#define WEFT_TEXT_BYTES 8192u       /* of maps at a time: more than its longest line */
#define WEFT_ELF_BYTES 4096u        /* of program headers, and of one segment of notes */
#define WEFT_GAP_BYTES (2ull << 20) /* between two segments of an object */
#define WEFT_VDSO_NAME "[linux-vdso.so.1]"
#define WEFT_DELETED " (deleted)"

struct weft_loaded_objects {
  uint32_t used;  // bytes of entries
  uint32_t text_begin, text_end;
  uint32_t reserved;
  char text[WEFT_TEXT_BYTES];
  uint8_t elf[WEFT_ELF_BYTES];
  uint8_t entries[];
};

#define WEFT_ENTRY_BYTES (WEFT_LIST_BYTES - (uint32_t)sizeof(struct weft_loaded_objects))

struct weft_loaded_objects* weft_loaded_objects_new(void) {
  const long map = weft_syscall(__NR_mmap, 0, WEFT_LIST_BYTES, 3,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return weft_failed(map) ? NULL : (struct weft_loaded_objects*)map;
}

void weft_loaded_objects_free(struct weft_loaded_objects* list) {
  if (list != NULL) weft_syscall(__NR_munmap, list, WEFT_LIST_BYTES);
}

static uint32_t entry_size(const struct weft_loaded_object* e) {
  return ((uint32_t)sizeof(*e) + e->path_size + 7) & ~7u;
}

const struct weft_loaded_object* weft_loaded_objects_next(const struct weft_loaded_objects* list,
                                                          const struct weft_loaded_object* after) {
  const uint8_t* next = after == NULL ? list->entries : (const uint8_t*)after + entry_size(after);
  return next < list->entries + list->used ? (const struct weft_loaded_object*)next : NULL;
}

// --- ELF -----------------------------------------------------------------------------------------

static bool read_memory(uint64_t from, void* to, uint64_t size) {
  struct iovec {
    void* base;
    uint64_t size;
  } local = {to, size}, remote = {(void*)from, size};
  return weft_optional(WEFT_CALL_PROCESS_VM_READV, __NR_process_vm_readv, weft_vpid(), &local, 1,
                       &remote, 1, 0) == (long)size;
}

// Notes are at multiples of 4, as in program.c.
static bool take_build_id(struct weft_loaded_object* e, const uint8_t* notes, uint32_t size) {
  const Elf64_Nhdr* head;
  const uint32_t before = (uint32_t)sizeof(*head) + 4;
  for (uint32_t at = 0; at + before <= size; at += 4) {
    head = (const Elf64_Nhdr*)(notes + at);
    if (head->n_namesz == 4 && head->n_type == NT_GNU_BUILD_ID && head->n_descsz != 0 &&
        head->n_descsz <= WEFT_BUILD_ID_MAX && head->n_descsz <= size - at - before &&
        memcmp(head + 1, "GNU", 4) == 0) {
      e->build_id_size = (uint8_t)head->n_descsz;
      memcpy(e->build_id, notes + at + before, head->n_descsz);
      return true;
    }
  }
  return false;
}

static void find_build_id(struct weft_loaded_objects* list, struct weft_loaded_object* e,
                          const Elf64_Phdr* notes, uint64_t bias) {
  uint8_t* bytes = list->elf;  // the headers are not needed any more
  for (uint32_t i = 0; i < 4 && notes[i].p_type == PT_NOTE; ++i) {
    const uint64_t size = notes[i].p_memsz < WEFT_ELF_BYTES ? notes[i].p_memsz : WEFT_ELF_BYTES;
    if (read_memory(bias + notes[i].p_vaddr, bytes, size) &&
        take_build_id(e, bytes, (uint32_t)size)) {
      return;
    }
  }
}

// Fills the rest of an entry whose base is known. Returns false if no ELF object is loaded there.
static bool read_object(struct weft_loaded_objects* list, struct weft_loaded_object* e) {
  Elf64_Ehdr head;
  const Elf64_Phdr* segments = (const Elf64_Phdr*)list->elf;
  Elf64_Phdr notes[4] = {{0}};
  uint32_t note_count = 0;
  uint64_t low = ~0ull, high = 0;
  if (!read_memory(e->base, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
      head.e_phnum == 0 || head.e_phnum > WEFT_ELF_BYTES / sizeof(Elf64_Phdr) ||
      !read_memory(e->base + head.e_phoff, list->elf, head.e_phnum * sizeof(Elf64_Phdr))) {
    return false;
  }
  for (uint32_t i = 0; i < head.e_phnum; ++i) {
    const Elf64_Phdr* s = &segments[i];
    if (s->p_type == PT_LOAD && s->p_vaddr < low) low = s->p_vaddr;
    if (s->p_type == PT_LOAD && s->p_vaddr + s->p_memsz > high) high = s->p_vaddr + s->p_memsz;
    if (s->p_type == PT_NOTE && note_count < 4) notes[note_count++] = *s;
  }
  if (low >= high) return false;
  e->size = high - low;
  e->is_pic = head.e_type == ET_DYN;
  find_build_id(list, e, notes, e->base - (low & ~4095ull));
  return true;
}

// --- maps ----------------------------------------------------------------------------------------

struct mapping {
  uint64_t start, end, offset, inode;
  uint64_t device[2];
  bool is_code;
  const char* path;
  uint32_t path_size;
};

// Reads a number and passes over the `end` behind it. Returns false if there is none.
static bool take_number(const char** at, const char* line_end, uint32_t base, char end,
                        uint64_t* out) {
  const char* p = *at;
  for (*out = 0; p < line_end && *p != end; ++p) {
    const char lower = (char)(*p | 0x20);
    const uint32_t digit = *p >= '0' && *p <= '9' ? (uint32_t)(*p - '0')
                           : lower >= 'a' && lower <= 'f' && base == 16
                               ? (uint32_t)(lower - 'a') + 10
                               : 255;
    if (digit >= base) return false;
    *out = *out * base + digit;
  }
  if (p == *at || p == line_end) return false;
  *at = p + 1;
  return true;
}

// Parses "START-END PERM OFFSET MAJOR:MINOR INODE PATH", see proc(5). Returns false for a line
// without a path.
static bool parse_line(const char* line, const char* end, struct mapping* m) {
  if (!take_number(&line, end, 16, '-', &m->start) || !take_number(&line, end, 16, ' ', &m->end) ||
      end - line < 5) {
    return false;
  }
  m->is_code = line[2] == 'x';
  line += 5;
  if (!take_number(&line, end, 16, ' ', &m->offset) ||
      !take_number(&line, end, 16, ':', &m->device[0]) ||
      !take_number(&line, end, 16, ' ', &m->device[1]) ||
      !take_number(&line, end, 10, ' ', &m->inode)) {
    return false;
  }
  while (line < end && *line == ' ') ++line;
  m->path = line;
  m->path_size = (uint32_t)(end - line);
  const uint32_t deleted = sizeof(WEFT_DELETED) - 1;
  if (m->path_size > deleted && memcmp(end - deleted, WEFT_DELETED, deleted) == 0) {
    m->path_size -= deleted;
  }
  return m->path_size != 0;
}

// Returns the next line without its end, or NULL. A line longer than the buffer becomes several,
// which do not look like mappings.
static const char* next_line(struct weft_loaded_objects* list, long fd, const char** end) {
  for (;;) {
    for (uint32_t i = list->text_begin; i < list->text_end; ++i) {
      if (list->text[i] != '\n') continue;
      const char* line = list->text + list->text_begin;
      *end = list->text + i;
      list->text_begin = i + 1;
      return line;
    }
    const uint32_t rest = list->text_end - list->text_begin;
    for (uint32_t i = 0; i < rest; ++i) list->text[i] = list->text[list->text_begin + i];
    list->text_begin = 0;
    list->text_end = rest == WEFT_TEXT_BYTES ? 0 : rest;
    const long n = weft_optional(WEFT_CALL_READ, __NR_read, fd, list->text + list->text_end,
                                 WEFT_TEXT_BYTES - list->text_end);
    if (n <= 0) return NULL;
    list->text_end += (uint32_t)n;
  }
}

// Returns an entry that is not in the list yet; NULL: no room.
static struct weft_loaded_object* new_entry(struct weft_loaded_objects* list,
                                            const struct mapping* m) {
  struct weft_loaded_object* e = (struct weft_loaded_object*)(list->entries + list->used);
  if (list->used + sizeof(*e) + m->path_size + 7 > WEFT_ENTRY_BYTES) return NULL;
  memset(e, 0, sizeof(*e));
  e->base = m->start;
  e->path_size = m->path_size;
  memcpy(e->path, m->path, m->path_size);
  return e;
}

static void add_vdso(struct weft_loaded_objects* list, struct mapping* m) {
  m->path = WEFT_VDSO_NAME;
  m->path_size = sizeof(WEFT_VDSO_NAME) - 1;
  const struct weft_loaded_object* e = new_entry(list, m);
  if (e != NULL) list->used += entry_size(e);
}

// The state of the walk over the mappings.
struct walk {
  struct mapping last;                   // of a file
  struct weft_loaded_object* candidate;  // its beginning is mapped, its code was not seen yet
  uint64_t covered;                      // end of the object that was added last
};

static bool is_same_file(const struct mapping* a, const struct mapping* b) {
  return a->inode == b->inode && a->device[0] == b->device[0] && a->device[1] == b->device[1];
}

// An object is a file whose beginning is mapped, and a little further on some code of the same
// file. Linkers that put segments into a file without gaps let a page of it be mapped twice, its
// first page too: that is no other object.
static void look_at(struct weft_loaded_objects* list, struct walk* w, const struct mapping* m) {
  const bool goes_on = is_same_file(m, &w->last) && m->start - w->last.end <= WEFT_GAP_BYTES;
  w->last = *m;
  if (m->start < w->covered) return;
  if (!goes_on || w->candidate == NULL) w->candidate = m->offset == 0 ? new_entry(list, m) : NULL;
  struct weft_loaded_object* e = w->candidate;
  if (e == NULL || !m->is_code) return;
  if (read_object(list, e)) {
    list->used += entry_size(e);
    w->covered = e->base + e->size;
  }
  w->candidate = NULL;
}

void weft_loaded_objects_gather(struct weft_loaded_objects* list) {
  const long fd = weft_optional(WEFT_CALL_OPENAT, __NR_openat, AT_FDCWD, "/proc/thread-self/maps",
                                O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  struct walk w = {.candidate = NULL};
  struct mapping m;
  const char* end;
  for (const char* line; (line = next_line(list, fd, &end)) != NULL;) {
    if (!parse_line(line, end, &m)) continue;
    if (m.path_size == 6 && memcmp(m.path, "[vdso]", 6) == 0) {
      w.candidate = NULL;
      add_vdso(list, &m);
    } else if (m.inode != 0 && m.path[0] == '/') {
      look_at(list, &w, &m);
    }
  }
  weft_syscall(__NR_close, fd);
}
