// SPDX-License-Identifier: Apache-2.0
// Values of contexts. See contexts.h; thread ids are in thread.h, application contexts in
// app_context.h.
#include "ust-injector/preload/contexts.h"

#include <errno.h>
#include <fcntl.h>

#include "ust-injector/preload/app_context.h"
#include "ust-injector/preload/keep.h"
#include "ust-injector/preload/memory.h"
#include "ust-injector/preload/perf.h"
#include "ust-injector/preload/process.h"
#include "ust-injector/preload/seccomp.h"
#include "ust-injector/preload/thread.h"

struct weft_context_entry {
  uint16_t id;
  uint8_t size;  // bytes of the value; 0: dynamic
  uint8_t reserved;
  uint32_t number;  // of the application context or perf counter
};

struct weft_context_plan {
  uint32_t count;
  uint32_t bound;  // bytes
  bool is_dynamic;
  struct weft_context_entry entries[];
};

// Reads the kernel's name of the calling thread.
static void read_procname(uint8_t to[WEFT_CONTEXT_PROCNAME_SIZE]) {
  const struct weft_thread* thread = weft_thread_self();
  if (__builtin_expect(thread != NULL, 1)) {
    // The size is constant: the compiler makes two moves of it.
    __builtin_memcpy(to, thread->procname, WEFT_CONTEXT_PROCNAME_SIZE);
  } else {
    memset(to, 0, WEFT_CONTEXT_PROCNAME_SIZE);
    weft_syscall(__NR_prctl, 16 /* PR_GET_NAME */, to);
  }
}

// Returns the inode number in "mnt:[4026531840]", as readlink on /proc/self/ns gives it; 0: not
// available.
static uint64_t read_namespace(const char* name) {
  char path[64] = "/proc/thread-self/ns/";
  char link[64];
  char* at = path + strlen(path);
  uint64_t inode = 0;
  if (!weft_append(&at, path + sizeof(path), name)) return 0;
  const long n =
      weft_optional(WEFT_CALL_READLINKAT, __NR_readlinkat, AT_FDCWD, path, link, sizeof(link));
  for (long i = 0; i < n; ++i) {
    if (link[i] >= '0' && link[i] <= '9') inode = inode * 10 + (uint64_t)(link[i] - '0');
  }
  return inode;
}

static uint32_t read_id(enum weft_call call, long get_triple, int which) {
  uint32_t ids[3] = {~0u, ~0u, ~0u};  // stays where no call may be made (seccomp.h)
  weft_optional(call, get_triple, &ids[0], &ids[1], &ids[2]);
  return ids[which];
}

// Returns the value of any integer context; 0 if it is not available.
static uint64_t read_integer(uint16_t id, const void* ip) {
  switch ((enum weft_context_id)id) {
    case WEFT_CONTEXT_VPID:
      return weft_vpid();
    case WEFT_CONTEXT_VTID:
      return weft_thread_id();
    case WEFT_CONTEXT_PTHREAD_ID:
      return weft_thread_pointer();
    case WEFT_CONTEXT_IP:
      return (uintptr_t)ip;
    case WEFT_CONTEXT_CPU_ID:
      return weft_cpu();
    case WEFT_CONTEXT_VUID:
    case WEFT_CONTEXT_VEUID:
    case WEFT_CONTEXT_VSUID:
      return read_id(WEFT_CALL_GETRESUID, __NR_getresuid, id - WEFT_CONTEXT_VUID);
    case WEFT_CONTEXT_VGID:
    case WEFT_CONTEXT_VEGID:
    case WEFT_CONTEXT_VSGID:
      return read_id(WEFT_CALL_GETRESGID, __NR_getresgid, id - WEFT_CONTEXT_VGID);
    case WEFT_CONTEXT_CGROUP_NS:
      return read_namespace("cgroup");
    case WEFT_CONTEXT_IPC_NS:
      return read_namespace("ipc");
    case WEFT_CONTEXT_MNT_NS:
      return read_namespace("mnt");
    case WEFT_CONTEXT_NET_NS:
      return read_namespace("net");
    case WEFT_CONTEXT_PID_NS:
      return read_namespace("pid");
    case WEFT_CONTEXT_USER_NS:
      return read_namespace("user");
    case WEFT_CONTEXT_UTS_NS:
      return read_namespace("uts");
    case WEFT_CONTEXT_TIME_NS:
      return read_namespace("time");
    // Read by weft_contexts_write itself: no integers, or with a number of their own.
    case WEFT_CONTEXT_PROCNAME:
    case WEFT_CONTEXT_PERF_THREAD:
    case WEFT_CONTEXT_APP:
      // weft_contexts_plan refuses them.
      WEFT_KERNEL_CONTEXT_CASES
      break;
  }
  return 0;
}

