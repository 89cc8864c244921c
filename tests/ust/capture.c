/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces libweft.so: turns every event on and prints its image, decoded by its description alone,
 * one line per event on stderr. builds_test.py preloads it, so that the headers are tested without
 * the tracer.
 *
 *   WEFT_CAPTURE_NOWRITE=1   filters want the nowrite fields
 *   WEFT_CAPTURE_IP=1        each line begins with the event's address
 *   WEFT_CAPTURE_OFF=1       everything is registered, nothing is on
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/abi/tracepoint.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_ENTRIES 1024

static uint32_t on = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct weft_tracepoint* tracepoints[MAX_ENTRIES];
static struct weft_event* events[MAX_ENTRIES];
static unsigned tracepoint_count, event_count;

/* --- decoding ---------------------------------------------------------------------------- */

static void fail(const char* what) {
  fprintf(stderr, "capture: %s\n", what);
  abort();
}

/* Prints one value at `p`, as babeltrace2 would show it. */
static void print_number(const struct weft_field_desc* f, const unsigned char* p) {
  unsigned char bytes[8] = {0};
  uint64_t u = 0;
  const bool is_float = f->kind == WEFT_FIELD_KIND_FLOAT || (f->flags & WEFT_FIELD_FLOAT_ELEMENTS);
  for (unsigned i = 0; i < f->elem_size; i++) {
    bytes[i] = p[(f->flags & WEFT_FIELD_NETWORK) ? f->elem_size - 1u - i : i];
  }
  memcpy(&u, bytes, 8);
  const unsigned unused = 64 - 8 * f->elem_size;
  if (is_float && f->elem_size == 4) {
    float value;
    memcpy(&value, bytes, 4);
    fprintf(stderr, "%.9g", value);
  } else if (is_float) {
    double value;
    memcpy(&value, bytes, 8);
    fprintf(stderr, "%.17g", value);
  } else if (f->base == 16) {
    fprintf(stderr, "0x%" PRIX64, u);
  } else if (f->flags & WEFT_FIELD_SIGNED) {
    fprintf(stderr, "%" PRId64, (int64_t)(u << unused) >> unused);
  } else {
    fprintf(stderr, "%" PRIu64, u);
  }
}

static void print_elements(const struct weft_field_desc* f, const unsigned char* p,
                           uint32_t count) {
  if (f->flags & WEFT_FIELD_TEXT) {
    fprintf(stderr, "\"%.*s\"", (int)count, (const char*)p);
    return;
  }
  fputs("[", stderr);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) fputs(", ", stderr);
    print_number(f, p + i * f->elem_size);
  }
  fputs("]", stderr);
}

static void print_label(const struct weft_field_desc* f, const unsigned char* mapping,
                        const unsigned char* value) {
  uint64_t u = 0;
  memcpy(&u, value, f->elem_size);
  const unsigned unused = 64 - 8 * f->elem_size;
  const int64_t s = (int64_t)(u << unused) >> unused;
  for (uint32_t i = 0; i < f->count; i++) {
    struct weft_enum_mapping m;
    memcpy(&m, mapping, sizeof(m));
    if (m.reserved != 0 || m.size != sizeof(m) + strlen((const char*)mapping + sizeof(m)) + 1) {
      fail("a mapping's size is wrong");
    }
    const bool hit = (f->flags & WEFT_FIELD_SIGNED) ? s >= (int64_t)m.begin && s <= (int64_t)m.end
                                                    : u >= m.begin && u <= m.end;
    if (hit) {
      fprintf(stderr, "\"%s\":", mapping + sizeof(m));
      return;
    }
    mapping += m.size;
  }
}

struct position {
  const unsigned char* fixed;
  const struct weft_segment* segment;
};

static void print_field(const unsigned char* at, struct position* p) {
  struct weft_field_desc f;
  memcpy(&f, at, sizeof(f));
  const char* name = (const char*)at + sizeof(f);
  uint32_t count = 0;
  if (strlen(name) + 1 != f.name_size) fail("a name's size is wrong");
  fprintf(stderr, " %s%s=", f.flags & WEFT_FIELD_NOWRITE ? "hidden " : "", name);
  switch (f.kind) {
    case WEFT_FIELD_KIND_ENUM:
      print_label(&f, at + sizeof(f) + f.name_size, p->fixed);
      /* fall through */
    case WEFT_FIELD_KIND_INTEGER:
    case WEFT_FIELD_KIND_FLOAT:
      print_number(&f, p->fixed);
      p->fixed += f.elem_size;
      break;
    case WEFT_FIELD_KIND_ARRAY:
      if (f.flags & WEFT_FIELD_INLINE) {
        if (f.count * f.elem_size > WEFT_INLINE_ARRAY_MAX) fail("a large array is inline");
        print_elements(&f, p->fixed, f.count);
        p->fixed += f.count * f.elem_size;
      } else {
        if (p->segment->size != f.count * f.elem_size) fail("an array's size is wrong");
        print_elements(&f, p->segment->data, f.count);
        p->segment++;
      }
      break;
    case WEFT_FIELD_KIND_STRING:
    case WEFT_FIELD_KIND_SEQUENCE:
      memcpy(&count, p->fixed, 4);
      if (p->segment->size != count * f.elem_size || p->segment->reserved != 0) {
        fail("a sequence's size is wrong");
      }
      print_elements(&f, p->segment->data, count);
      if (f.kind == WEFT_FIELD_KIND_SEQUENCE) {
        fprintf(stderr, "(%s%u)", f.length_flags & WEFT_FIELD_SIGNED ? "s" : "u",
                8u * f.length_size);
      }
      p->fixed += 4;
      p->segment++;
      break;
    default:
      fail("an unknown kind of field");
  }
}

static void capture(struct weft_event* event, const void* fixed,
                    const struct weft_segment* segments, const void* ip) {
  const unsigned char* desc = (const unsigned char*)event->desc;
  const bool nowrite = (event->wants & WEFT_WANT_NOWRITE) != 0;
  struct weft_event_desc head;
  struct position at = {fixed, segments};
  memcpy(&head, desc, sizeof(head));
  const unsigned char* fields = desc + sizeof(head) + head.name_size + head.uri_size;
  if (((uintptr_t)fixed & 7) != 0) fail("the fixed part is not aligned");

  pthread_mutex_lock(&lock);
  if (getenv("WEFT_CAPTURE_IP")) fprintf(stderr, "%p ", ip);
  fprintf(stderr, "%s", (const char*)desc + sizeof(head));
  for (int hidden = 0; hidden <= (nowrite ? 1 : 0); hidden++) {
    const unsigned char* f = fields;
    for (unsigned i = 0; i < head.field_count; i++) {
      struct weft_field_desc field;
      memcpy(&field, f, sizeof(field));
      if (((field.flags & WEFT_FIELD_NOWRITE) != 0) == hidden) print_field(f, &at);
      f += field.size;
    }
    if (f != desc + head.size) fail("the fields do not fill the description");
    const unsigned fixed_bytes = event->fixed_size + (hidden ? event->nowrite_size : 0);
    const unsigned segment_count = event->segment_count + (hidden ? event->nowrite_segments : 0u);
    if (at.fixed != (const unsigned char*)fixed + fixed_bytes) fail("fixed_size is wrong");
    if (at.segment != segments + segment_count) fail("segment_count is wrong");
  }
  fputs("\n", stderr);
  pthread_mutex_unlock(&lock);
}

/* --- libweft.so's functions -------------------------------------------------------------- */

static const char* event_name(const struct weft_event* event) {
  return (const char*)event->desc + sizeof(struct weft_event_desc);
}

static void join_all(void) {
  for (unsigned t = 0; t < tracepoint_count; t++) {
    tracepoints[t]->probe = NULL;
    for (unsigned e = 0; e < event_count; e++) {
      if (strcmp(tracepoints[t]->name, event_name(events[e])) == 0 &&
          strcmp(tracepoints[t]->signature, events[e]->signature) == 0) {
        tracepoints[t]->probe = events[e]->probe;
      }
    }
  }
}

static const struct weft_library library;