const struct weft_context_plan* weft_contexts_plan(const struct weft_ruleset* rules,
                                                   const struct weft_channel_spec* spec) {
  const struct weft_context_spec* specs = (const void*)((const char*)rules + spec->contexts_offset);
  if (spec->context_count == 0 || spec->contexts_offset > rules->size ||
      spec->context_count * sizeof(*specs) > rules->size - spec->contexts_offset) {
    return NULL;
  }
  struct weft_context_plan* plan =
      weft_allocate(sizeof(*plan) + spec->context_count * sizeof(plan->entries[0]));
  if (plan == NULL) return NULL;
  for (uint32_t i = 0; i < spec->context_count; ++i) {
    const struct weft_context_info* info = weft_context_by_id(specs[i].id);
    if (info == NULL || info->id >= WEFT_CONTEXT_FIRST_KERNEL) return NULL;
    struct weft_context_entry* e = &plan->entries[plan->count++];
    e->id = specs[i].id;
    e->size = info->size;
    const char* name = specs[i].name_size != 0 ? (const char*)rules + specs[i].name_offset : NULL;
    if (name != NULL && (specs[i].name_offset > rules->size ||
                         specs[i].name_size > rules->size - specs[i].name_offset ||
                         name[specs[i].name_size - 1] != 0)) {
      return NULL;
    }
    if (e->id == WEFT_CONTEXT_APP) e->number = weft_app_context_number(name);
    if (e->id == WEFT_CONTEXT_PERF_THREAD) {
      e->number = weft_perf_number(specs[i].perf_type, specs[i].perf_config);
    }
    if (e->size == 0) plan->is_dynamic = true;
    plan->bound = e->size == 0 || plan->bound + e->size > WEFT_CONTEXTS_MAX_BYTES
                      ? WEFT_CONTEXTS_MAX_BYTES
                      : plan->bound + e->size;
  }
  return plan;
}

uint32_t weft_contexts_bound(const struct weft_context_plan* plan) { return plan->bound; }

uint32_t weft_contexts_constant_bytes(const struct weft_context_plan* plan) {
  return plan->is_dynamic || plan->bound == WEFT_CONTEXTS_MAX_BYTES ? 0 : plan->bound;
}

static inline void store_u32(uint8_t* to, uint32_t value) { __builtin_memcpy(to, &value, 4); }

uint32_t weft_contexts_write(const struct weft_context_plan* plan, uint8_t* to, const void* ip) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < plan->count; ++i) {
    const struct weft_context_entry* e = &plan->entries[i];
    if (e->id == WEFT_CONTEXT_VPID) {
      store_u32(to + at, weft_vpid());
      at += 4;
    } else if (e->id == WEFT_CONTEXT_VTID) {
      store_u32(to + at, weft_thread_id());
      at += 4;
    } else if (e->id == WEFT_CONTEXT_PROCNAME) {
      read_procname(to + at);
      at += WEFT_CONTEXT_PROCNAME_SIZE;
    } else if (e->id == WEFT_CONTEXT_APP) {
      // One byte for each entry that follows is kept free, so that NONE always fits.
      const uint32_t room =
          WEFT_CONTEXTS_MAX_BYTES - at - (plan->count - i - 1) * WEFT_CONTEXT_PROCNAME_SIZE;
      at += weft_app_context_write(e->number, to + at, room);
    } else {
      const uint64_t value =
          e->id == WEFT_CONTEXT_PERF_THREAD ? weft_perf_read(e->number) : read_integer(e->id, ip);
      if (e->size == 4) {
        store_u32(to + at, (uint32_t)value);
      } else {
        __builtin_memcpy(to + at, &value, 8);
      }
      at += e->size;
    }
  }
  return at;
}

// Filters: a context's number is its id, or for application contexts 65536 + its own number.
#define WEFT_FILTER_APP_BASE 65536u

static int find(const struct weft_filter_contexts* self, uint8_t kind, const char* name,
                uint32_t name_size, uint8_t* type) {
  (void)self;
  char text[WEFT_CONTEXT_NAME_MAX];
  if (kind == WEFT_FILTER_SYMBOL_APP) {
    if (name_size >= sizeof(text)) return -ENOENT;
    memcpy(text, name, name_size);
    text[name_size] = 0;
    *type = WEFT_FILTER_ANY;
    return (int)(WEFT_FILTER_APP_BASE + weft_app_context_number(text));
  }
  const struct weft_context_info* info = weft_context_by_name(name, name_size);
  if (info == NULL || info->id >= WEFT_CONTEXT_FIRST_KERNEL) return -ENOENT;
  *type = info->type == WEFT_CONTEXT_TEXT ? WEFT_FILTER_STRING : WEFT_FILTER_INT;
  return info->id;
}

// The text stays as it is when the function is asked for another value, or another context's
// function is.
static int fetch_app(struct weft_filter_call* call, uint32_t number,
                     struct weft_filter_value* value) {
  const int result = weft_app_context_value(number, value);
  if (result < 0 || value->type != WEFT_FILTER_STRING) return result;
  void* copy = weft_keep_bytes(&call->kept, value->size, !weft_ids_are_shared());
  if (copy == NULL) {
    call->lacks_memory = true;
    return -ENOMEM;
  }
  memcpy(copy, value->text, value->size);
  value->text = copy;
  return 0;
}

static int fetch(void* arg, uint32_t number, struct weft_filter_value* value) {
  struct weft_filter_call* call = arg;
  if (number >= WEFT_FILTER_APP_BASE) return fetch_app(call, number - WEFT_FILTER_APP_BASE, value);
  if (number == WEFT_CONTEXT_PROCNAME) {
    const struct weft_thread* thread = weft_thread_self();
    if (thread == NULL) return -ENOENT;
    value->type = WEFT_FILTER_STRING;
    value->text = thread->procname;
    value->size = WEFT_CONTEXT_PROCNAME_SIZE;
    return 0;
  }
  value->type = WEFT_FILTER_INT;
  value->bits = read_integer((uint16_t)number, call->ip);
  return 0;
}

const struct weft_filter_contexts weft_contexts_for_filters = {.find = find, .fetch = fetch};