EXPORT void weft_object_register(struct weft_object* object) {
  object->library = &library;
  if (object->size != sizeof(*object) || object->abi != WEFT_TRACEPOINT_ABI) fail("object");
  if (object->state) fail("an object came twice");
  object->state = object;
  if (getenv("WEFT_CAPTURE_OFF")) return;
  for (uint32_t i = 0; i < object->event_count; i++) {
    struct weft_event* event = object->events[i];
    if (event->size != sizeof(*event) || event->desc->version != WEFT_EVENT_DESC_VERSION) {
      fail("event");
    }
    event->emit = capture;
    event->wants = getenv("WEFT_CAPTURE_NOWRITE") ? WEFT_WANT_NOWRITE : 0;
    events[event_count++] = event;
  }
  for (uint32_t i = 0; i < object->tracepoint_count; i++) {
    struct weft_tracepoint* tracepoint = object->tracepoints[i];
    bool known = false; /* libraries that define the same tracepoint all list the first one */
    for (unsigned j = 0; j < tracepoint_count; j++) known |= tracepoints[j] == tracepoint;
    if (known) continue;
    if (tracepoint->size != sizeof(*tracepoint) || *tracepoint->enabled != 0) fail("tracepoint");
    tracepoint->enabled = &on;
    tracepoints[tracepoint_count++] = tracepoint;
  }
  if (event_count > MAX_ENTRIES || tracepoint_count > MAX_ENTRIES) fail("too many entries");
  join_all();
}

static void unregister(struct weft_object* object) {
  unsigned kept = 0;
  for (unsigned i = 0; i < event_count; i++) {
    bool gone = false;
    for (uint32_t j = 0; j < object->event_count; j++) gone |= events[i] == object->events[j];
    if (!gone) events[kept++] = events[i];
  }
  event_count = kept;
  kept = 0;
  for (unsigned i = 0; i < tracepoint_count; i++) {
    bool gone = false;
    for (uint32_t j = 0; j < object->tracepoint_count; j++) {
      gone |= tracepoints[i] == object->tracepoints[j];
    }
    if (!gone) tracepoints[kept++] = tracepoints[i];
  }
  tracepoint_count = kept;
  join_all();
}

static int is_enabled(struct weft_tracepoint* tracepoint) { return tracepoint->probe != NULL; }

/* A block for long values, as libweft.so lends them. */
struct weft_kept {
  struct weft_kept* next;
};

static void* keep(struct weft_event* event, struct weft_kept** kept, uint64_t size) {
  struct weft_kept* block = malloc(sizeof(*block) + size);
  (void)event;
  if (!block) fail("memory");
  block->next = *kept;
  *kept = block;
  return block + 1;
}

static void release(struct weft_kept* kept) {
  while (kept) {
    struct weft_kept* next = kept->next;
    free(kept);
    kept = next;
  }
}

static const struct weft_library library = {
    .size = sizeof(struct weft_library),
    .object_register = weft_object_register,
    .object_unregister = unregister,
    .tracepoint_enabled = is_enabled,
    .keep = keep,
    .release = release,
};

/* Finds the executable's note, for linkers that leave it no reference to weft_object_register. */
static int find_note(struct dl_phdr_info* info, size_t size, void* data) {
  static const struct {
    ElfW(Nhdr) head;
    char name[8];
  } wanted = {{5, 8, WEFT_NOTE_OBJECT}, "weft"};
  (void)size;
  (void)data;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const char* notes = (const char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    if (info->dlpi_phdr[i].p_type != PT_NOTE) continue;
    for (size_t at = 0; at + sizeof(wanted) + 8 <= info->dlpi_phdr[i].p_memsz; at += 4) {
      int64_t distance;
      if (memcmp(notes + at, &wanted, sizeof(wanted)) != 0) continue;
      memcpy(&distance, notes + at + sizeof(wanted), sizeof(distance));
      ((struct weft_object*)(notes + at + sizeof(wanted) + distance))->library = &library;
    }
  }
  return 1; /* the first one is the executable */
}

__attribute__((constructor(101))) static void start(void) { dl_iterate_phdr(find_note, NULL); }
